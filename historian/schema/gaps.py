"""Edits behind which something goes on that was lost sight of: a stopped table, or all of the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from historian.names import TableName
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot

__all__ = ["ResumeTable", "SkipLog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeTable:
    """A stopped table goes on from here under *snapshot*, with its id; columns that are known to be the same keep theirs.

    Attributes:
        table: its name before.
        unknown_since: behind it and up to here the table's schema is not known; None: it is.
        loses_rows: rows from there are missing, or rows from before have columns whose values nobody knows.
        reason: why it had stopped, and who says what it is now.
    """

    table: TableName
    snapshot: Snapshot
    unknown_since: LogPosition | None
    loses_rows: bool = True
    reason: str
    kind: Literal["resume_table"] = "resume_table"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipLog:
    """The log from *start* to here was not read: what it held is not known."""

    start: LogPosition
    reason: str
    kind: Literal["skip_log"] = "skip_log"
