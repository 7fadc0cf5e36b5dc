"""Changelogs, mirrors and histories in Delta Lake.

What any sink would need does not belong here (:mod:`sinks.contract`).

Open to other rooms: ``faults``.
"""

from sinks.delta.settings import DeltaSettings
from sinks.delta.writing.dry_run import DeltaDryRun
from sinks.delta.writing.sink import DeltaSink

__all__ = ["DeltaDryRun", "DeltaSettings", "DeltaSink"]
