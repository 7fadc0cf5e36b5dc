"""Changelogs as directories of Parquet files, for readers that have no table format."""

from sinks.parquet.dry_run import ParquetDryRun
from sinks.parquet.settings import ParquetSettings
from sinks.parquet.sink import ParquetSink

__all__ = ["ParquetDryRun", "ParquetSettings", "ParquetSink"]
