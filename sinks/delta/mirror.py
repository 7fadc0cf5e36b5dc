"""The mirror of one table: its present rows, kept by one merge of the net change a part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from sinks.delta.schema import DeltaSchema, mirror_schema
from sinks.delta.target import Target
from sinks.parts import Part, Step

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["NetFiles", "prepare_mirror", "write_mirror"]

_BROADCAST_ROWS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NetFiles:
    """The net change of a part as files, see :class:`historian.partial_fold.PartialNet`."""

    whole: Sequence[DataFile]
    partial: Sequence[DataFile] = ()
    unseen: Sequence[DataFile] = ()
    gone: Sequence[DataFile] = ()

    def __bool__(self) -> bool:
        return bool(self.whole or self.partial or self.gone)

    @property
    def rows(self) -> int:
        """How many rows they have."""
        return sum(file.rows for file in (*self.whole, *self.partial, *self.gone))


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
    net: NetFiles,
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
    clears = part.clears is not None
    if clears or target.view.is_empty():
        if net.partial:
            raise missing_row(_first(net.partial[0], FROM))
        target.commit(last, Commit(schema=schema if news else None, clear=clears, files=net.whole))
        faults.reached("mirror_committed")
        return True
    files = target.view.small_files(rewrite.SMALL_BYTES)
    if files is not None and part.last is not None and (net or part.filled):
        arrow = schema.arrow()
        anew = rewrite.rewritten(target.path, files, arrow, part.last, part.filled, net.whole, net.partial, net.gone)
        target.commit(last, Commit(schema=schema if news else None, clear=True, files=anew))
        faults.reached("mirror_committed")
        return False
    if news:
        target.commit(part.transaction(Step.SCHEMA), Commit(schema=schema))
        faults.reached("mirror_schema_committed")
    if part.filled and target.held < part.transaction(Step.FILL):
        target.run(part.transaction(Step.FILL), spark, _fill(spark, target.path, part.filled))
        faults.reached("mirror_filled")
    if part.last is not None and net:
        target.run(last, spark, _merge(spark, target, schema, part.last, net))
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
    target: Target,
    schema: DeltaSchema,
    snapshot: Snapshot,
    net: NetFiles,
) -> Callable[[], Any]:
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    source = _read(spark, schema, net.whole)
    if net.partial:
        source = source.unionByName(_completed(spark, target, schema, snapshot, net.partial))
    source = source.withColumn("gone", F.lit(False))
    if net.gone:
        source = source.unionByName(_read(spark, schema, net.gone).withColumn("gone", F.lit(True)))
    if net.rows <= _BROADCAST_ROWS:
        source = F.broadcast(source)
    names = {f.column_id: _quoted(f.name) for f in schema.fields}
    same_key = " AND ".join(f"t.{names[key]} <=> s.{physical_name(key)}" for key in snapshot.primary_key)
    values: dict[str, str | SparkColumn] = {_quoted(f.name): f"s.{f.physical}" for f in schema.fields}

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

    rows = spark.read.parquet(*(file.path for file in files)).alias("p")
    held = spark.read.format("delta").option("versionAsOf", target.view.version).load(target.path)
    held = held.select(*(F.col(_quoted(f.name)).alias(f.physical) for f in schema.fields)).alias("m")
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


def _read(spark: SparkSession, schema: DeltaSchema, files: Sequence[DataFile]) -> DataFrame:
    from pyspark.sql.types import StructType

    struct = StructType.fromJson(schema.physical())
    if not files:
        return spark.createDataFrame([], struct)
    return spark.read.schema(struct).parquet(*(file.path for file in files))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
