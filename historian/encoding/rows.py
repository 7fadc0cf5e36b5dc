"""Whole rows to cells and back: column ids, values and a checksum in one binary value a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.encoding.datums import bytes_of, cells, datums_of, join, kind_of, valid_of
from historian.encoding.fields import field_id, row_schema
from historian.encoding.kernels import containers as kernels
from historian.encoding.risingwave import read_columns
from historian.encoding.values import ColumnCells, array_of, find, require_whole
from historian.errors import HistorianError, RowCorrupt
from historian.schema.snapshots import Snapshot
from historian.values.texts import initial_scalar

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["decode_rows", "encode_rows", "read_rows"]

_BLOCK_ROWS = 10_000  # so that what one step writes is in the cache when the next comes; no power of two: columns would share lines

_Default = Callable[[int], pa.Scalar]


def encode_rows(rows: pa.RecordBatch) -> pa.Array:
    """Each row as a binary value in the second form of docs/reference/row-encoding.md.

    Args:
        rows: columns, and the fields of structs in them, with ids (:func:`~historian.encoding.fields.with_id`).

    Raises:
        ValueUnrepresentable: a type that has no form.
        HistorianError: a field without id or two of one id; more than 2 GiB of cells.
    """
    fields, count = list(rows.schema), rows.num_rows
    ids, kinds = [field_id(field) for field in fields], [kind_of(field.type) for field in fields]
    blocks = []
    for begin in range(0, max(count, 1), _BLOCK_ROWS):
        block = rows.slice(begin, _BLOCK_ROWS)
        columns = [datums_of(column) for column in block.columns]
        blocks.append(cells(join(columns, kinds, ids, count=block.num_rows, checksum=True)))
    try:
        return pa.concat_arrays(blocks)
    except pa.ArrowInvalid as error:
        raise HistorianError(
            "encoded rows take more than an Arrow array holds",
            found=str(error),
            next_step="encode fewer rows at a time",
        ) from error


def read_rows(encoded: pa.Array, snapshot: Snapshot, columns: Iterable[int] | None = None) -> pa.RecordBatch:
    """Cells under the schema *snapshot*, whatever schema each was written under: columns by physical name.

    A column that a row lacks reads what held when the column was added. A NULL that was stored stays NULL.

    Args:
        encoded: of :func:`encode_rows`.
        snapshot: the schema to read under.
        columns: ids of the columns wanted; None: all. Others are not read.

    Raises:
        RowCorrupt: a cell is no valid row.
        ValueUnrepresentable: a value does not fit the column's type, or a row lacks a column whose first value only the
            server knows.
    """
    by_id = {column.id: column for column in snapshot.columns}
    return decode_rows(encoded, row_schema(snapshot, columns), lambda number: initial_scalar(by_id[number]))


def decode_rows(encoded: pa.Array, schema: pa.Schema, default: _Default | None = None) -> pa.RecordBatch:
    """Cells of either form as rows of *schema*, whose fields have ids; columns that it does not name are not read.

    Args:
        encoded: binary, without NULLs.
        schema: may name columns in any order, and such as no row has.
        default: gives what rows without a column read in it, by its id; asked only where there are some. None: NULL.

    Raises:
        RowCorrupt: a cell is no valid row.
        ValueUnrepresentable: a value does not fit the type wanted.
    """
    if encoded.null_count:
        raise RowCorrupt("a row's cell is NULL", expected="bytes")
    if not len(schema):
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(encoded), pa.struct([])))
    blocks = [
        _decoded(encoded.slice(begin, _BLOCK_ROWS), schema, default)
        for begin in range(0, max(len(encoded), 1), _BLOCK_ROWS)
    ]
    return pa.RecordBatch.from_arrays([pa.concat_arrays(parts) for parts in zip(*blocks, strict=True)], schema=schema)


def _decoded(encoded: pa.Array, schema: pa.Schema, default: _Default | None) -> list[pa.Array]:
    datums = bytes_of(encoded, valid_of(encoded))
    rows = ColumnCells(
        data=datums.data, starts=datums.starts, lengths=datums.lengths, states=np.full(len(datums), 2, np.int64)
    )
    found = zip(schema, _columns(rows, schema, _is_second(rows)), strict=True)
    return [_filled(field, *column, default) for field, column in found]


_Column = tuple[pa.Array, "NDArray[np.bool_]"]


def _columns(rows: ColumnCells, schema: pa.Schema, second: NDArray[np.bool_]) -> list[_Column]:
    """Each column's values and where it is missing."""
    if second.all():
        return _second(rows, schema)
    if not second.any():
        return read_columns(rows, schema)
    order = np.argsort(np.concatenate((np.flatnonzero(second), np.flatnonzero(~second))))
    new = _second(_chosen(rows, second), schema)
    old = read_columns(_chosen(rows, ~second), schema)
    return [
        (pa.concat_arrays([a, b]).take(pa.array(order)), np.concatenate((m, n))[order])
        for (a, m), (b, n) in zip(new, old, strict=True)
    ]


def _is_second(rows: ColumnCells) -> NDArray[np.bool_]:
    """Which cells are of the second form, by the first byte; all must be of the first or second."""
    flags = np.zeros(len(rows.starts), np.uint8)
    some = rows.lengths > 0
    flags[some] = rows.data[rows.starts[some]]
    neither = np.flatnonzero(flags & 0x80 == 0)
    require_whole(int(neither[0]) if len(neither) else -1, rows, "encoded row")
    second: NDArray[np.bool_] = flags & kernels.MAGIC == kernels.MAGIC
    return second


def _chosen(rows: ColumnCells, chosen: NDArray[np.bool_]) -> ColumnCells:
    return ColumnCells(
        data=rows.data, starts=rows.starts[chosen], lengths=rows.lengths[chosen], states=rows.states[chosen]
    )


def _second(rows: ColumnCells, schema: pa.Schema) -> list[_Column]:
    wrong = kernels.wrong_checksum(rows.data, rows.starts, rows.lengths)
    require_whole(wrong, rows, "encoded row with a right checksum")
    columns = find(rows, [field_id(field) for field in schema])
    return [(array_of(c, f.type, f.name), c.states == 0) for c, f in zip(columns, schema, strict=True)]


def _filled(field: pa.Field, values: pa.Array, missing: NDArray[np.bool_], default: _Default | None) -> pa.Array:
    if default is None or not missing.any():
        return values
    return pc.if_else(pa.array(missing), default(field_id(field)), values)
