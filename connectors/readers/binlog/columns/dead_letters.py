"""Dates that the calendar does not have as dead letters: NULL in the row, and told of with the log's bytes."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.columns.arrays import Cells, Finish

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["lettered"]

_DAY_ZERO = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECONDS = 6


def lettered(name: str, texts: Finish, size_bytes: int, *, is_big: bool) -> Finish:
    """A DATE, DATETIME or TIMESTAMP of its packed number, which *texts* prints; a value is *size_bytes* in the log."""
    number, width = (_days, np.int32) if name == "date" else (_microseconds, np.int64)

    def finish(cells: Cells) -> pa.Array:
        shown = texts(cells).to_pylist()
        words: NDArray[np.int64] = cells.words
        values = np.zeros(cells.rows, width)
        kept = cells.valid()
        letters = []
        for row, text in enumerate(shown):
            if text is None:
                continue
            try:
                values[row] = number(text)
            except ValueError:
                kept[row] = False
                raw = int(words[row]).to_bytes(size_bytes, "big" if is_big else "little")
                letters.append((row, raw, text, "zero_dates"))
        cells.dead_letters = tuple(letters)
        if letters:
            cells.unrepresentable, cells.first_unrepresentable = len(letters), letters[0][0]
        nulls = cells.rows - int(np.count_nonzero(kept))
        validity = pa.py_buffer(np.packbits(kept, bitorder="little")) if nulls else None
        return pa.Array.from_buffers(cells.arrow, cells.rows, [validity, pa.py_buffer(values)], nulls)

    return finish


def _days(text: str) -> int:
    return (date.fromisoformat(text) - _DAY_ZERO).days


def _microseconds(text: str) -> int:
    whole, _, fraction = text.partition(".")
    moment = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc)
    return (moment - _EPOCH) // timedelta(microseconds=1) + int(fraction.ljust(_MICROSECONDS, "0"))
