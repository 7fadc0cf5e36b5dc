"""All versions of one table, and what one name stood for: read from a stored timeline when first asked for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from historian.history.order import Order
from historian.history.stored_timeline import EditRow, StoredTimeline, folded
from historian.history.timeline import TimelineEntry
from historian.history.versions import Version
from historian.names import TableName
from historian.schema.edits import CreateTable, Edit, ForgetTable
from historian.schema.snapshots import Snapshot

__all__ = ["Bound", "Chain", "Name", "bounds_of"]

_Entries = Callable[[int], TimelineEntry]


class Bound(NamedTuple):
    """What a name stands for from an entry on: ``table_id`` 0: no table; ``unknown``: why its schema is not known."""

    number: int
    table_id: int
    unknown: str | None


class Name:
    """What one name stood for over time. ``order`` is made when first asked for."""

    __slots__ = ("_order", "bounds")

    def __init__(self, bounds: Iterable[Bound] = ()) -> None:
        self.bounds = list(bounds)
        self._order: Order | None = None

    def add(self, bound: Bound, entry: TimelineEntry) -> None:
        """Appends what the newest entry made of the name."""
        self.bounds.append(bound)
        if self._order is not None:
            self._order.append(entry)

    def order(self, entry: _Entries) -> Order:
        """The order of the bounds' entries, which *entry* gives by number."""
        if self._order is None:
            self._order = Order(entry(bound.number) for bound in self.bounds)
        return self._order


class Chain:
    """Versions of one table under all its names, oldest first.

    Args:
        rows: its edits in *stored*, in order; versions are made of them when they are asked for.
        entry: gives an entry by its number.
    """

    __slots__ = ("_entry", "_items", "_order", "_stored", "numbers")

    def __init__(self, entry: _Entries, stored: StoredTimeline, rows: Iterable[EditRow] = ()) -> None:
        groups = [(number, list(group)) for number, group in groupby(rows, itemgetter(0))]
        self.numbers = [number for number, _ in groups]
        self._items: list[Version | list[EditRow]] = [group for _, group in groups]
        self._stored = stored
        self._entry = entry
        self._order: Order | None = None

    def __iter__(self) -> Iterator[Version]:
        return map(self._version, range(len(self._items)))

    def add(self, version: Version) -> None:
        """Appends the newest version."""
        self.numbers.append(version.number)
        self._items.append(version)
        if self._order is not None:
            self._order.append(version.entry)

    def at(self, number: int) -> Version:
        """The version that the entry of that number made. There must be one."""
        return self._version(bisect_left(self.numbers, number))

    def begins_anew(self, index: int) -> bool:
        """Whether the version at *index* needs none before it."""
        item = self._items[index]
        if not isinstance(item, Version):
            if any(row[5] == "create_table" for row in item):
                return True
            if all(row[5] != "resume_table" for row in item):
                return False
            item = self._version(index)
        return item.unknown_since is not None or any(isinstance(edit, CreateTable) for edit in item.edits)

    def order(self) -> Order:
        """The order of the versions' entries."""
        if self._order is None:
            self._order = Order(map(self._entry, self.numbers))
        return self._order

    def _version(self, index: int) -> Version:
        wanted = self._items[index]
        if isinstance(wanted, Version):
            return wanted
        begin = index
        while begin and not isinstance(self._items[begin - 1], Version) and not self._is_full(begin):
            begin -= 1
        snapshot = self._before(begin)
        for item in self._items[begin:index]:
            if not isinstance(item, Version):
                snapshot = self._after(snapshot, item, map(self._edit, item))
        version = self._items[index] = self._made(snapshot, wanted)
        return version

    def _is_full(self, index: int) -> bool:
        item = self._items[index]
        return not isinstance(item, Version) and item[-1][8] is not None

    def _before(self, index: int) -> Snapshot | None:
        before = self._items[index - 1] if index else None
        return before.snapshot if isinstance(before, Version) else None

    def _made(self, snapshot: Snapshot | None, rows: Sequence[EditRow]) -> Version:
        last = rows[-1]
        edits = tuple(map(self._edit, rows))
        return Version(
            number=last[0],
            table_id=last[2],
            name=TableName(last[3], last[4]),
            snapshot=self._after(snapshot, rows, edits),
            edits=edits,
            entry=self._entry(last[0]),
            unknown=(edits[-1].reason or None) if isinstance(edits[-1], ForgetTable) else None,
        )

    def _after(self, snapshot: Snapshot | None, rows: Sequence[EditRow], edits: Iterable[Edit]) -> Snapshot | None:
        last = rows[-1]
        beside = None if last[5] == "create_table" else last[8]
        return folded(snapshot, edits) if beside is None else self._stored.schema(beside)

    def _edit(self, row: EditRow) -> Edit:
        return self._stored.edit(row)


def bounds_of(name: TableName, rows: Iterable[EditRow], stored: StoredTimeline) -> Iterator[Bound]:
    """What *name* stood for over time.

    Args:
        rows: of all tables that ever had the name, and of statements on it that were not understood; in order.
    """
    holder, unknown = 0, None
    for number, group in groupby(rows, itemgetter(0)):
        before, gone, touched = holder or unknown, 0, False
        for row in group:
            table_id, kind, here = row[2], row[5], (row[3], row[4]) == name
            if here and kind in ("create_table", "rename_table", "resume_table"):
                holder, unknown, touched = table_id, None, True
            elif here and kind in ("drop_table", "forget_table"):
                holder, gone, touched = 0, table_id, True
                unknown = getattr(stored.edit(row), "reason", unknown) or None
            elif kind == "rename_table" and holder == table_id:
                holder, touched = 0, True
            elif kind == "resume_table" and getattr(stored.edit(row), "table", None) == name:
                holder, unknown, touched = 0, None, True
            touched = touched or here
        bound = Bound(number, holder or gone, unknown)
        # The third name of a swap stands for nothing before and after.
        if touched and (before or bound.table_id or unknown):
            yield bound
