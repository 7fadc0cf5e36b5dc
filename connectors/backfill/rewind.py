"""Rows that were read later than a position, brought back to what they were there.

What of them changed since is in the log: a row is as the first change behind the position found it. See
``docs/explanation/backfill.md`` for why that is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import CHUNK_COLUMNS, Op
from historian.changelog.row_images import rows_where

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["rewound", "rewound_bag"]

_BEFORE = (Op.RETRACT, Op.CORRECT_FROM)
_Key = tuple[Any, ...]


def rewound(
    selected: Iterable[pa.RecordBatch],
    changes: Sequence[pa.RecordBatch],
    key: Sequence[str],
    is_wanted: Callable[[pa.RecordBatch], NDArray[np.bool_]],
) -> Iterator[pa.RecordBatch]:
    """The rows of one table as of a position, of rows that a SELECT gave at some time behind it.

    A key that changed since has the image before its first change, or no row where that was an insert.

    Args:
        selected: rows of chunks, of all keys that are wanted.
        changes: changelog rows of the table behind the position, in the order of the log, at least up to the SELECT.
        key: names of the columns that tell rows apart.
        is_wanted: which of some rows have wanted keys.
    """
    first = _first_changes(changes, key)
    types = [changes[0].schema.field(name).type for name in key] if first else []
    keys = [pa.array([values[at] for values in first], kind) for at, kind in enumerate(types)]
    for rows in selected:
        kept = _untouched(rows, key, keys, first) if first else None
        yield rows if kept is None else rows_where(rows, kept)
    for number, batch in enumerate(changes):
        found = sorted(row for held, row, is_before in first.values() if held == number and is_before)
        if found:
            images = batch.take(pa.array(found, pa.int64()))
            images = images.filter(pa.array(is_wanted(images)))
            if images.num_rows:
                yield _inserted(images)


def rewound_bag(selected: Iterable[pa.RecordBatch], changes: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As :func:`rewound` of a table without a key, whose equal rows are counted.

    Args:
        selected: all rows of the table at one position.
        changes: those between the two positions, no more and no less.
    """
    names = changes[0].schema.names[len(CHUNK_COLUMNS) :] if changes else []
    surplus: Counter[_Key] = Counter()
    missing: dict[_Key, list[tuple[int, int]]] = {}
    for number, batch in enumerate(changes):
        for row, (op, values) in enumerate(zip(batch.column("op").to_pylist(), _tuples(batch, names), strict=True)):
            if op in _BEFORE:
                missing.setdefault(values, []).append((number, row))
            else:
                surplus[values] += 1
    for values in set(surplus) & set(missing):
        both = min(surplus[values], len(missing[values]))
        surplus[values] -= both
        del missing[values][:both]
    for rows in selected:
        left = +surplus
        if not left:
            yield rows
            continue
        kept = np.ones(rows.num_rows, np.bool_)
        for row, values in enumerate(_tuples(rows, names)):
            if surplus[values] > 0:
                surplus[values] -= 1
                kept[row] = False
        yield rows_where(rows, kept)
    for number, batch in enumerate(changes):
        found = sorted(row for places in missing.values() for held, row in places if held == number)
        if found:
            yield _inserted(batch.take(pa.array(found, pa.int64())))


def _first_changes(changes: Sequence[pa.RecordBatch], key: Sequence[str]) -> dict[_Key, tuple[int, int, bool]]:
    """Batch and row of the first change of each key, and whether that row was there before it."""
    first: dict[_Key, tuple[int, int, bool]] = {}
    for number, batch in enumerate(changes):
        for row, (op, values) in enumerate(zip(batch.column("op").to_pylist(), _tuples(batch, key), strict=True)):
            first.setdefault(values, (number, row, op in _BEFORE))
    return first


def _untouched(
    rows: pa.RecordBatch, key: Sequence[str], keys: Sequence[pa.Array], first: dict[_Key, tuple[int, int, bool]]
) -> NDArray[np.bool_]:
    """Which rows have keys without a change: each column is compared with all at once, then the few that are left as a whole."""
    touched = np.ones(rows.num_rows, np.bool_)
    for name, values in zip(key, keys, strict=True):
        touched &= pc.is_in(rows.column(name), value_set=values).to_numpy(zero_copy_only=False)
    if len(key) > 1:
        places = np.flatnonzero(touched)
        found = _tuples(rows.take(pa.array(places)), key)
        touched[places] = [values in first for values in found]
    return ~touched


def _tuples(rows: pa.RecordBatch, names: Sequence[str]) -> list[_Key]:
    if not names:
        return [()] * rows.num_rows
    return list(zip(*(rows.column(name).to_pylist() for name in names), strict=True))


def _inserted(images: pa.RecordBatch) -> pa.RecordBatch:
    op = pa.array(np.full(images.num_rows, Op.APPEND, np.uint8))
    return images.set_column(0, images.schema.field("op"), op)
