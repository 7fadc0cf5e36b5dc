"""Folding changelog rows that lack columns: to the last image of each key, each value from the last row that tells it.

What no row of the changelog tells is as it was before. That is in the row of the key that the change began with, which a change
of the key moves to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from historian.changelog.folding import rows_by_key
from historian.changelog.missing_columns import ABSENT, UNSEEN, WHOLE_IMAGES, marked
from historian.changelog.operations import Op
from historian.errors import TableStopped

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FROM", "PartialNet", "completed", "missing_row", "partial_net"]

FROM = "from_"
"""In front of a key column's name: the key that a row had before the changes."""

_PLACE = ("source", "sequence", "ordinal")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialNet:
    """The net change of rows that lack columns; each key once.

    Attributes:
        whole: rows to put that are told in full.
        partial: rows to put whose columns in :data:`~historian.changelog.missing_columns.ABSENT`, a list of names, are those of the row
            that had the key ``from_*`` before.
        unseen: rows to put that nobody can complete: their columns in :data:`~historian.changelog.missing_columns.UNSEEN`, a list of
            names, changed unseen.
        gone: rows whose keys are to go.
    """

    whole: pa.Table
    partial: pa.Table
    unseen: pa.Table
    gone: pa.Table


def partial_net(rows: pa.Table, key: Sequence[str], columns: Sequence[str]) -> PartialNet:
    """Folds changelog rows of one table in log order.

    Args:
        rows: with ``op``, the columns that place an event, *columns*, and bitmaps over *columns*
            (:mod:`historian.changelog.missing_columns`).
        key: names of the key's columns.
        columns: all data columns.

    A row that lacks a column of its key is the only one of the result, since nothing can be said without it.
    """
    absent, unseen = (marked(rows, name, len(columns)) for name in (ABSENT, UNSEEN))
    keyless = absent[:, [columns.index(name) for name in key]].any(axis=1)
    if keyless.any():
        none = rows.select(list(columns)).slice(0, 0)
        lost = rows.slice(int(keyless.argmax()), 1).select(list(columns))
        told = {name: lost.column(name) for name in columns} | {f"{FROM}{name}": lost.column(name) for name in key}
        lists = _names(absent[keyless][:1], columns)
        return PartialNet(whole=none, partial=none, unseen=pa.table({**told, ABSENT: lists, UNSEEN: lists}), gone=none)
    op = rows.column("op").to_numpy().astype(np.int64)
    former, last = _formers(rows, op, key)
    stays = (op[last] != Op.RETRACT).nonzero()[0]
    kept, gone = last[stays], np.delete(last, stays)
    values: dict[str, pa.ChunkedArray] = {}
    lacks = np.zeros((len(kept), len(columns)), np.bool_)
    hidden = np.zeros((len(kept), len(columns)), np.bool_)
    for at, name in enumerate(columns):
        told = _jumped(former, ~absent[:, at] | unseen[:, at])[kept]
        values[name] = rows.column(name).take(pa.array(told))
        lacks[:, at] = absent[told, at]
        hidden[:, at] = unseen[told, at]
    origin = _jumped(former, np.zeros(len(op), np.bool_))[kept]
    found = {f"{FROM}{name}": rows.column(name).take(pa.array(origin)) for name in key}
    found |= {ABSENT: _names(lacks, columns), UNSEEN: _names(hidden, columns)}
    table = pa.table({**values, **found})
    lost = hidden.any(axis=1)
    some = lacks.any(axis=1) & ~lost
    return PartialNet(
        whole=table.filter(pa.array(~some & ~lost)).select(list(columns)),
        partial=table.filter(pa.array(some)),
        unseen=table.filter(pa.array(lost)),
        gone=rows.select(list(columns)).take(pa.array(gone)),
    )


def _formers(rows: pa.Table, op: NDArray[Any], key: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each row the one that it changes, itself where that is not among them; and the last row of each key."""
    count = len(op)
    former = np.arange(count)
    order, first = (np.asarray(part) for part in rows_by_key(rows, key))
    before = np.empty(count, np.int64)
    before[order[1:]] = order[:-1]
    begins = np.empty(count, np.bool_)
    begins[order] = first
    # What is taken back is the row that the key had, unless it had none here.
    takes = np.isin(op, (Op.RETRACT, Op.CORRECT_FROM)) & ~begins
    takes[takes] = np.isin(op[before[takes]], (Op.APPEND, Op.CORRECT_TO))
    former[takes] = before[takes]
    follows = np.zeros(count, np.bool_)
    follows[1:] = op[:-1] == Op.RETRACT
    for name in _PLACE:
        values = rows.column(name).to_numpy()
        follows[1:] &= values[1:] == values[:-1]
    follows = (op == Op.CORRECT_TO) | ((op == Op.APPEND) & follows)
    former[follows] = np.flatnonzero(follows) - 1
    ends = np.append(first[1:], True)
    return former, np.sort(order[ends])


def _jumped(former: NDArray[Any], told: NDArray[np.bool_]) -> NDArray[Any]:
    """For each row the nearest one back, itself included, that is *told* or that no row comes before."""
    target = np.where(told, np.arange(len(former)), former)
    while True:
        further = target[target]
        if np.array_equal(further, target):
            return target
        target = further


def _names(bits: NDArray[np.bool_], columns: Sequence[str]) -> pa.Array:
    distinct, which = np.unique(bits, axis=0, return_inverse=True)
    lists = [[name for name, bit in zip(columns, row, strict=True) if bit] for row in distinct.tolist()]
    return pa.array(lists, pa.list_(pa.string())).take(pa.array(which.reshape(-1)))


def completed(partial: pa.Table, held: pa.Table, key: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """The rows of :attr:`PartialNet.partial` with the columns that they lack, from the table's rows *held* before.

    Raises:
        TableStopped: *held* has no row of a key.
    """
    wanted = pa.table({name: partial.column(f"{FROM}{name}").cast(held.schema.field(name).type) for name in key})
    keys = pa.concat_tables([held.select(list(key)), wanted])
    order, first = (np.asarray(part) for part in rows_by_key(keys, key))
    # A group is the held row of a key, then the one that wants it.
    wants = np.flatnonzero(order >= held.num_rows)
    lost = wants[first[wants]]
    if len(lost):
        row = wanted.slice(int(order[lost[0]]) - held.num_rows, 1).to_pylist()[0]
        raise missing_row(", ".join(map(str, row.values())))
    place = np.empty(partial.num_rows, np.int64)
    place[order[wants] - held.num_rows] = order[wants - 1]
    found = held.take(pa.array(place))
    lists = partial.column(ABSENT).to_pylist()
    arrays = []
    for name in columns:
        lacks = pa.array([name in names for names in lists], pa.bool_())
        own, other = partial.column(name).combine_chunks(), found.column(name).combine_chunks()
        indices = np.where(lacks.to_numpy(zero_copy_only=False), partial.num_rows, 0) + np.arange(partial.num_rows)
        arrays.append(pa.concat_arrays([own.cast(other.type), other]).take(pa.array(indices)))
    return pa.table(arrays, names=list(columns))


def missing_row(key: str) -> TableStopped:
    """The error for a change of a row that a mirror does not have, and whose images do not tell it whole."""
    return TableStopped(
        "a change of a row that the mirror lacks, whose images lack columns",
        where=f"key {key}",
        expected=f"all rows in the mirror from the table's beginning on, or {WHOLE_IMAGES}",
        next_step="replicate the table from its beginning, or keep a changelog of it without a mirror",
    )
