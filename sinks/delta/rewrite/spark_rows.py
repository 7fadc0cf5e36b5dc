"""The rows of a target as DataFrames, of the version that its last look at Delta's log found, columns under physical names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from historian.changelog.operations import physical_name
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.target import Target
from sinks.delta.rewrite.staged import quoted
from sinks.delta.schema.schema_evolution import DELETED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["columns_by_id", "known_version", "present_rows"]


def known_version(spark: SparkSession, target: Target) -> DataFrame:
    """All rows, columns under their names in Delta."""
    return spark.read.format("delta").option("versionAsOf", target.view.version).load(target.path)


def present_rows(spark: SparkSession, target: Target, column_ids: Iterable[int]) -> DataFrame:
    """Those columns of the rows that a mirror shows, or that are open in a history."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    schema = target.view.schema()
    rows = known_version(spark, target)
    if target.kind == "history":
        names = {f.physical: quoted(f.name) for f in schema.fields}
        rows = rows.where(F.col(names["to_offset"]).isNull())
    elif DELETED[0] in schema.names():
        rows = rows.where(~F.col(DELETED[0]))
    return rows.select(*columns_by_id(schema, column_ids))


def columns_by_id(schema: DeltaSchema, column_ids: Iterable[int]) -> Sequence[Column]:
    """Columns of a target, to select."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    names = {f.column_id: quoted(f.name) for f in schema.fields}
    return [F.col(names[column_id]).alias(physical_name(column_id)) for column_id in column_ids]
