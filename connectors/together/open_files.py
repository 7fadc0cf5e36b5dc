"""How many files and sockets a process of many connectors may have open."""

from __future__ import annotations

import logging
import resource
from contextlib import suppress

__all__ = ["allow_files"]

_log = logging.getLogger(__name__)
_OF_THE_PROCESS = 256
_OF_A_CONNECTOR = 16
"""At rest three files of its store, and sockets to its source and to Java; more while it begins or writes."""


def allow_files(connectors: int) -> None:
    """Raises the process's own limit to what so many *connectors* need, where the system lets it; else it says so. Safe to call again."""
    needed = _OF_THE_PROCESS + _OF_A_CONNECTOR * connectors
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _holds(soft, needed):
        return
    allowed = needed if _holds(hard, needed) else hard
    if allowed != soft:
        with suppress(OSError, ValueError):  # some systems have a limit of their own besides
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not _holds(allowed, needed):
        _log.warning(
            "%d connectors may need %d open files, and the system allows %d (ulimit -Hn)", connectors, needed, allowed
        )


def _holds(limit: int, files: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= files
