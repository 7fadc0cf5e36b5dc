"""The net change of a part applied by a mirror through Spark: for mirrors whose files must not be replaced as they are.

Those are the ones with deletion vectors, a change data feed or row tracking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from historian.changelog.operations import physical_name
from historian.changelog.partial_folding import FROM, missing_row
from historian.names import quoted
from historian.schema.snapshots import Column
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import DataFile
from sinks.delta.log.target import Target
from sinks.delta.rewrite.spark_rows import known_version
from sinks.delta.rewrite.staged import BROADCAST_ROWS, NetFiles, same_key, staged
from sinks.delta.schema.schema_evolution import DELETED
from sinks.delta.targets.literals import initial_literal

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["cleared", "filled", "merged"]


def filled(
    spark: SparkSession, path: str, schema: DeltaSchema, columns: Sequence[Column], deleted_at_us: int | None
) -> Callable[[], Any]:
    """The UPDATE that gives rows the defaults of *columns*, and marks them as deleted where that was at a time.

    Args:
        schema: of the mirror; its columns may be called otherwise than the source's.
    """
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    names = {f.column_id: quoted(f.name) for f in schema.fields}
    values: dict[str, str | SparkColumn] = {names[column.id]: initial_literal(column) for column in columns}
    if deleted_at_us is not None:
        flag, at = DELETED
        values |= {flag: F.lit(True), at: F.coalesce(at, F.timestamp_micros(F.lit(deleted_at_us)))}
    return lambda: DeltaTable.forPath(spark, path).update(set=values)


def cleared(
    spark: SparkSession, path: str, schema: DeltaSchema, shard: Sequence[tuple[int, str]], deleted_at_us: int | None
) -> Callable[[], Any]:
    """The DELETE of the rows that have those values in the columns of those ids; at a time: the UPDATE that marks them."""
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    names = {f.column_id: quoted(f.name) for f in schema.fields}
    theirs = reduce(and_, (F.col(names[column_id]) == value for column_id, value in shard))
    if deleted_at_us is None:
        return lambda: DeltaTable.forPath(spark, path).delete(theirs)
    flag, at = DELETED
    marks: dict[str, str | SparkColumn] = {flag: F.lit(True), at: F.timestamp_micros(F.lit(deleted_at_us))}
    return lambda: DeltaTable.forPath(spark, path).update(theirs & ~F.col(flag), marks)


def merged(
    spark: SparkSession, target: Target, schema: DeltaSchema, key: Sequence[int], net: NetFiles
) -> Callable[[], Any]:
    """The MERGE of *net* by the columns of those ids.

    Raises:
        TableStopped: the mirror has no row that a partial one changes.
    """
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    source = staged(spark, schema, net.whole)
    if net.partial:
        source = source.unionByName(_completed(spark, target, schema, key, net.partial))
    source = source.withColumn("gone", F.lit(False))
    if net.gone:
        source = source.unionByName(staged(spark, schema, net.gone).withColumn("gone", F.lit(True)))
    if net.rows <= BROADCAST_ROWS:
        source = F.broadcast(source)
    condition = same_key(schema, key, () if net.partial else (*net.whole, *net.gone))
    values: dict[str, str | SparkColumn] = {quoted(f.name): f"s.{f.physical}" for f in schema.fields}

    def run() -> None:
        merge = DeltaTable.forPath(spark, target.path).alias("t").merge(source.alias("s"), condition)
        merge = merge.whenMatchedDelete("s.gone").whenMatchedUpdate(set=values)
        merge.whenNotMatchedInsert("NOT s.gone", values).execute()

    return run


def _completed(
    spark: SparkSession, target: Target, schema: DeltaSchema, key: Sequence[int], files: Sequence[DataFile]
) -> DataFrame:
    """Rows with the columns that they lack from the mirror's rows, as these stand before the merge."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    rows = _read_partial(spark, schema, files).alias("p")
    held = (
        known_version(spark, target)
        .select(*(F.col(quoted(f.name)).alias(f.physical) for f in schema.fields))
        .alias("m")
    )
    keys = [physical_name(column) for column in key]
    same_row = reduce(and_, (F.col(f"p.{FROM}{name}").eqNullSafe(F.col(f"m.{name}")) for name in keys))
    lost = rows.join(held, same_row, "left_anti").select(*(f"{FROM}{name}" for name in keys)).head()
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
