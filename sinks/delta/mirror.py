"""The mirror of one table: its present rows, kept by one merge of the net change a part.

Where deletes are soft, a row that is deleted stays and says so, until its key comes again, or another table takes the place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from historian.absence import UNSEEN
from historian.changelog import physical_name
from historian.errors import TableStopped
from historian.partial_fold import FROM, missing_row
from historian.schema import Column, Snapshot
from sinks.delta import faults, rewrite
from sinks.delta.kernel import Commit, DataFile
from sinks.delta.literals import initial_literal
from sinks.delta.policy import check_whole
from sinks.delta.schema import DELETED, DeltaSchema, mirror_schema
from sinks.delta.staged import BROADCAST_ROWS, NetFiles, quoted, staged
from sinks.delta.target import Target
from sinks.parts import Part, Step

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["prepare_mirror", "write_mirror"]


def prepare_mirror(part: Part, target: Target, *, soft: bool) -> DeltaSchema | None:
    """The schema that the mirror, made where there is none, has with *part*; None where it holds the part."""
    if target.held >= part.transaction(Step.ROWS):
        return None
    if soft:
        check_whole(part, "a mirror that keeps deleted rows")
    snapshot = part.last or part.base
    if not target.exists:
        if snapshot is None:
            return None
        target.create(mirror_schema(None, snapshot, soft=soft), {})
    return target.view.schema() if part.last is None else mirror_schema(target.view.schema(), part.last, soft=soft)


def write_mirror(
    spark: SparkSession,
    part: Part,
    target: Target,
    schema: DeltaSchema,
    net: NetFiles,
    *,
    soft: bool,
) -> bool:
    """Brings the mirror to where it stands after *part*, step by step; steps that it holds are skipped.

    Returns whether the whole rows' files became files of the mirror; else nothing refers to them any more.

    Raises:
        TableStopped: rows lack columns that neither the log nor the mirror tells.
    """
    if net.unseen:
        raise _changed_unseen(net.unseen[0])
    news = not schema.same_as(target.view.schema())
    last = part.transaction(Step.ROWS)
    # Rows of a former table of that name have none of this one's columns.
    clears = part.clears is not None if not soft else part.base is None
    deleted_at_us = part.clears.event_time_us if part.clears is not None else None
    if clears or target.view.is_empty():
        if net.partial:
            raise missing_row(_first(net.partial[0], FROM))
        target.commit(last, Commit(schema=schema if news else None, clear=clears, files=net.whole))
        faults.reached("mirror_committed")
        return True
    files = target.view.small_files(rewrite.SMALL_BYTES)
    snapshot = part.last or part.base
    if files is not None and snapshot is not None and (net or part.filled or deleted_at_us is not None):
        arrow = schema.arrow()
        anew = rewrite.rewritten(target.path, files, arrow, snapshot, part.filled, net, deleted_at_us=deleted_at_us)
        target.commit(last, Commit(schema=schema if news else None, clear=True, files=anew))
        faults.reached("mirror_committed")
        return False
    if news:
        target.commit(part.transaction(Step.SCHEMA), Commit(schema=schema))
        faults.reached("mirror_schema_committed")
    if (part.filled or deleted_at_us is not None) and target.held < part.transaction(Step.FILL):
        target.run(part.transaction(Step.FILL), spark, _fill(spark, target.path, part.filled, deleted_at_us))
        faults.reached("mirror_filled")
    if part.last is not None and net:
        target.run(last, spark, _merge(spark, target, schema, part.last, net))
    if target.held < last:
        target.commit(last, Commit())
    faults.reached("mirror_committed")
    return False


def _fill(spark: SparkSession, path: str, columns: Sequence[Column], deleted_at_us: int | None) -> Callable[[], Any]:
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    values: dict[str, str | SparkColumn] = {quoted(column.name): initial_literal(column) for column in columns}
    if deleted_at_us is not None:
        flag, at = DELETED
        values |= {flag: F.lit(True), at: F.coalesce(at, F.timestamp_micros(F.lit(deleted_at_us)))}
    return lambda: DeltaTable.forPath(spark, path).update(set=values)


def _merge(
    spark: SparkSession,
    target: Target,
    schema: DeltaSchema,
    snapshot: Snapshot,
    net: NetFiles,
) -> Callable[[], Any]:
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    source = staged(spark, schema, net.whole)
    if net.partial:
        source = source.unionByName(_completed(spark, target, schema, snapshot, net.partial))
    source = source.withColumn("gone", F.lit(False))
    if net.gone:
        source = source.unionByName(staged(spark, schema, net.gone).withColumn("gone", F.lit(True)))
    if net.rows <= BROADCAST_ROWS:
        source = F.broadcast(source)
    names = {f.column_id: quoted(f.name) for f in schema.fields}
    same_key = " AND ".join(f"t.{names[key]} <=> s.{physical_name(key)}" for key in snapshot.primary_key)
    values: dict[str, str | SparkColumn] = {quoted(f.name): f"s.{f.physical}" for f in schema.fields}

    def run() -> None:
        merge = DeltaTable.forPath(spark, target.path).alias("t").merge(source.alias("s"), same_key)
        merge = merge.whenMatchedDelete("s.gone").whenMatchedUpdate(set=values)
        merge.whenNotMatchedInsert("NOT s.gone", values).execute()

    return run


def _completed(
    spark: SparkSession, target: Target, schema: DeltaSchema, snapshot: Snapshot, files: Sequence[DataFile]
) -> DataFrame:
    """Rows with the columns that they lack from the mirror's rows, as these stand before the merge."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    rows = _read_partial(spark, schema, files).alias("p")
    held = spark.read.format("delta").option("versionAsOf", target.view.version).load(target.path)
    held = held.select(*(F.col(quoted(f.name)).alias(f.physical) for f in schema.fields)).alias("m")
    keys = [physical_name(key) for key in snapshot.primary_key]
    same_row = reduce(and_, (F.col(f"p.{FROM}{key}").eqNullSafe(F.col(f"m.{key}")) for key in keys))
    lost = rows.join(held, same_row, "left_anti").select(*(f"{FROM}{key}" for key in keys)).head()
    if lost is not None:
        raise missing_row(", ".join(map(str, lost)))
    values = [
        F.when(F.array_contains("p.absent", f.physical), F.col(f"m.{f.physical}"))
        .otherwise(F.col(f"p.{f.physical}"))
        .alias(f.physical)
        for f in schema.fields
    ]
    return rows.join(held, same_row).select(*values)


def _read_partial(spark: SparkSession, schema: DeltaSchema, files: Sequence[DataFile]) -> DataFrame:
    """Rows as they are in files, but for VARIANT columns, of which files do not say that they are any."""
    rows = spark.read.parquet(*(file.path for file in files))
    variants = {f.physical: "variant" for f in schema.fields if f.type == "variant"}
    if not variants:
        return rows
    kinds = ", ".join(f"`{f.name}` {variants.get(f.name) or f.dataType.simpleString()}" for f in rows.schema.fields)
    return spark.read.schema(kinds).parquet(*(file.path for file in files))


def _changed_unseen(file: DataFile) -> TableStopped:
    rows = _rows(file)
    key = {name.removeprefix(FROM): rows.column(name)[0].as_py() for name in rows.schema.names if name.startswith(FROM)}
    return TableStopped(
        "columns of a row changed, and its images do not tell to what",
        where=f"{key}, columns {', '.join(rows.column(UNSEEN)[0].as_py())}",
        expected="binlog_row_image=FULL for JSON diffs, and for MariaDB's virtual columns and computed defaults",
        next_step="keep a changelog of this table without a mirror, or replicate it anew under that setting",
    )


def _first(file: DataFile, prefix: str) -> str:
    rows = _rows(file)
    return ", ".join(str(rows.column(name)[0].as_py()) for name in rows.schema.names if name.startswith(prefix))


def _rows(file: DataFile) -> pa.Table:
    system, place = pafs.FileSystem.from_uri(file.path)
    return pq.ParquetFile(system.open_input_file(place)).read()
