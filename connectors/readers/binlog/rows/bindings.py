"""Which table, under which version, a table number of the log stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from connectors.readers.binlog.events.layout import HEADER_BYTES
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.binlog.transport.window import Committed
from historian.names import TableName
from historian.plans.plans import PlannedTable, PlannedVersion
from historian.positions import FilePosition
from historian.positions.places import Place
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Binding", "Bindings"]

_NEVER = 2**63 - 1
_NUMBER_AND_FLAGS_BYTES = 8


class Binding(NamedTuple):
    """What an event's table is.

    Attributes:
        slot: the table's index among those asked for.
        version: that its rows count under.
        written: the schema that they are written under; another one than the version's only of a prepared XA transaction.
    """

    slot: int
    version: PlannedVersion
    written: Snapshot


class Bindings:
    """Resolves TABLE_MAPs through the versions of a plan, and keeps the results where kernels look them up.

    A row takes the last version before its own event. So a binding holds up to the next place of a version or
    quarantine, where all are forgotten.
    """

    def __init__(self, tables: Sequence[PlannedTable]) -> None:
        self._tables = tables
        self._bound: dict[int, tuple[NDArray[np.uint8], int]] = {}
        self.entries: NDArray[np.int64] = np.zeros((64, at.MAP_WORDS), np.int64)

    def table_id(self, slot: int) -> int:
        """The id of the table in that slot, its index among the tables asked for."""
        return self._tables[slot].table_id

    def resolve(
        self, name: TableName, file: str, offset: int, ordinal: int, committed: Committed | None = None
    ) -> Binding | None:
        """What the table of that *name* is for an event at *offset* of *file*; None: not wanted.

        Events that were compressed together share their offset, and *ordinal* tells them apart. An event of a prepared XA
        transaction is written under the schema where it stands, and counts where it is *committed*.
        """
        here = _Point(FilePosition(file, 0).number, offset, ordinal)
        counts = here if committed is None else _Point(FilePosition(committed.file, 0).number, committed.offset, _NEVER)
        for slot, table in enumerate(self._tables):
            version = _in_force(table, counts)
            if version is None or version.snapshot is None:
                continue
            written = _written(table, version.snapshot, here, name, committed)
            # What a stopped table was later is not planned: another one may have its name by then.
            stopped = table.quarantine is not None and counts >= _point(table.quarantine.place)
            if written is not None and not stopped:
                return Binding(slot, version, written)
        return None

    def bind(self, number: int, event: bytes, *, slot: int) -> None:
        """Records what a TABLE_MAP *event* stands for; *slot* -1: nothing that is wanted."""
        body = np.frombuffer(event, np.uint8)[HEADER_BYTES + _NUMBER_AND_FLAGS_BYTES :].copy()
        self._bound[number] = (body, slot)
        if 2 * len(self._bound) > len(self.entries):
            self.entries = np.zeros((2 * len(self.entries), at.MAP_WORDS), np.int64)
            for each in self._bound:
                self._enter(each)
        else:
            self._enter(number)

    def _enter(self, number: int) -> None:
        body, slot = self._bound[number]
        mask = len(self.entries) - 1
        index = number & mask
        while self.entries[index, at.MAP_NUMBER] not in (0, number + 1):
            index = (index + 1) & mask
        self.entries[index] = (number + 1, body.ctypes.data, len(body), slot)

    def forget(self, file: str, offset: int, ordinal: int) -> tuple[int, int]:
        """Drops all bindings; offset and ordinal of the first event behind those given that may need others."""
        self._bound.clear()
        self.entries[:] = 0
        number = FilePosition(file, 0).number
        here = (offset, ordinal)
        return min((bound for bound in self._bounds(number) if bound > here), default=(_NEVER, 0))

    def _bounds(self, number: int) -> Iterator[tuple[int, int]]:
        for table in self._tables:
            for version in table.versions:
                if version.place is not None and _point(version.place).number == number:
                    yield version.place.offset, version.place.ordinal + 1
            if table.quarantine is not None and _point(table.quarantine.place).number == number:
                yield table.quarantine.place.offset, table.quarantine.place.ordinal


class _Point(NamedTuple):
    """Where an event stands; the order is that of one server's log."""

    number: int
    offset: int
    ordinal: int


def _point(place: Place) -> _Point:
    return _Point(FilePosition(place.file, 0).number, place.offset, place.ordinal)


def _in_force(table: PlannedTable, here: _Point) -> PlannedVersion | None:
    """The table's last version before an event."""
    found = None
    for version in table.versions:
        if version.place is not None and _point(version.place) >= here:
            break
        found = version
    return found


def _written(
    table: PlannedTable, present: Snapshot, here: _Point, name: TableName, committed: Committed | None
) -> Snapshot | None:
    """The schema that an event is written under, *present* being the one that it counts under; None: not this table's."""
    if committed is not None and committed.tables is not None:
        own = (each for each in committed.tables if (each.table_id, each.name) == (table.table_id, name))
        return next((each.snapshot or present for each in own), None)
    version = _in_force(table, here)
    snapshot = None if version is None else version.snapshot
    return snapshot if snapshot is not None and snapshot.name == name else None
