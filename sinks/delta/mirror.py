"""The mirror of one table: its present rows, kept by one merge of the net change a part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from historian.changelog import physical_name
from historian.schema import Column, Snapshot
from sinks.delta import faults, rewrite
from sinks.delta.kernel import Commit, DataFile
from sinks.delta.literals import initial_literal
from sinks.delta.schema import DeltaSchema, mirror_schema
from sinks.delta.target import Target
from sinks.parts import Part, Step

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["prepare_mirror", "write_mirror"]

_BROADCAST_ROWS = 200_000


def prepare_mirror(part: Part, target: Target) -> DeltaSchema | None:
    """The schema that the mirror, made where there is none, has with *part*; None where it holds the part."""
    if target.held >= part.transaction(Step.ROWS):
        return None
    snapshot = part.last or part.base
    if not target.exists:
        if snapshot is None:
            return None
        target.create(mirror_schema(None, snapshot), {})
    return target.view.schema() if part.last is None else mirror_schema(target.view.schema(), part.last)


def write_mirror(
    spark: SparkSession,
    part: Part,
    target: Target,
    schema: DeltaSchema,
    upserts: Sequence[DataFile],
    deletes: Sequence[DataFile],
) -> bool:
    """Brings the mirror to where it stands after *part*, step by step; steps that it holds are skipped.

    Returns whether *upserts* became files of the mirror; else nothing refers to them any more.
    """
    news = not schema.same_as(target.view.schema())
    last = part.transaction(Step.ROWS)
    clears = part.clears is not None
    if clears or target.view.is_empty():
        target.commit(last, Commit(schema=schema if news else None, clear=clears, files=upserts))
        faults.reached("mirror_committed")
        return True
    files = target.view.small_files(rewrite.SMALL_BYTES)
    if files is not None and part.last is not None and (upserts or deletes or part.filled):
        arrow = schema.arrow()
        anew = rewrite.rewritten(target.path, files, arrow, part.last, part.filled, upserts, deletes)
        target.commit(last, Commit(schema=schema if news else None, clear=True, files=anew))
        faults.reached("mirror_committed")
        return False
    if news:
        target.commit(part.transaction(Step.SCHEMA), Commit(schema=schema))
        faults.reached("mirror_schema_committed")
    if part.filled and target.held < part.transaction(Step.FILL):
        target.run(part.transaction(Step.FILL), spark, _fill(spark, target.path, part.filled))
        faults.reached("mirror_filled")
    if part.last is not None and (upserts or deletes):
        target.run(last, spark, _merge(spark, target.path, schema, part.last, upserts, deletes))
    if target.held < last:
        target.commit(last, Commit())
    faults.reached("mirror_committed")
    return False


def _fill(spark: SparkSession, path: str, columns: Sequence[Column]) -> Callable[[], Any]:
    from delta.tables import DeltaTable

    values: dict[str, str | SparkColumn] = {_quoted(column.name): initial_literal(column) for column in columns}
    return lambda: DeltaTable.forPath(spark, path).update(set=values)


def _merge(
    spark: SparkSession,
    path: str,
    schema: DeltaSchema,
    snapshot: Snapshot,
    upserts: Sequence[DataFile],
    deletes: Sequence[DataFile],
) -> Callable[[], Any]:
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    source = _read(spark, schema, upserts).withColumn("gone", F.lit(False))
    if deletes:
        source = source.unionByName(_read(spark, schema, deletes).withColumn("gone", F.lit(True)))
    if sum(file.rows for file in (*upserts, *deletes)) <= _BROADCAST_ROWS:
        source = F.broadcast(source)
    names = {f.column_id: _quoted(f.name) for f in schema.fields}
    same_key = " AND ".join(f"t.{names[key]} <=> s.{physical_name(key)}" for key in snapshot.primary_key)
    values: dict[str, str | SparkColumn] = {_quoted(f.name): f"s.{f.physical}" for f in schema.fields}

    def run() -> None:
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), same_key)
        merge = merge.whenMatchedDelete("s.gone").whenMatchedUpdate(set=values)
        merge.whenNotMatchedInsert("NOT s.gone", values).execute()

    return run


def _read(spark: SparkSession, schema: DeltaSchema, files: Sequence[DataFile]) -> DataFrame:
    from pyspark.sql.types import StructType

    struct = StructType.fromJson(schema.physical())
    if not files:
        return spark.createDataFrame([], struct)
    return spark.read.schema(struct).parquet(*(file.path for file in files))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
