"""Changelogs as directories of Parquet files, for readers that have no table format.

Mirrors and histories do not belong here.

Open to other rooms: ``odf``.
"""

from sinks.parquet.dry_run import ParquetDryRun
from sinks.parquet.settings import ParquetSettings
from sinks.parquet.sink import ParquetSink

__all__ = ["ParquetDryRun", "ParquetSettings", "ParquetSink"]
