"""Rows of tables with expressions pass through Spark, and come out as chunks again, in the shape of the lake.

Of chunks in this process the columns that expressions use go there and what they give comes back. On executors whole chunks go,
each with its first row, since rows keep their order in their partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from historian.changelog.chunks import Chunk, chunk_row, chunks_of
from historian.changelog.operations import physical_name
from historian.schema.snapshots import Column, Snapshot
from sinks.shaping.expressions import seen_columns, seen_schema
from sinks.shaping.rows import EvaluatedRows, shaped_chunk
from sinks.shaping.tables import TableShape

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Written", "evaluated_chunks", "evaluated_frame"]

_CHUNK = "__historian_chunk"
_ROW = "__historian_row"
_KEEP = "__historian_keep"

_Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Written = Mapping[tuple[int, int], Snapshot]
"""Table id and version to the source's schema."""


def evaluated_chunks(
    spark: SparkSession, chunks: Sequence[Chunk], written: Written, shape: TableShape
) -> Iterator[Chunk]:
    """The shaped chunks of *chunks*, all of one table; those of which no row stays are left out."""
    ordered = sorted(chunks, key=lambda chunk: (chunk.version, chunk.sequence))
    for version, group in groupby(ordered, lambda chunk: chunk.version):
        same = list(group)
        snapshot = written[same[0].table_id, version]
        values = _values(spark, same, snapshot, shape)
        at = 0
        for chunk in same:
            count = chunk.rows.num_rows
            yield from _some(shaped_chunk(chunk, snapshot, shape, _evaluated(values.slice(at, count), shape)))
            at += count


def evaluated_frame(chunks: DataFrame, table_id: int, written: Written, shape: TableShape) -> DataFrame:
    """The same for chunks as :data:`historian.changelog.chunks.CHUNK_STREAM`, none without rows."""
    frames = [
        _frame(chunks.where(f"table_id = {table_id} and version = {version}"), snapshot, shape)
        for (table, version), snapshot in written.items()
        if table == table_id
    ]
    return reduce(lambda one, other: one.unionByName(other), frames)


def _used(written: Snapshot, shape: TableShape) -> dict[str, Column]:
    return {name: c for name, c in seen_columns(written, shape.bindings).items() if c.id in shape.uses}


def _terms(shape: TableShape) -> list[SparkColumn]:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    rules = shape.bindings.rules
    keep = F.expr(f"({rules.where})") if rules.where else F.lit(True)
    computed = zip(rules.compute, shape.computed, strict=True)
    return [
        keep.alias(_KEEP),
        *(F.expr(f"({text})").alias(physical_name(column.id)) for (_, text), column in computed),
    ]


def _evaluated(rows: pa.Table, shape: TableShape) -> EvaluatedRows:
    columns = {name: rows.column(name).combine_chunks() for name in rows.schema.names}
    computed = {column.id: columns[physical_name(column.id)] for column in shape.computed}
    return EvaluatedRows(keep=columns[_KEEP], computed=computed)


def _some(chunk: Chunk) -> Iterator[Chunk]:
    if chunk.rows.num_rows:
        yield chunk


def _values(spark: SparkSession, chunks: Sequence[Chunk], written: Snapshot, shape: TableShape) -> pa.Table:
    from pyspark.sql.types import LongType, StructField, StructType

    columns = _used(written, shape)
    schema = StructType([StructField(_ROW, LongType()), *seen_schema(columns).fields])
    rows = pa.Table.from_batches(
        [chunk.rows.select([physical_name(c.id) for c in columns.values()]) for chunk in chunks]
    )
    count = sum(chunk.rows.num_rows for chunk in chunks)
    table = pa.table([pa.array(range(count), pa.int64()), *rows.columns], names=[_ROW, *columns])
    found: Any = spark.createDataFrame(table, schema).select(_ROW, *_terms(shape)).toArrow()
    return found.sort_by(_ROW).drop_columns([_ROW])


def _frame(chunks: DataFrame, written: Snapshot, shape: TableShape) -> DataFrame:
    from pyspark.sql.types import BinaryType, StructField, StructType

    columns = _used(written, shape)
    schema = StructType([StructField(_CHUNK, BinaryType()), *seen_schema(columns).fields])
    names = {name: physical_name(column.id) for name, column in columns.items()}
    rows = chunks.mapInArrow(_typed(names), schema)
    return rows.select(_CHUNK, *_terms(shape)).mapInArrow(_shaped(written, shape), chunks.schema)


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
    def shaped(chunk: bytes, parts: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values = pa.Table.from_batches(parts).drop_columns([_CHUNK])
        for one in _some(
            shaped_chunk(
                next(chunks_of(pa.ipc.open_stream(chunk).read_next_batch())), written, shape, _evaluated(values, shape)
            )
        ):
            yield chunk_row(one)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chunk, parts = b"", list[pa.RecordBatch]()
        for batch in batches:
            begin = 0
            for at, starts_chunk in enumerate(batch.column(_CHUNK).is_valid().to_pylist()):
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
