"""Fresh targets begin with what former ones held up to a plan: the same rows, offsets, columns and keys.

A target is made with its next offset, and gets its rows in one commit, which carries the identifier of the step before the
plan's first. What holds that is passed by when the plan comes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import physical_name
from historian.errors import PositionExpired, TableStopped
from historian.names import quoted
from sinks.contract.parts import STEPS, Part
from sinks.delta import faults
from sinks.delta.lake.state import LakeState
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import Commit, DataFile
from sinks.delta.log.target import Target
from sinks.delta.reseeding.previous_targets import PreviousTarget, find_previous_targets
from sinks.delta.rewrite import held_rows
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.rewrite.spark_rows import put, written_by_tasks
from sinks.delta.schema.decisions import evolved
from sinks.delta.schema.schema_evolution import mirror_schema
from sinks.delta.settings import DeltaSettings
from sinks.delta.targets.changelog import ChangelogPart, changelog_domains, held_keys, held_live, next_offset
from sinks.delta.targets.history import history_domains, next_history_offset
from sinks.delta.targets.retract import folded
from sinks.rows.variant import fitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["seed"]

_TYPE_CHANGES = "delta.typeChanges"
"""What Delta notes of a column whose older files have a narrower type; fresh targets have no such files."""


def seed(spark: SparkSession, state: LakeState, settings: DeltaSettings, part: Part, number: int) -> None:
    """Fills the targets of *part*'s table with what former ones held up to plan *number*.

    Args:
        state: of the lake, with the plan's locations.
        part: the first one that its plan has for the table.

    Raises:
        PositionExpired: what they held is not kept any more.
        TableStopped: what the mirror held does not follow from the changelog.
    """
    location = state.locations[part.location.table_id]
    table_settings = settings.for_table(location.came_as)
    version = part.plan * STEPS
    targets = {
        kind: state.target(location, directory)
        for kind in ("changelog", "mirror", "history")
        if (directory := getattr(location, kind))
    }
    for target in targets.values():
        target.refresh()
    if all(target.held >= version for target in targets.values()):
        return
    key = part.base.primary_key if table_settings.cluster and part.base is not None else ()
    previous_targets = {previous.kind: previous for previous in find_previous_targets(state, location.table_id, number)}
    lacking = sorted(set(targets).difference(previous_targets))
    if lacking and (lacking != ["mirror"] or part.base is None):
        raise PositionExpired(
            "a table had no such targets to begin with", where=location.name, expected=", ".join(lacking)
        )
    for kind, target in targets.items():
        previous = previous_targets.get(kind)
        if target.held >= version:
            continue
        schema = _own(previous.view.schema()) if previous is not None else _first_schema(part)
        if not target.exists:
            target.create(schema, {} if previous is None else _domains(previous), key if kind == "mirror" else ())
            faults.reached("seed_made", target.path)
        _fill(spark, state, target, schema, _files(spark, state, target, previous, schema, part), version)


def _files(
    spark: SparkSession,
    state: LakeState,
    target: Target,
    previous: PreviousTarget | None,
    schema: DeltaSchema,
    part: Part,
) -> Sequence[DataFile]:
    """Files of the fresh target with the rows of the previous one; None: with those of the folded changelog."""
    few = None if previous is None else _few_rows(previous, schema.arrow())
    if few is not None:
        writer = FileWriter(target.path, schema.arrow())
        writer.write_table(few)
        return writer.close()
    if previous is not None and previous.rows is not None:
        rows = _rows(spark, previous, schema)
    else:
        location = state.locations[part.location.table_id]
        changelog = state.target(location, location.changelog)
        changelog.refresh()
        rows = _amounting(spark, changelog, part, schema)
        if previous is None:
            _check_key(rows, part)
    return written_by_tasks(rows, target.path, schema.arrow())


def _own(schema: DeltaSchema) -> DeltaSchema:
    fields = (
        replace(f, metadata={key: value for key, value in f.metadata.items() if key != _TYPE_CHANGES})
        for f in schema.fields
    )
    return replace(schema, fields=tuple(fields))


def _domains(previous: PreviousTarget) -> dict[str, str]:
    if previous.kind == "changelog":
        view = previous.view
        return changelog_domains(next_offset(view), held_keys(view) or frozenset(), held_live(view))
    return history_domains(next_history_offset(previous.view)) if previous.kind == "history" else {}


def _amounting(spark: SparkSession, changelog: Target, part: Part, schema: DeltaSchema) -> DataFrame:
    """The folded changelog, which has all up to the plan, as rows of a mirror."""
    shown = evolved(part, soft=False).part
    keys, live_from = held_live(changelog.view)
    work = ChangelogPart(
        part=shown,
        target=changelog,
        schema=changelog.view.schema(),
        first_offset=next_offset(changelog.view),
        keys=keys,
        live_from=live_from,
    )
    wanted = {f.physical for f in schema.fields}
    known = set() if shown.base is None else {physical_name(column.id) for column in shown.base.columns}
    if shown.base is None or wanted != known:
        raise TableStopped(
            "what a mirror held is not kept, and its folded changelog has other columns",
            where=part.location.name,
            expected=sorted(wanted),
            found=sorted(known),
            next_step="give a later position to `historian replay`, or replicate the table into another lake, from the start",
        )
    return folded(spark, work, shown.base)


def _first_schema(part: Part) -> DeltaSchema:
    """That of a mirror which the table did not have before it had its key."""
    base = evolved(part, soft=False).part.base
    assert base is not None  # noqa: S101 asked before
    return mirror_schema(None, base)


def _check_key(rows: DataFrame, part: Part) -> None:
    """A key that came over rows which it does not tell apart made the server change them without a word in the log."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    base = evolved(part, soft=False).part.base
    assert base is not None  # noqa: S101 asked before
    names = [physical_name(column_id) for column_id in base.primary_key]
    is_null = reduce(or_, (F.col(name).isNull() for name in names))
    if not rows.groupBy(*names).count().where((F.col("count") > 1) | is_null).isEmpty():
        raise TableStopped(
            "a key came over rows that it does not tell apart, which a statement has changed without row events",
            where=part.location.name,
            expected="no two rows of one key, and none without",
            next_step="`historian heal`, or replicate the table into another lake, from the start",
        )


def _fill(
    spark: SparkSession, state: LakeState, target: Target, schema: DeltaSchema, files: Sequence[DataFile], version: int
) -> None:
    faults.reached("seed_written", target.path)
    if target.by_spark and files:
        target.run(version, spark, put(spark, target, schema, files))
        state.kernel.delete_files([file.path for file in files])
    else:
        target.commit(version, Commit(files=files))
    faults.reached("seed_committed", target.path)


_ENDS = ("to_offset", "valid_to")


def _few_rows(previous: PreviousTarget, schema: pa.Schema) -> pa.Table | None:
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


def _rows(spark: SparkSession, previous: PreviousTarget, schema: DeltaSchema) -> DataFrame:
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
