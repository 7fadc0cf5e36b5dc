"""Small mirrors are written anew: what they hold and the net change fold to one file, without a Spark job.

A merge costs seconds however small the table is; this costs what reading and writing a few megabytes does, and schema,
defaults of added columns and rows are one commit.
"""

from __future__ import annotations

from collections.abc import Sequence

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

__all__ = ["SMALL_BYTES", "rewritten"]

_OP = pa.field("op", pa.uint8())

SMALL_BYTES = 8 << 20
"""Up to this size of its files a mirror is written anew."""


def rewritten(
    directory: str,
    files: Sequence[str],
    schema: pa.Schema,
    snapshot: Snapshot,
    filled: Sequence[Column],
    upserts: Sequence[DataFile],
    partial: Sequence[DataFile],
    deletes: Sequence[DataFile],
) -> list[DataFile]:
    """New files of the mirror in *directory* that hold what *files* hold, with the net change applied.

    Args:
        directory: of the mirror.
        files: all that it holds; written under any of its earlier schemas.
        schema: of its files from now on, physical names.
        snapshot: the table's schema, whose key decides what a row replaces.
        filled: columns that rows of *files* lack and read a default in.
        upserts, partial, deletes: files of the rows to put, of those to put whose absent columns are as they were, and
            of the rows whose keys are to go.

    Raises:
        TableStopped: the mirror has no row that a partial one changes.
    """
    defaults = {physical_name(column.id): initial_scalar(column) for column in filled}
    parts = [_read(path, schema, defaults, Op.APPEND) for path in files]
    key = [physical_name(column_id) for column_id in snapshot.primary_key]
    if partial:
        held = pa.concat_tables(parts)
        rows = pa.concat_tables([_file(file.path) for file in partial])
        whole = pa.table(completed(rows, held, key, schema.names).columns, schema=schema)
        parts.append(whole.append_column(_OP, pa.repeat(pa.scalar(int(Op.APPEND), pa.uint8()), whole.num_rows)))
    parts += [_read(file.path, schema, {}, Op.APPEND) for file in upserts]
    parts += [_read(file.path, schema, {}, Op.RETRACT) for file in deletes]
    last = net_changes(pa.concat_tables(parts), key)
    stays = pc.not_equal(last.column("op"), pa.scalar(int(Op.RETRACT), pa.uint8()))
    writer = FileWriter(directory, schema)
    for batch in last.filter(stays).select(schema.names).to_batches():
        writer.write(batch)
    return writer.close()


def _read(path: str, schema: pa.Schema, defaults: dict[str, pa.Scalar], op: Op) -> pa.Table:
    table = _file(path)
    columns = [_column(table, field, defaults) for field in schema]
    marks = pa.repeat(pa.scalar(int(op), pa.uint8()), table.num_rows)
    return pa.table([*columns, marks], schema=schema.append(_OP))


def _file(path: str) -> pa.Table:
    system, place = pafs.FileSystem.from_uri(path)
    return pq.ParquetFile(system.open_input_file(place)).read()


def _column(table: pa.Table, field: pa.Field, defaults: dict[str, pa.Scalar]) -> pa.Array | pa.ChunkedArray:
    if field.name in table.schema.names:
        return _widened(table.column(field.name), field.type)
    if field.name in defaults:
        return pa.repeat(defaults[field.name], table.num_rows)
    return pa.nulls(table.num_rows, field.type)


def _widened(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_integer(values.type) and pa.types.is_decimal(kind):
        # Arrow asks for room for every integer of the type, not for those that are there.
        values = pc.cast(values, pa.decimal128(MAX_DECIMAL_DIGITS, 0))
    return pc.cast(values, kind)
