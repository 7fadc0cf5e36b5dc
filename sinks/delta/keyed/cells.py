"""Rows of keys as cells, in memory or in files of this process that the system keeps in memory as it can."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sinks.contract.storage import writing

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Cells", "parts_in", "place_of"]

_ROW_BITS = 32
_ROW_MASK = (1 << _ROW_BITS) - 1
_SMALL_BYTES = 1 << 20


def place_of(part: int, count: int) -> NDArray[np.int64]:
    """The places of the *count* cells of a part."""
    return np.arange(count, dtype=np.int64) | part << _ROW_BITS


class Cells:
    """Cells in parts, each added once; a place tells part and row."""

    def __init__(self) -> None:
        self._parts: dict[int, pa.Array] = {}
        self._next = 0

    def add(self, cells: pa.Array) -> int:
        """Adds a part; its number."""
        self._parts[self._next] = cells if cells.nbytes <= _SMALL_BYTES else _mapped(cells)
        self._next += 1
        return self._next - 1

    def drop(self, part: int) -> None:
        """Forgets a part at whose places nobody looks any more."""
        del self._parts[part]

    def at(self, places: NDArray[np.int64]) -> pa.Array:
        """The cells at *places*; NULL where a place is none, or the cell is NULL."""
        wanted = np.flatnonzero(places >= 0)
        if not len(wanted):
            return pa.nulls(len(places), pa.binary())
        parts = places[wanted] >> _ROW_BITS
        order = np.argsort(parts, kind="stable")
        numbers, begins = np.unique(parts[order], return_index=True)
        found = list[pa.Array]()
        for number, rows in zip(numbers.tolist(), np.split(places[wanted[order]] & _ROW_MASK, begins[1:]), strict=True):
            found.append(self._parts[number].take(pa.array(rows)))
        taken = pa.concat_arrays(found)
        where = np.zeros(len(places), np.int64)
        where[wanted[order]] = np.arange(len(order))
        return taken.take(pa.array(where, mask=places < 0))


def parts_in(places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """How many of *places* lie in each part, by its number."""
    counts = np.zeros(0, np.int64)
    for each in places:
        found = np.bincount(each[each >= 0] >> _ROW_BITS)
        if len(found) < len(counts):
            found, counts = counts, found
        found[: len(counts)] += counts
        counts = found
    return counts


def _mapped(cells: pa.Array) -> pa.Array:
    """The same cells in a file that is gone with them, mapped into memory."""
    schema = pa.schema([("row", cells.type)])
    directory = tempfile.gettempdir()
    with writing(directory), tempfile.NamedTemporaryFile(prefix="historian-", dir=directory) as file:
        with pa.OSFile(file.name, "wb") as stream, pa.ipc.new_file(stream, schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays([cells], schema=schema))
        with pa.memory_map(str(Path(file.name))) as mapped:
            return pa.ipc.open_file(mapped).get_batch(0).column(0)
