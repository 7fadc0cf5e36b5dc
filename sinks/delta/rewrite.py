"""Small mirrors are written anew: what they hold and the net change fold to one file, without a Spark job.

A merge costs seconds however small the table is; this costs what reading and writing a few megabytes does, and schema,
defaults of added columns and rows are one commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from historian.changelog import Op, physical_name
from historian.fold import net_changes
from historian.partial_fold import completed
from historian.schema import Column, Snapshot
from historian.types import MAX_DECIMAL_DIGITS
from historian.values import initial_scalar
from sinks.delta.files import FileWriter
from sinks.delta.kernel import DataFile
from sinks.delta.schema import DELETED
from sinks.delta.staged import NetFiles
from sinks.variant import fitted

__all__ = ["SMALL_BYTES", "read", "rewritten"]

_OP = pa.field("op", pa.uint8())

SMALL_BYTES = 8 << 20
"""Up to this size of its files a mirror is written anew."""


def rewritten(
    directory: str,
    files: Sequence[str],
    schema: pa.Schema,
    snapshot: Snapshot,
    filled: Sequence[Column],
    net: NetFiles,
    *,
    deleted_at_us: int | None = None,
) -> list[DataFile]:
    """New files of the mirror in *directory* that hold what *files* hold, with the net change applied.

    Args:
        directory: of the mirror.
        files: all that it holds; written under any of its earlier schemas.
        schema: of its files from now on, physical names.
        snapshot: the table's schema, whose key decides what a row replaces.
        filled: columns that rows of *files* lack and read a default in.
        net: the net change; absent columns of partial rows are as they were.
        deleted_at_us: when all rows of *files* were deleted, in a mirror that keeps them; None: they were not.

    Raises:
        TableStopped: the mirror has no row that a partial one changes.
    """
    defaults = {physical_name(column.id): initial_scalar(column) for column in filled}
    held = [read(path, schema, defaults) for path in files]
    if deleted_at_us is not None:
        held = [_deleted(rows, deleted_at_us) for rows in held]
    parts = [_marked(rows, Op.APPEND) for rows in held]
    key = [physical_name(column_id) for column_id in snapshot.primary_key]
    if net.partial:
        rows = pa.concat_tables([_file(file.path) for file in net.partial])
        whole = completed(rows, pa.concat_tables(parts), key, schema.names)
        parts.append(_marked(pa.table(whole.columns, schema=schema), Op.APPEND))
    parts += [_marked(read(file.path, schema, {}), Op.APPEND) for file in net.whole]
    parts += [_marked(read(file.path, schema, {}), Op.RETRACT) for file in net.gone]
    last = net_changes(pa.concat_tables(parts), key)
    stays = pc.not_equal(last.column("op"), pa.scalar(int(Op.RETRACT), pa.uint8()))
    writer = FileWriter(directory, schema)
    for batch in last.filter(stays).select(schema.names).to_batches():
        writer.write(batch)
    return writer.close()


def read(path: str, schema: pa.Schema, defaults: Mapping[str, pa.Scalar]) -> pa.Table:
    """The rows of a file, written under any earlier schema, in *schema*; columns that they lack read *defaults*, or NULL."""
    table = _file(path)
    return pa.table([_column(table, field, defaults) for field in schema], schema=schema)


def _file(path: str) -> pa.Table:
    system, place = pafs.FileSystem.from_uri(path)
    return pq.ParquetFile(system.open_input_file(place)).read()


def _marked(rows: pa.Table, op: Op) -> pa.Table:
    return rows.append_column(_OP, pa.repeat(pa.scalar(int(op), pa.uint8()), rows.num_rows))


def _deleted(rows: pa.Table, at_us: int) -> pa.Table:
    flag, time = (rows.schema.get_field_index(name) for name in DELETED)
    at = pa.scalar(at_us, rows.schema.field(time).type)
    rows = rows.set_column(time, rows.schema.field(time), pc.if_else(rows.column(flag), rows.column(time), at))
    return rows.set_column(flag, rows.schema.field(flag), pa.repeat(True, rows.num_rows))


def _column(table: pa.Table, field: pa.Field, defaults: Mapping[str, pa.Scalar]) -> pa.Array | pa.ChunkedArray:
    if field.name in table.schema.names:
        return _widened(table.column(field.name), field.type)
    if field.name in defaults:
        return fitted(pa.repeat(defaults[field.name], table.num_rows), field.type)
    return fitted(pa.nulls(table.num_rows), field.type)


def _widened(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_integer(values.type) and pa.types.is_decimal(kind):
        # Arrow asks for room for every integer of the type, not for those that are there.
        values = pc.cast(values, pa.decimal128(MAX_DECIMAL_DIGITS, 0))
    return fitted(values, kind)
