"""Changelogs and mirrors in Delta Lake."""

from sinks.delta.dry_run import DeltaDryRun
from sinks.delta.settings import DeltaSettings
from sinks.delta.sink import DeltaSink

__all__ = ["DeltaDryRun", "DeltaSettings", "DeltaSink"]
