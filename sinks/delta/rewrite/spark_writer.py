"""Rows put into a target by Spark's own writer, and which writer a target has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import DataFile
from sinks.delta.log.table_view import TableView
from sinks.delta.log.target import Target
from sinks.delta.rewrite.staged import staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["put", "writer_of"]

_BY_SPARK = {
    "delta.enableChangeDataFeed": "change data feed",
    "delta.enableRowTracking": "row tracking",
    "delta.enableDeletionVectors": "deletion vectors",
}


def put(
    spark: SparkSession, target: Target, schema: DeltaSchema, files: Sequence[DataFile], *, clear: bool = False
) -> Callable[[], Any]:
    """The append of the rows in *files* to the target, which has that schema; with *clear* in the place of all its rows."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    rows = staged(spark, schema, files).select(*(F.col(f.physical).alias(f.name) for f in schema.fields))
    return lambda: rows.write.format("delta").mode("overwrite" if clear else "append").save(target.path)


def writer_of(view: TableView, kind: str, wanted: str) -> str:
    """Who writes rows of a target of that *kind*: "native"; or "spark", and why, where that is not what is *wanted*.

    Appends are native in every table. Changes of rows are Spark's where these have an identity or marks beside their files; with
    deletion vectors only where a file that changes has some.
    """
    if wanted == "spark" or kind == "changelog":
        return wanted
    reasons = [text for name, text in _BY_SPARK.items() if view.property(name) == "true"]
    return f"spark ({', '.join(reasons)})" if reasons else wanted
