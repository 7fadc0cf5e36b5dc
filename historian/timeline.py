"""A timeline: every schema change of a source, in the order of its log. Versions and history derive from it."""

from __future__ import annotations

from dataclasses import dataclass

from historian.edits import Edit
from historian.plans import Place
from historian.positions import LogPosition

__all__ = ["Gap", "TimelineEntry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One statement's edits, or a capture of tables; ``number`` is the version that tables it touches have from here.

    Attributes:
        number: from 1, without holes.
        place: of the statement's event; None for a capture.
        position: for a capture, the position from which it holds; for a statement, the bound before its
            transaction.
        edits: resolved; replaying them over all entries in order gives the catalog. Empty: nothing tracked changed.
        statement, database: its text and default database; "" for a capture.
        event_time_us: UTC microseconds.
        server: which server's log the place's ``file`` and ``offset`` are of.
    """

    number: int
    place: Place | None
    position: LogPosition
    edits: tuple[Edit, ...]
    statement: str
    database: str
    event_time_us: int
    server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch of the log that nobody read: schemas in force behind ``start`` and before ``end`` are not known."""

    start: LogPosition
    end: LogPosition
    reason: str
