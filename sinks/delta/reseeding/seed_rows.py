"""The rows that a target held with a plan, read from a version that has them: those of a small one here, else by Spark.

Columns are those of the plan, under their names in files. Later versions may have wider types, the values being the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sinks.delta.log.columns import DeltaSchema
from sinks.delta.reseeding.previous_targets import PreviousTarget
from sinks.delta.rewrite import held_rows
from sinks.delta.rewrite.staged import quoted
from sinks.delta.targets.changelog import next_offset
from sinks.delta.targets.history import next_history_offset
from sinks.rows.variant import fitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["few_rows_of", "rows_of"]

_ENDS = ("to_offset", "valid_to")


def few_rows_of(previous: PreviousTarget, schema: pa.Schema) -> pa.Table | None:
    """The rows in *schema*; None where they are not few, or Spark must read them."""
    if previous.rows is None:
        return None
    files = previous.rows.held_files()
    if sum(file.size_bytes for file in files) > held_rows.SMALL_BYTES or any(file.has_deletions for file in files):
        return None
    there = previous.rows.schema().arrow()
    held = pa.schema([there.field(name) for name in schema.names])
    rows = pa.concat_tables([held.empty_table(), *(held_rows.read(file.path, held) for file in files)])
    if previous.kind == "changelog":
        rows = rows.filter(pc.less(rows.column("offset"), next_offset(previous.view))).sort_by("offset")
    if previous.kind == "history":
        following = next_history_offset(previous.view)
        rows = rows.filter(pc.less(rows.column("from_offset"), following))
        was_open = pc.fill_null(pc.greater_equal(rows.column("to_offset"), following), False)
        for name in _ENDS:
            at, kind = rows.schema.get_field_index(name), rows.schema.field(name)
            rows = rows.set_column(at, kind, pc.if_else(was_open, pa.scalar(None, kind.type), rows.column(name)))
    return pa.table([fitted(rows.column(field.name), field.type) for field in schema], schema=schema)


def rows_of(spark: SparkSession, previous: PreviousTarget, schema: DeltaSchema) -> DataFrame:
    """The rows of one that has some version with them."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    view = previous.rows
    assert view is not None  # noqa: S101 said above
    rows = spark.read.format("delta").option("versionAsOf", view.version).load(view.path)
    if previous.kind == "changelog":
        rows = rows.where(F.col("offset") < next_offset(previous.view))
    ends = previous.kind == "history"
    following = next_history_offset(previous.view) if ends else 0
    if ends:
        rows = rows.where(F.col("from_offset") < following)
    held = {f.physical: f for f in view.schema().fields}
    columns = []
    for f in schema.fields:
        there = held[f.physical]
        column = F.col(quoted(there.name))
        if ends and f.physical in _ENDS:
            column = F.when(F.col("to_offset") < following, column)
        columns.append((column if there.type == f.type else column.cast(f.type)).alias(f.physical))
    rows = rows.select(*columns)
    ordered = previous.kind == "changelog"
    return rows.repartitionByRange("offset").sortWithinPartitions("offset") if ordered else rows
