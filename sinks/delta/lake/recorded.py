"""What a lake has recorded of one of its changelogs: the key of its rows, and what its added columns read in earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from historian import codec
from historian.changelog.state import AddedColumn
from historian.errors import SinkError
from historian.history.timeline import TimelineEntry
from historian.schema.edits import AddColumn, CreateTable
from historian.schema.snapshots import Column
from sinks.contract.decisions import GENERATION
from sinks.delta.lake.state_rows import CHANGES
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.kernel import Kernel
from sinks.delta.targets.changelog import held_keys
from sinks.delta.targets.literals import initial_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RecordedSchema", "recorded_changelog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSchema:
    """What to project a changelog with.

    Attributes:
        key: names of the key's columns; () where its rows were written under none, or under several.
        added: the columns that rows of earlier versions do not have, by name; their values are Spark literals.
    """

    key: tuple[str, ...]
    added: Mapping[str, AddedColumn]


def recorded_changelog(spark: SparkSession, path: str) -> RecordedSchema | None:
    """What the lake has recorded of the changelog at *path*; None where that is no changelog of this project. Reads only.

    Raises:
        SinkError: the lake's own tables, which stand beside it, do not say what an added column holds in earlier rows.
    """
    view = Kernel(spark, "reader").view(path)
    keys = None if view is None else held_keys(view)
    if view is None or keys is None:
        return None
    schema = view.schema()
    key = next(iter(keys)) if len(keys) == 1 else ()
    fields = [schema.by_id(column_id) for column_id in key]
    return RecordedSchema(
        key=tuple(field.name for field in fields if field is not None), added=_added(spark, path, schema)
    )


def _added(spark: SparkSession, path: str, schema: DeltaSchema) -> dict[str, AddedColumn]:
    since = {field.column_id: field for field in schema.fields if field.since}
    if not since:
        return {}
    columns = {column.id: column for column in _columns(spark, f"{path.rstrip('/').rpartition('/')[0]}/{CHANGES}")}
    if set(since) - set(columns):
        columns |= {column.id: column for column in _created(spark, f"{path.rstrip('/').rpartition('/')[0]}/{CHANGES}")}
    missing = sorted(
        field.name for column_id, field in since.items() if column_id not in columns and not _is_replacement(column_id)
    )
    if missing:
        raise SinkError(
            "the lake does not say what added columns hold in earlier rows",
            where=path,
            found=missing,
            next_step=f"restore {CHANGES} as it was",
        )
    return {
        field.name: AddedColumn(since=field.since, initial=initial_literal(columns[column_id]))
        for column_id, field in since.items()
        if column_id in columns and columns[column_id].initial is not None
    }


def _is_replacement(column_id: int | None) -> bool:
    """Whether a column stands in the place of one that was set aside: rows from before have NULL."""
    return column_id is not None and column_id >= GENERATION


def _created(spark: SparkSession, path: str) -> Iterator[Column]:
    """The columns with which tables came: of a shard that came later they are new in the shards' one table."""
    for row in (
        spark.read.format("delta").load(path).where("edits like '%create_table%'").select("entry_json").collect()
    ):
        for edit in codec.load(TimelineEntry, row.entry_json).edits:
            if isinstance(edit, CreateTable):
                yield from (c if c.initial_known else replace(c, initial=None) for c in edit.snapshot.columns)


def _columns(spark: SparkSession, path: str) -> Iterator[Column]:
    """Every column that an edit added."""
    for row in spark.read.format("delta").load(path).where("edits like '%add_column%'").select("entry_json").collect():
        for edit in codec.load(TimelineEntry, row.entry_json).edits:
            if isinstance(edit, AddColumn):
                yield edit.column
