"""Changelogs and mirrors in Delta Lake."""

from sinks.delta.settings import DeltaSettings
from sinks.delta.sink import DeltaSink

__all__ = ["DeltaSettings", "DeltaSink"]
