"""What differs between the rows that targets hold and those of the source, in Arrow: as changelog rows, in order of key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.folding import BAG_COUNT, summed_bags
from historian.changelog.merging.matching import KeyIndex
from historian.changelog.operations import Op
from historian.changelog.row_images import differing
from sinks.rows.shapes import two_rows

__all__ = ["OP", "differences"]

OP = pa.field("op", pa.uint8(), nullable=False)


def differences(held: pa.Table, rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """:data:`OP`, then the columns of *held*: +A, -R, and -C directly followed by +C, which lead from *held* to *rows*.

    What both have alike gives nothing. The order follows from the rows alone, whatever order they come in.

    Args:
        held: the rows that are there.
        rows: those that are to be there, in the same columns and types.
        key: names of the key's columns; (): rows count as whole ones, each as often as it stands there.

    Raises:
        TableStopped: two of the rows have one key.
    """
    return _by_key(held, rows, key) if key else _as_bags(held, rows)


def _by_key(held: pa.Table, rows: pa.Table, key: Sequence[str]) -> pa.Table:
    index = KeyIndex(rows, key)
    if index.count < rows.num_rows:
        raise two_rows(_twice(rows, index.numbers, key))
    places = np.empty(index.count, np.int64)
    places[index.numbers] = np.arange(rows.num_rows)
    found = index.find(held) if index.count else np.full(held.num_rows, -1)
    known = KeyIndex(held, key)
    if known.count < held.num_rows:
        raise two_rows(_twice(held, known.numbers, key))
    mine = np.flatnonzero(found >= 0)
    theirs = places[found[mine]]
    masks = differing(_as_bits(held.take(pa.array(mine))), _as_bits(rows.take(pa.array(theirs))), held.schema.names)
    other = np.any(list(masks.values()), axis=0) if masks else np.zeros(len(mine), bool)
    is_new = np.ones(rows.num_rows, bool)
    is_new[theirs] = False
    return _ordered(
        [
            (Op.RETRACT, held.take(pa.array(np.flatnonzero(found < 0)))),
            (Op.CORRECT_FROM, held.take(pa.array(mine[other]))),
            (Op.CORRECT_TO, rows.take(pa.array(theirs[other]))),
            (Op.APPEND, rows.take(pa.array(np.flatnonzero(is_new)))),
        ],
        key,
    )


def _as_bits(rows: pa.Table) -> pa.Table:
    """*rows* with the bits of floats in their place, so that a zero of another sign differs."""
    columns = [
        pa.chunked_array([values.view(f"int{column.type.bit_width}") for values in column.chunks])
        if pa.types.is_floating(column.type)
        else column
        for column in rows.columns
    ]
    return pa.table(columns, names=rows.schema.names)


def _as_bags(held: pa.Table, rows: pa.Table) -> pa.Table:
    signs = [pa.repeat(pa.scalar(sign, pa.int64()), table.num_rows) for sign, table in ((-1, held), (1, rows))]
    bags = [table.append_column(BAG_COUNT, sign) for table, sign in zip((held, rows), signs, strict=True)]
    bag = summed_bags(pa.concat_tables(bags))
    counts, names = bag.column(BAG_COUNT).to_numpy(), held.schema.names
    fewer, more = (bag.take(pa.array(np.arange(len(n)).repeat(n))) for n in (-counts.clip(max=0), counts.clip(min=0)))
    return _ordered([(Op.RETRACT, fewer.select(names)), (Op.APPEND, more.select(names))], names)


def _ordered(parts: Sequence[tuple[Op, pa.Table]], order: Sequence[str]) -> pa.Table:
    """-C before its +C; a key has no other two rows."""
    tables = [
        rows.add_column(0, OP, pa.chunked_array([pa.repeat(pa.scalar(int(op), pa.uint8()), rows.num_rows)]))
        for op, rows in parts
    ]
    found = pa.concat_tables(tables)
    return found.take(pc.sort_indices(found, [(name, "ascending") for name in (*order, OP.name)]))


def _twice(
    rows: pa.Table, numbers: np.ndarray[tuple[int], np.dtype[np.int64]], key: Sequence[str]
) -> dict[str, object]:
    at = int(np.flatnonzero(np.bincount(numbers)[numbers] > 1)[0])
    found: dict[str, object] = rows.select(list(key)).slice(at, 1).to_pylist()[0]
    return found
