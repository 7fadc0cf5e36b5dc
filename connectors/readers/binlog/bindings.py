"""Which table, under which version, a table number of the log stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from connectors.readers.binlog.events import HEADER_BYTES
from connectors.readers.binlog.kernels import layout as at
from historian.plans import Place, PlannedTable, PlannedVersion
from historian.positions import FilePosition
from historian.schema import TableName

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Bindings"]

_NEVER = 2**63 - 1
_NUMBER_AND_FLAGS_BYTES = 8


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

    def resolve(self, name: TableName, file: str, offset: int, ordinal: int) -> tuple[int, PlannedVersion] | None:
        """Slot and version of the table of that *name* for an event at *offset* of *file*; None: not wanted.

        Events that were compressed together share their offset, and *ordinal* tells them apart.
        """
        here = _Point(FilePosition(file, 0).number, offset, ordinal)
        for slot, table in enumerate(self._tables):
            version = _in_force(table, here)
            if version is not None and version.snapshot is not None and version.snapshot.name == name:
                stopped = table.quarantine is not None and here >= _point(table.quarantine.place)
                return None if stopped else (slot, version)
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
