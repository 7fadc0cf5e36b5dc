"""The TABLE_MAPs that a scan has met, so that it asks for each only once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.events.layout import HEADER_BYTES
from connectors.readers.binlog.events.table_maps import TableMap
from connectors.readers.binlog.kernels.log import scan_layout as at
from historian.names import TableName

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TableMapCache"]


class TableMapCache:
    """The TABLE_MAPs since the last statement, as a hash table that the kernel reads."""

    def __init__(self) -> None:
        self.store: NDArray[np.uint8] = np.empty(1 << 16, np.uint8)
        self.entries: NDArray[np.int64] = self._free(256)
        self._fill = 0
        self._known: dict[int, tuple[int, int]] = {}
        self._names: dict[int, TableName] = {}

    @staticmethod
    def _free(slots: int) -> NDArray[np.int64]:
        entries = np.full((slots + 1, at.MAP_WORDS), -1, np.int64)
        entries[0, 0] = slots - 1
        return entries

    def clear(self) -> None:
        """Forgets all, since the statement may have changed any of them."""
        if self._known:
            self.entries[1:] = -1
            self._known.clear()
            self._names.clear()
            self._fill = 0

    def add(self, found: TableMap, body: bytes) -> None:
        """Remembers the bytes of a TABLE_MAP, in place of others for the same number."""
        end = self._fill + len(body)
        if end > len(self.store):
            self.store = np.concatenate([self.store, np.empty(max(end, len(self.store)), np.uint8)])
        self.store[self._fill : end] = np.frombuffer(body, np.uint8)
        self._known[found.number] = (self._fill, len(body))
        self._names[found.number] = found.table
        self._fill = end
        if 2 * len(self._known) > len(self.entries):
            self.entries = self._free(4 * (len(self.entries) - 1))
            for number in self._known:
                self._enter(number)
        else:
            self._enter(found.number)

    def _enter(self, number: int) -> None:
        mask = int(self.entries[0, 0])
        slot = number & mask
        while self.entries[slot + 1, 0] not in (-1, number):
            slot = (slot + 1) & mask
        self.entries[slot + 1] = (number, *self._known[number])

    def name(self, number: int) -> TableName:
        """The table of a number that is known."""
        return self._names[number]

    def table_of(self, event: bytes) -> TableName | None:
        """The table of a row event, where it is known."""
        return self._names.get(int.from_bytes(event[HEADER_BYTES : HEADER_BYTES + 6], "little"))
