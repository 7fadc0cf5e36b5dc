"""Changelogs as directories of Parquet files, for readers that have no table format."""

from sinks.parquet.settings import ParquetSettings
from sinks.parquet.sink import ParquetSink

__all__ = ["ParquetSettings", "ParquetSink"]
