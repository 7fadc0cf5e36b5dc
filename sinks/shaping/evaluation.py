"""Chunks of tables with expressions pass through Spark as typed rows, and come out as chunks again, in the shape of the lake.

Rows keep their order in their partition: each chunk travels with its first row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from historian.changelog import physical_name
from historian.chunks import chunk_row, chunks_of
from historian.schema import Snapshot
from sinks.shaping.expressions import seen_columns, seen_schema
from sinks.shaping.rows import Evaluated, shaped_chunk
from sinks.shaping.tables import TableShape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["evaluated_chunks"]

_CHUNK = "__historian_chunk"
_KEEP = "__historian_keep"

_Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def evaluated_chunks(chunks: DataFrame, written: Snapshot, shape: TableShape) -> DataFrame:
    """The shaped chunks of *chunks* (:data:`historian.chunks.CHUNK_STREAM`), all of one table and version, none without rows.

    Chunks of which no row stays are left out.
    """
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom
    from pyspark.sql.types import BinaryType, StructField, StructType

    columns = seen_columns(written, shape.bindings)
    schema = StructType([StructField(_CHUNK, BinaryType()), *seen_schema(columns).fields])
    names = {name: physical_name(column.id) for name, column in columns.items()}
    rules = shape.bindings.rules
    keep = F.expr(f"({rules.where})") if rules.where else F.lit(True)
    computed = [
        F.expr(f"({text})").alias(physical_name(column.id))
        for (_, text), column in zip(rules.compute, shape.computed, strict=True)
    ]
    rows = chunks.mapInArrow(_typed(names), schema)
    return rows.select(_CHUNK, keep.alias(_KEEP), *computed).mapInArrow(_shaped(written, shape), chunks.schema)


def _typed(names: Mapping[str, str]) -> _Batches:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in range(batch.num_rows):
                row = batch.slice(at, 1)
                rows = next(chunks_of(row)).rows
                whole = pa.array([_packed(row)], pa.binary())
                first = pa.concat_arrays([whole, pa.nulls(rows.num_rows - 1, pa.binary())])
                columns = [rows.column(physical) for physical in names.values()]
                yield pa.RecordBatch.from_arrays([first, *columns], names=[_CHUNK, *names])

    return run


def _shaped(written: Snapshot, shape: TableShape) -> _Batches:
    computed = [column.id for column in shape.computed]

    def shaped(chunk: bytes, parts: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(parts).combine_chunks()
        values = {number: rows.column(physical_name(number)).combine_chunks() for number in computed}
        evaluated = Evaluated(keep=rows.column(_KEEP).combine_chunks(), computed=values)
        one = shaped_chunk(next(chunks_of(_unpacked(chunk))), written, shape, evaluated)
        if one.rows.num_rows:
            yield chunk_row(one)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chunk, parts = b"", list[pa.RecordBatch]()
        for batch in batches:
            starts = batch.column(_CHUNK).is_valid().to_pylist()
            begin = 0
            for at, starts_chunk in enumerate(starts):
                if starts_chunk:
                    if at > begin:
                        parts.append(batch.slice(begin, at - begin))
                    if parts:
                        yield from shaped(chunk, parts)
                    chunk, parts, begin = batch.column(_CHUNK)[at].as_py(), [], at
            parts.append(batch.slice(begin))
        if parts:
            yield from shaped(chunk, parts)

    return run


def _packed(row: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as writer:
        writer.write_batch(row)
    return bytes(sink.getvalue())


def _unpacked(data: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(data).read_next_batch()
