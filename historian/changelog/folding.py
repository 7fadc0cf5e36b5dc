"""Folding a changelog: to the last image of each key, or, without a key, to a bag of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import Op
from historian.errors import HistorianError

__all__ = ["BAG_COUNT", "fold_bag", "key_numbers", "net_changes", "rows_by_key", "summed_bags"]

BAG_COUNT = "__count"
"""Column of a bag: how often its row is there."""

_ROW = "__row"

_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)


def net_changes(rows: _Rows, key: Sequence[str]) -> _Rows:
    """The last row of each key, in the order of *rows*; one whose ``op`` is -R says that the key goes.

    Keys compare as stored bytes, but -0.0 is 0.0, as for the server. Folding parts first, then what they folded to,
    gives the same.

    Args:
        rows: changelog rows in log order with a column ``op``; others as they come. A table may hold more than fits into
            one batch, whose texts and binaries end at 2 GiB a column; its chunks stay as they are.
        key: names of the key's columns, at least one.

    Raises:
        HistorianError: a key ends with -C, whose +C is missing.
    """
    if rows.num_rows == 0:
        return rows
    last = _grouped(rows, key).aggregate([(_ROW, "max")]).column(f"{_ROW}_max")
    stays = np.zeros(rows.num_rows, dtype=bool)
    stays[last.to_numpy()] = True
    kept = rows.filter(pa.array(stays))
    if pc.any(pc.equal(kept.column("op"), pa.scalar(int(Op.CORRECT_FROM), kept.schema.field("op").type))).as_py():
        raise HistorianError("a changelog is cut between -C and +C", expected="+C directly behind its -C")
    return kept


def fold_bag(rows: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> pa.Table:
    """Each distinct row of *columns* with :data:`BAG_COUNT`: one more for each +A and +C, one less for each -R and -C.

    Rows that come to zero are left out; part of a changelog may come to less. Floats compare as stored bytes.
    """
    adds = pc.is_in(rows.column("op").cast(pa.int64()), value_set=pa.array([int(Op.APPEND), int(Op.CORRECT_TO)]))
    signs = pc.if_else(adds, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
    return summed_bags(pa.table([*(rows.column(name) for name in columns), signs], names=[*columns, BAG_COUNT]))


def summed_bags(bags: pa.Table) -> pa.Table:
    """Bags one behind the other as one: counts of the same row are added; rows that come to zero are left out."""
    columns = [name for name in bags.schema.names if name != BAG_COUNT]
    counted = bags.group_by(columns, use_threads=False).aggregate([(BAG_COUNT, "sum")])
    bag = pa.table([*counted.select(columns).columns, counted.column(f"{BAG_COUNT}_sum")], schema=bags.schema)
    return bag.filter(pc.not_equal(bag.column(BAG_COUNT), 0))


def rows_by_key(rows: pa.RecordBatch | pa.Table, key: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """Row numbers key by key, each key's in the order of *rows*, and for each whether it is its key's first."""
    lists = _grouped(rows, key).aggregate([(_ROW, "list")]).column(f"{_ROW}_list").combine_chunks()
    order = lists.flatten()
    first = np.zeros(len(order), dtype=bool)
    first[lists.offsets.to_numpy()[:-1]] = True
    return order, pa.array(first)


def key_numbers(rows: pa.RecordBatch | pa.Table, key: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each row a number that rows of the same key share: 0 for the first key met, and on without a gap."""
    order, first = rows_by_key(rows, key)
    numbers = np.empty(rows.num_rows, dtype=np.int64)
    numbers[order.to_numpy()] = np.cumsum(first.to_numpy(zero_copy_only=False)) - 1
    return numbers


def _grouped(rows: pa.RecordBatch | pa.Table, key: Sequence[str]) -> pa.TableGroupBy:
    columns = [_with_one_zero(rows.column(name)) for name in key]
    table = pa.table([*columns, pa.array(np.arange(rows.num_rows))], names=[*key, _ROW])
    return table.group_by(list(key), use_threads=False)


def _with_one_zero(values: pa.Array) -> pa.Array:
    return pc.add(values, pa.scalar(0.0, values.type)) if pa.types.is_floating(values.type) else values
