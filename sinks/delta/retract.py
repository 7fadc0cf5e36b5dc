"""Rows that a TRUNCATE or DROP takes back, as -R: what the mirror holds, or what the changelog folds to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from historian.absence import ABSENT
from historian.changelog import Op, physical_name
from historian.errors import TableStopped
from historian.schema import Snapshot
from sinks.delta.changelog import ChangelogPart
from sinks.delta.files import FILES, FileWriter, file_rows, files_of
from sinks.delta.kernel import DataFile
from sinks.delta.literals import initial_literal
from sinks.delta.schema import DeltaSchema
from sinks.delta.target import Target
from sinks.rows import in_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["write_retractions"]


def write_retractions(
    spark: SparkSession, work: ChangelogPart, mirror: Target | None, system_time_us: int
) -> list[DataFile]:
    """Writes the changelog files of the rows that the part's statement takes back, ordered by key; none were there: [].

    Their schema version is the one in force before the statement, their time the statement's.
    """
    part, statement = work.part, work.part.clears
    if statement is None or part.base is None:
        return []
    if mirror is not None and mirror.exists:
        rows = _of_mirror(spark, mirror, part.base)
    else:
        rows = _folded(spark, work, part.base)
    order = part.base.primary_key or tuple(column.id for column in part.base.columns)
    shape = _Shape(
        directory=work.target.path,
        schema=work.schema.arrow(),
        first_offset=work.first_offset,
        system_time_us=system_time_us,
        event_time_us=statement.event_time_us,
        schema_version=part.base_version,
    )
    ordered = rows.coalesce(1).sortWithinPartitions(*map(physical_name, order))
    return [row.file for row in files_of(ordered.mapInArrow(_writer(shape), FILES).collect())]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    directory: str
    schema: pa.Schema
    first_offset: int
    system_time_us: int
    event_time_us: int
    schema_version: int


def _of_mirror(spark: SparkSession, mirror: Target, base: Snapshot) -> DataFrame:
    rows = spark.read.format("delta").option("versionAsOf", mirror.view.version).load(mirror.path)
    return rows.select(*_columns(mirror.view.schema(), base))


def _folded(spark: SparkSession, work: ChangelogPart, base: Snapshot) -> DataFrame:
    """The rows that a changelog amounts to; columns added later hold their default in rows from before.

    By key they are right too where the log has changes of rows from before it began; but rows that were written under
    another key can meet in one of the present key.
    """
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    changelog = work.target
    schema = changelog.view.schema()
    log = spark.read.format("delta").option("versionAsOf", changelog.view.version).load(changelog.path)
    lacks = F.col(ABSENT).isNotNull() if ABSENT in schema.names() else F.lit(False)
    rows = log.select("offset", "op", "schema_version", lacks.alias(ABSENT), *_columns(schema, base))
    for column in base.columns:
        field = schema.by_id(column.id)
        if field is not None and field.since and column.initial is not None:
            name = physical_name(column.id)
            known = F.when(F.col("schema_version") < field.since, initial_literal(column)).otherwise(F.col(name))
            rows = rows.withColumn(name, known)
    names = [physical_name(column.id) for column in base.columns]
    if base.primary_key and work.keys == {base.primary_key}:
        last = F.max_by(F.struct("op", ABSENT, *names), "offset").alias("last")
        folded = rows.groupBy(*map(physical_name, base.primary_key)).agg(last).select("last.*")
        live = folded.where(F.col("op") != int(Op.RETRACT))
        _refuse_absent(live, schema, base)
        return live.select(*names)
    _refuse_absent(rows, schema, base)
    # As text a float keeps the sign of its zero, which a grouping would lose.
    floats = {f.physical: f.type for f in schema.fields if f.physical in names and f.type in ("float", "double")}
    rows = rows.withColumns({name: F.col(name).cast("string") for name in floats})
    sign = F.when(F.col("op").isin(int(Op.APPEND), int(Op.CORRECT_TO)), 1).otherwise(-1)
    counted = rows.groupBy(*names).agg(F.sum(sign).alias("count")).where("count > 0")
    repeated = counted.withColumn("count", F.explode(F.sequence(F.lit(1), F.col("count").cast("int"))))
    return repeated.withColumns({name: F.col(name).cast(kind) for name, kind in floats.items()}).select(*names)


def _refuse_absent(rows: DataFrame, schema: DeltaSchema, base: Snapshot) -> None:
    if ABSENT in schema.names() and not rows.where(ABSENT).isEmpty():
        raise TableStopped(
            "a statement takes back rows that the changelog does not tell whole: columns of theirs are absent",
            where=str(base.name),
            expected="a mirror, or rows logged with binlog_row_image=FULL",
            next_step="replicate the table anew, with a mirror",
        )


def _columns(schema: DeltaSchema, base: Snapshot) -> Sequence[Any]:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    fields = {f.column_id: f for f in schema.fields}
    return [
        F.col("`" + fields[column.id].name.replace("`", "``") + "`").alias(physical_name(column.id))
        for column in base.columns
    ]


def _writer(shape: _Shape) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    utc = pa.timestamp("us", tz="UTC")

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = FileWriter(shape.directory, shape.schema)
        offset = shape.first_offset
        for batch in batches:
            count = batch.num_rows
            system = {
                "offset": pa.array(range(offset, offset + count), pa.int64()),
                "op": pa.repeat(pa.scalar(int(Op.RETRACT), pa.int32()), count),
                "system_time": pa.repeat(pa.scalar(shape.system_time_us, utc), count),
                "event_time": pa.repeat(pa.scalar(shape.event_time_us, utc), count),
                "schema_version": pa.repeat(pa.scalar(shape.schema_version, pa.int64()), count),
            }
            data = {name: batch.column(name).cast(shape.schema.field(name).type) for name in batch.schema.names}
            writer.write(in_schema({**system, **data}, shape.schema, count))
            offset += count
        yield from file_rows((0, 0), "changelog", writer.close())

    return write
