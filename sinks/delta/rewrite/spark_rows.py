"""The rows of a target as DataFrames, of the version that its last look at Delta's log found, columns under physical names.

Rows put into it by Spark's own writer, and which writer it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from historian.changelog.operations import physical_name
from historian.names import quoted
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import DataFile
from sinks.delta.log.table_view import TableView
from sinks.delta.log.target import Target
from sinks.delta.rewrite.files import FILES, FileWriter, file_rows, files_of
from sinks.delta.rewrite.staged import staged
from sinks.delta.schema.schema_evolution import DELETED
from sinks.rows.shapes import in_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["columns_by_id", "known_version", "present_rows", "put", "writer_of", "written_by_tasks"]


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


def written_by_tasks(rows: DataFrame, directory: str, schema: pa.Schema) -> list[DataFile]:
    """Files of *schema*, which no table knows, with *rows* in their order; columns that these lack are NULL.

    Raises:
        ValueUnrepresentable: see :func:`sinks.rows.variant.fitted`; within Spark's error.
    """
    written = files_of(rows.mapInArrow(partial(_written, directory, schema), FILES).collect())
    return [one.file for one in sorted(written, key=lambda one: one.segment)]


def _written(directory: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    writer = FileWriter(directory, schema)
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        writer.write(in_schema(columns, schema, batch.num_rows))
    task = TaskContext.get()
    yield from file_rows((0, 0 if task is None else task.partitionId()), "rows", writer.close())
