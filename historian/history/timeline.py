"""A timeline: every schema change of a source, in the order of its log. Versions and history derive from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from historian.names import TableName
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.edits import Edit

__all__ = ["Gap", "Horizon", "TimelineEntry", "place_key"]


class _Lazy:
    """Room for what makes ``edits`` when they are first asked for; an instance made as usual leaves it empty."""

    __slots__ = ("_read",)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry(_Lazy):
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
        source: where the source's log has the statement, of a topic that tells it: ``SERVER_ID/GTID/FILE:OFFSET``; "": it is not told.
        transaction: of the row that tells it, as :attr:`connectors.readers.base.SchemaMet.transaction`; None: it is not told.
        corrects: it was said later what the event at ``place`` did; the entry stands at the timeline's end of that time,
            its versions at their place in the log.
    """

    number: int
    place: Place | None
    position: LogPosition
    edits: tuple[Edit, ...]
    statement: str
    database: str
    event_time_us: int
    server: str
    source: str = ""
    transaction: tuple[int, int] | None = None
    corrects: bool = False

    @classmethod
    def later(cls, read: Callable[[], tuple[Edit, ...]], **fields: Any) -> TimelineEntry:
        """The entry of all the other *fields*, whose edits *read* gives when they are first asked for.

        A capture of many tables has many edits, and a lookup needs those of one table.
        """
        entry = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(entry, name, value)
        object.__setattr__(entry, "_read", read)
        return entry

    def __getattr__(self, name: str) -> Any:
        # Python comes here only where the field is not set yet.
        if name != "edits":
            raise AttributeError(name)
        object.__setattr__(self, "edits", self._read())
        object.__delattr__(self, "_read")
        return self.edits


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch of the log that nobody read: schemas in force behind ``start`` and before ``end`` are not known."""

    start: LogPosition
    end: LogPosition
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """Where a history begins whose older versions were forgotten.

    Of the entries up to ``number`` those remain that made a version in force there, each of its tables by CREATE.

    Attributes:
        number: of the last entry whose forerunners were forgotten.
        position: positions that do not cover it have no schema any more.
        gone: names that stood for a table before and stand for none there.
        next_table_id, next_column_id: ids below were given away.
    """

    number: int
    position: LogPosition
    gone: tuple[TableName, ...]
    next_table_id: int
    next_column_id: int


def place_key(place: Place, server: str) -> str:
    """What makes a statement the same when it is read again, on whatever server if it has a GTID."""
    return f"{place.gtid}/{place.ordinal}" if place.gtid else f"{server}/{place.file}:{place.offset}"
