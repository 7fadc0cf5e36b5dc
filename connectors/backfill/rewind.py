"""Rows that were read later than a position, brought back to what they were there.

What of them changed since is in the log: a row is as the first change behind the position found it. See
``docs/explanation/backfill.md`` for why that is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.fingerprints import row_hashes
from historian.changelog.operations import CHUNK_COLUMNS, Op
from historian.changelog.row_images import rows_where

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["rewound", "rewound_bag"]

_BEFORE = (Op.RETRACT, Op.CORRECT_FROM)
_Key = tuple[Any, ...]
_Chosen = Callable[[pa.RecordBatch], "NDArray[np.bool_]"]


def rewound(
    selected: Callable[[], Iterable[pa.RecordBatch]],
    changes: Iterable[pa.RecordBatch],
    key: Sequence[str],
    is_wanted: Callable[[pa.RecordBatch], NDArray[np.bool_]],
    *,
    parts: int = 1,
) -> Iterator[pa.RecordBatch]:
    """The rows of one table as of a position, of rows that a SELECT gave at some time behind it.

    A key that changed since has the image before its first change, or no row where that was an insert.

    Args:
        selected: gives rows of chunks, of all keys that are wanted.
        changes: changelog rows of the table behind the position, in the order of the log, at least up to the SELECT. Gone through again and again.
        key: names of the columns that tell rows apart.
        is_wanted: which of some rows have wanted keys.
        parts: so many times both are gone through, each time for the keys that a hash puts into that part. The keys of one are held at once.
    """
    for part in range(parts):
        first = _first_changes(changes, key, partial(_of_part, names=key, part=part, parts=parts))
        types = [next(iter(changes)).schema.field(name).type for name in key] if first else []
        keys = [pa.array([values[at] for values in first], kind) for at, kind in enumerate(types)]
        for rows in _in_part(selected(), key, part, parts):
            kept = _untouched(rows, key, keys, first) if first else None
            yield rows if kept is None else rows_where(rows, kept)
        found: dict[int, list[int]] = {}
        for number, row, is_before in first.values():
            if is_before:
                found.setdefault(number, []).append(row)
        for images in _taken(changes, found):
            wanted = images.filter(pa.array(is_wanted(images)))
            if wanted.num_rows:
                yield _inserted(wanted)


def rewound_bag(
    selected: Callable[[], Iterable[pa.RecordBatch]], changes: Iterable[pa.RecordBatch], *, parts: int = 1
) -> Iterator[pa.RecordBatch]:
    """As :func:`rewound` of a table without a key, whose equal rows are counted.

    Args:
        selected: gives all rows of the table at one position.
        changes: those between the two positions, no more and no less.
        parts: as there.
    """
    one = next(iter(changes), None)
    values_of = [] if one is None else one.schema.names[len(CHUNK_COLUMNS) :]
    for part in range(parts if values_of else 1):
        surplus, missing = _balance(changes, values_of, partial(_of_part, names=values_of, part=part, parts=parts))
        for rows in _in_part(selected(), values_of, part, parts):
            if not surplus:
                yield rows
                continue
            kept = np.ones(rows.num_rows, np.bool_)
            for row, values in enumerate(_tuples(rows, values_of)):
                if values in surplus:
                    kept[row] = False
                    _take_one(surplus, values)
            yield rows_where(rows, kept)
        found: dict[int, list[int]] = {}
        for number, row in (place for places in missing.values() for place in places):
            found.setdefault(number, []).append(row)
        for images in _taken(changes, found):
            yield _inserted(images)


def _balance(
    changes: Iterable[pa.RecordBatch], names: Sequence[str], is_mine: _Chosen
) -> tuple[dict[_Key, int], dict[_Key, list[tuple[int, int]]]]:
    """How many of which rows there are more behind *changes*, and the places of those that there were more before; a row is in one of them."""
    surplus: dict[_Key, int] = {}
    missing: dict[_Key, list[tuple[int, int]]] = {}
    for number, row, op, values in _changed(changes, names, is_mine):
        if op in _BEFORE:
            if values in surplus:
                _take_one(surplus, values)
            else:
                missing.setdefault(values, []).append((number, row))
        elif values in missing:
            missing[values].pop()
            if not missing[values]:
                del missing[values]
        else:
            surplus[values] = surplus.get(values, 0) + 1
    return surplus, missing


def _take_one(counts: dict[_Key, int], values: _Key) -> None:
    counts[values] -= 1
    if not counts[values]:
        del counts[values]


def _first_changes(
    changes: Iterable[pa.RecordBatch], key: Sequence[str], is_mine: _Chosen
) -> dict[_Key, tuple[int, int, bool]]:
    """Batch and row of the first change of each key, and whether that row was there before it."""
    first: dict[_Key, tuple[int, int, bool]] = {}
    for number, row, op, values in _changed(changes, key, is_mine):
        first.setdefault(values, (number, row, op in _BEFORE))
    return first


def _changed(
    changes: Iterable[pa.RecordBatch], names: Sequence[str], is_mine: _Chosen
) -> Iterator[tuple[int, int, int, _Key]]:
    """Batch, row, operation and values of the changes that are chosen, in order."""
    for number, batch in enumerate(changes):
        places = np.flatnonzero(is_mine(batch))
        mine = batch if len(places) == batch.num_rows else batch.take(pa.array(places))
        yield from (
            (number, row, op, values)
            for row, op, values in zip(
                places.tolist(), mine.column("op").to_pylist(), _tuples(mine, names), strict=True
            )
        )


def _taken(changes: Iterable[pa.RecordBatch], found: dict[int, list[int]]) -> Iterator[pa.RecordBatch]:
    """Rows of *changes* by the numbers of their batches."""
    for number, batch in enumerate(changes if found else ()):
        if number in found:
            yield batch.take(pa.array(sorted(found[number]), pa.int64()))


def _of_part(rows: pa.RecordBatch, names: Sequence[str], part: int, parts: int) -> NDArray[np.bool_]:
    """Which rows are of that part."""
    if parts == 1 or not names or not rows.num_rows:
        return np.ones(rows.num_rows, np.bool_)
    hashed = pa.table({name: _one_form(rows.column(name)) for name in names})
    mine: NDArray[np.bool_] = row_hashes(hashed, names) % np.uint64(parts) == part
    return mine


def _one_form(values: pa.Array) -> pa.Array:
    """*values*, equal ones with equal bits: 0.0 equals -0.0, and NaN has many forms."""
    if not pa.types.is_floating(values.type):
        return values
    nan = pa.scalar(math.nan, values.type)
    return pc.if_else(pc.is_nan(values), nan, pc.add(values, pa.scalar(0, values.type)))


def _in_part(
    selected: Iterable[pa.RecordBatch], names: Sequence[str], part: int, parts: int
) -> Iterator[pa.RecordBatch]:
    """The rows of that part."""
    for rows in selected:
        mine = _of_part(rows, names, part, parts)
        yield rows if mine.all() else rows_where(rows, mine)


def _untouched(
    rows: pa.RecordBatch, key: Sequence[str], keys: Sequence[pa.Array], first: dict[_Key, tuple[int, int, bool]]
) -> NDArray[np.bool_]:
    """Which rows have keys without a change: each column is compared with all at once, then the few that are left as a whole."""
    touched = np.ones(rows.num_rows, np.bool_)
    for name, values in zip(key, keys, strict=True):
        # 0.0 equals -0.0, but has another form.
        both = rows.column(name), values
        mine, theirs = (pc.add(each, 0.0) for each in both) if pa.types.is_floating(values.type) else both
        touched &= pc.is_in(mine, value_set=theirs).to_numpy(zero_copy_only=False)
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
