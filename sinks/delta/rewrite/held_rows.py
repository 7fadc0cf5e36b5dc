"""Rows of a table's files, read under the schema that the table has now, whatever they were written under."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from historian.values.arrow_types import MAX_DECIMAL_DIGITS
from sinks.contract.storage import located, reading
from sinks.rows.variant import fitted

__all__ = ["SMALL_BYTES", "WantedRows", "groups", "read", "whole", "widened"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRows:
    """Some rows of files: *names* of the columns that tell them, and whether a table of these columns has one."""

    names: Sequence[str]
    has_some: Callable[[pa.Table], bool]


SMALL_BYTES = 8 << 20
"""Up to this size files are worked on where the sink runs, without a Spark job."""


def read(path: str, schema: pa.Schema, defaults: Mapping[str, pa.Scalar] | None = None) -> pa.Table:
    """The rows of a file in *schema*; columns that they lack read *defaults*, or NULL."""
    return pa.concat_tables([schema.empty_table(), *groups(path, schema, defaults or {})])


def groups(
    path: str, schema: pa.Schema, defaults: Mapping[str, pa.Scalar], wanted: WantedRows | None = None
) -> Iterator[pa.Table]:
    """The same, one row group of the file after the other; those without *wanted* rows are left out."""
    system, place = located(path)
    with reading(path):
        stream = system.open_input_file(place)
        file = pq.ParquetFile(stream)
    with stream:
        held = [name for name in schema.names if name in file.schema_arrow.names]
        for number in range(file.num_row_groups):
            if wanted is not None and not _has_some(file, path, number, schema, wanted):
                continue
            with reading(path):
                rows = file.read_row_group(number, held)
            yield pa.table([_column(rows, field, defaults) for field in schema], schema=schema)


def _has_some(file: pq.ParquetFile, path: str, number: int, schema: pa.Schema, wanted: WantedRows) -> bool:
    """Whether a row group has such rows, by the columns that tell them alone."""
    names = [name for name in wanted.names if name in file.schema_arrow.names]
    with reading(path):
        rows = file.read_row_group(number, names)
    fields = [schema.field(name) for name in wanted.names]
    return not names or wanted.has_some(
        pa.table([_column(rows, field, {}) for field in fields], schema=pa.schema(fields))
    )


def whole(path: str) -> pa.Table:
    """The rows of a file as they stand there."""
    system, place = located(path)
    with reading(path):
        return pq.ParquetFile(system.open_input_file(place)).read()


def _column(table: pa.Table, field: pa.Field, defaults: Mapping[str, pa.Scalar]) -> pa.Array | pa.ChunkedArray:
    if field.name in table.schema.names:
        return widened(table.column(field.name), field.type)
    if field.name in defaults:
        return fitted(pa.repeat(defaults[field.name], table.num_rows), field.type)
    return fitted(pa.nulls(table.num_rows), field.type)


def widened(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """*values* in a type that holds each as it is."""
    if pa.types.is_integer(values.type) and pa.types.is_decimal(kind):
        # Arrow asks for room for every integer of the type, not for those that are there.
        values = pc.cast(values, pa.decimal128(MAX_DECIMAL_DIGITS, 0))
    return fitted(values, kind)
