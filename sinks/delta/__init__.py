"""Changelogs, mirrors and histories in Delta Lake.

What any sink would need does not belong here (:mod:`sinks.contract`).

Open to other rooms: ``faults``, ``settings``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sinks.delta.settings import DeltaSettings

if TYPE_CHECKING:
    from sinks.delta.writing.dry_run import DeltaDryRun
    from sinks.delta.writing.sink import DeltaSink

__all__ = ["DeltaDryRun", "DeltaSettings", "DeltaSink"]

_WHERE = {"DeltaDryRun": "sinks.delta.writing.dry_run", "DeltaSink": "sinks.delta.writing.sink"}


def __getattr__(name: str) -> Any:
    """What writes is imported once it is asked for: who reads settings alone, such as `historian check`, waits for no kernels."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
