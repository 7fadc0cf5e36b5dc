"""Finding rows by key: which row of a change belongs to a row that is held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KeyIndex"]


class KeyIndex:
    """The distinct keys of some rows, numbered from 0 without a gap; NULL is a value of its own.

    Args:
        rows: with the key's columns.
        key: their names, at least one.
        exact: whether -0.0 and 0.0 are two values. Else they are one, as for the server; other values compare as stored
            bytes in any case.

    Attributes:
        numbers: for each of *rows* the number of its key.
        count: how many keys there are.
    """

    def __init__(self, rows: pa.Table, key: Sequence[str], *, exact: bool = False) -> None:
        self._exact = exact
        self._steps: list[tuple[str, pa.Array, pa.Array | None]] = []
        numbers: NDArray[np.int64] | None = None
        for name in key:
            values = self._comparable(rows.column(name))
            distinct = values.unique()
            own = _places(values, distinct)
            mixed = None if numbers is None else numbers * len(distinct) + own
            combined = None if mixed is None else pa.array(mixed).unique()
            numbers = own if mixed is None or combined is None else _places(pa.array(mixed), combined)
            self._steps.append((name, distinct, combined))
        assert numbers is not None  # noqa: S101 a key has columns
        self.numbers = numbers
        _, last, combined = self._steps[-1]
        self.count = len(last if combined is None else combined)

    def find(self, rows: pa.Table) -> NDArray[np.int64]:
        """For each of *rows*, of the same types, the number of its key; -1 where that is none of the index's."""
        numbers = np.zeros(rows.num_rows, np.int64)
        for name, distinct, combined in self._steps:
            own = _places(self._comparable(rows.column(name)), distinct)
            lost = (own < 0) | (numbers < 0)
            mixed = own if combined is None else _places(pa.array(numbers * len(distinct) + own), combined)
            numbers = np.where(lost, -1, mixed)
        return numbers

    def _comparable(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        if not pa.types.is_floating(values.type):
            return values
        if self._exact:
            bits = pa.int32() if values.type == pa.float32() else pa.int64()
            return pa.chunked_array([chunk.view(bits) for chunk in values.chunks], bits)
        return pc.add(values, pa.scalar(0.0, values.type))


def _places(values: pa.Array | pa.ChunkedArray, distinct: pa.Array) -> NDArray[np.int64]:
    found = pc.fill_null(pc.index_in(values, value_set=distinct), -1)
    return np.asarray(found).astype(np.int64)
