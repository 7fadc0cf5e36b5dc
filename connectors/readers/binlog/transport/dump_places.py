"""Which places of a log a dump can start at, known without a dump."""

from __future__ import annotations

__all__ = ["MAX_OFFSET", "PURGED_NEXT_STEP", "may_start"]

PURGED_NEXT_STEP = (
    "`historian heal CONFIG --lost-log` goes on behind what is lost, and leaves a gap there; or start anew, at or behind the first "
    "file of SHOW BINARY LOGS; keep logs longer with binlog_expire_logs_seconds (MariaDB, 5.7: expire_logs_days)"
)
MAX_OFFSET = 0xFFFFFFFF
"""The last that the protocol can name: it has four bytes for it."""


def may_start(offset: int) -> bool:
    """Whether the protocol can name that place in a file."""
    return offset <= MAX_OFFSET
