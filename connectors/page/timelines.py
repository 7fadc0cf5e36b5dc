"""One table's schema timeline as plain values for the page: its versions, and a lane for each column that it ever had.

Values are lists, not names with values: a history of 100,000 statements is in one file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from historian.history.versions import Version
from historian.schema.diff import Difference, diff
from historian.schema.snapshots import Column, Snapshot

__all__ = ["Lane", "Timeline", "timeline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A column, by its identity.

    Attributes:
        column_id: never reused in a connector.
        parts: from which version on (its index, from 0) it has a name and a type, in order; name None: it is not there from here on.
    """

    column_id: int
    parts: tuple[tuple[int, str | None, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What happened to one table.

    Attributes:
        versions: rows of number, time (UTC microseconds), statement, GTID, place, author, changes, and the table's name from there on, as the
            page's script reads them. A change is a row of what, column, before, after.
        lanes: by column id.
        states: "known", "gone", or why the schema is not known, one for each version.
    """

    versions: tuple[list[Any], ...]
    lanes: tuple[Lane, ...]
    states: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        """As JSON's types."""
        lanes = [[lane.column_id, *([at, name, kind] for at, name, kind in lane.parts)] for lane in self.lanes]
        return {"versions": self.versions, "lanes": lanes, "states": self.states}


def timeline(versions: Sequence[Version], author: Callable[[str, str], str]) -> Timeline:
    """The timeline of one table's *versions*, oldest first.

    Args:
        author: gives the tool that wrote a statement, by it and the table's database; "": none.
    """
    lanes = _Lanes()
    rows, states = [], []
    before: Snapshot | None = None
    for index, version in enumerate(versions):
        rows.append(_row(version, before, author))
        states.append(_state(version))
        # Of a table whose schema is not known for a while the lanes end, and go on by the same ids.
        lanes.take(index, version.snapshot)
        before = version.snapshot
    return Timeline(versions=tuple(rows), lanes=lanes.lanes(), states=tuple(states))


def _state(version: Version) -> str:
    if version.unknown is not None:
        return version.unknown
    return "gone" if version.snapshot is None else "known"


def _row(version: Version, before: Snapshot | None, author: Callable[[str, str], str]) -> list[Any]:
    entry, place = version.entry, version.entry.place
    where = str(entry.position) if place is None else f"{place.file}:{place.offset}"
    gtid = "" if place is None else place.gtid
    who = author(entry.statement, version.name.database) if entry.statement else ""
    changes = [[each.change, each.column, each.before, each.after] for each in _changes(before, version)]
    return [version.number, entry.event_time_us, entry.statement, gtid, where, who, changes, str(version.name)]


def _changes(before: Snapshot | None, version: Version) -> Sequence[Difference]:
    if version.unknown is not None:
        return (Difference(change="unknown", after=version.unknown),)
    if before is None and version.entry.place is None:
        return (Difference(change="captured", after=str(version.name)),)
    return diff(before, version.snapshot)


@dataclass(slots=True)
class _Lanes:
    """Grows with each version; what did not change costs a look at the column alone."""

    parts: dict[int, list[tuple[int, str | None, str]]] = field(default_factory=dict)
    held: dict[int, Column] = field(default_factory=dict)

    def take(self, index: int, snapshot: Snapshot | None) -> None:
        columns = () if snapshot is None else snapshot.columns
        held = self.held
        for column in [column for column in columns if held.get(column.id) is not column]:
            was = held.get(column.id)
            if was is None or (was.name, was.type) != (column.name, column.type):
                self.parts.setdefault(column.id, []).append((index, column.name, str(column.type)))
            held[column.id] = column
        if len(self.held) > len(columns):
            for column_id in self.held.keys() - {column.id for column in columns}:
                self.parts[column_id].append((index, None, ""))
                del self.held[column_id]

    def lanes(self) -> tuple[Lane, ...]:
        return tuple(Lane(column_id=each, parts=tuple(parts)) for each, parts in sorted(self.parts.items()))
