"""The mirror of one table: its present rows, kept by one commit of the net change a part.

Where deletes are soft, a row that is deleted stays and says so, until its key comes again, or another table takes the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from historian.changelog.missing_columns import UNSEEN, WHOLE_IMAGES
from historian.changelog.operations import physical_name
from historian.changelog.partial_folding import FROM, missing_row
from historian.errors import TableStopped
from historian.values.texts import initial_scalar
from sinks.contract.parts import Part, Step
from sinks.delta import faults
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import Commit, DataFile
from sinks.delta.log.kernel import CommitConflict
from sinks.delta.log.side_by_side import own_session
from sinks.delta.log.target import Target
from sinks.delta.rewrite.copy_on_write import CopyOnWrite
from sinks.delta.rewrite.few_rows import without_shard
from sinks.delta.rewrite.file_rewrite import taken_up
from sinks.delta.rewrite.held_rows import whole
from sinks.delta.rewrite.spark_rows import put
from sinks.delta.rewrite.staged import NetFiles
from sinks.delta.schema.schema_evolution import is_widened, mirror_schema
from sinks.delta.schema.stops import check_whole
from sinks.delta.settings import TableSettings
from sinks.delta.targets import merge
from sinks.delta.targets.new_columns import filled_columns
from sinks.rows.variant import is_variant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["mirror_after", "prepare_mirror", "write_mirror"]

_TRIES = 3
"""How often maintenance by others may replace the files that a change was made for."""


def prepare_mirror(part: Part, target: Target, settings: TableSettings) -> DeltaSchema | None:
    """The schema that the mirror, made where there is none, has with *part*; None where it holds the part."""
    if target.held >= part.transaction(Step.ROWS):
        return None
    soft = settings.mirror_deletes == "soft"
    snapshot = part.last or part.base
    if soft or part.counts:
        check_whole(part, "a mirror that keeps deleted rows" if soft else "a mirror of a table without a key")
    if part.counts and snapshot is not None and any(is_variant(column.type) for column in snapshot.columns):
        raise TableStopped(
            "VARIANT values do not compare, and a mirror of a table without a key compares whole rows",
            where=part.location.name,
            expected="types.json: text, or a key",
            next_step="say one of them in the configuration, then `historian heal`",
        )
    if target.held >= part.transaction(Step.SCHEMA) or (snapshot is None and target.exists):
        return target.view.schema()
    if snapshot is None:
        return None
    # One that was made and holds nothing has the schema that the part leads to, not the one that it comes from.
    before = target.view.schema() if target.held else None
    schema = mirror_after(part, before, soft=soft) or mirror_schema(None, snapshot, soft=soft)
    if not target.exists:
        target.create(schema, {}, snapshot.primary_key if settings.cluster else ())
    return schema


def mirror_after(part: Part, schema: DeltaSchema | None, *, soft: bool) -> DeltaSchema | None:
    """The schema that a mirror of that *schema* (None: not made yet) has with *part*.

    Raises:
        TableStopped: see :func:`sinks.delta.schema.schema_evolution.mirror_schema`.
    """
    if not part.version_changes:
        return schema if part.last is None else mirror_schema(schema, part.last, soft=soft)
    for number, snapshot in part.written.items():
        if number == part.base_version and is_widened(schema, snapshot):
            continue
        follow = part.version_changes[number]
        live = tuple(column for column in snapshot.columns if column.id not in follow.kept)
        schema = mirror_schema(schema, replace(snapshot, columns=live), soft=soft, follow=follow)
    return schema


def write_mirror(
    spark: SparkSession,
    part: Part,
    target: Target,
    schema: DeltaSchema,
    net: NetFiles,
    *,
    soft: bool,
) -> Sequence[DataFile]:
    """Brings the mirror to where it stands after *part*; the files of *net* that did not become files of the mirror.

    Raises:
        TableStopped: rows lack columns that neither the log nor the mirror tells.
    """
    if net.unseen:
        raise _changed_unseen(net.unseen[0], schema)
    # Rows of a former table of that name have none of this one's columns.
    clears = part.clears is not None if not soft else part.base is None
    for tried in range(_TRIES):
        if target.held >= part.transaction(Step.ROWS):
            break
        try:
            if part.cleared:
                _shard_cleared(spark, part, target, schema, soft=soft)
                left = net.files
            elif clears or not target.view.held_files():
                left = _begun(spark, part, target, schema, net, clears=clears)
            else:
                left = _changed(spark, part, target, schema, net)
        except CommitConflict:
            if tried == _TRIES - 1:
                raise
        else:
            faults.reached("mirror_committed", f"{target.path} {part.index}")
            return left
    return net.files


def _shard_cleared(spark: SparkSession, part: Part, target: Target, schema: DeltaSchema, *, soft: bool) -> None:
    """The rows of one shard go; the part has no others."""
    last, news = part.transaction(Step.ROWS), _news(schema, target)
    at_us = part.clears.event_time_us if soft and part.clears is not None else None
    few = without_shard(target, schema.arrow(), part.cleared, at_us)
    if few is not None:
        target.commit(last, Commit(schema=news, removed=few[0], files=few[1]))
    else:
        if news is not None and target.held < part.transaction(Step.SCHEMA):
            target.commit(part.transaction(Step.SCHEMA), Commit(schema=news))
        if not target.view.is_empty():
            spark = own_session(spark)
            target.run(last, spark, merge.cleared(spark, target.path, schema, part.cleared, at_us))
        if target.held < last:
            target.commit(last, Commit())


def _begun(
    spark: SparkSession, part: Part, target: Target, schema: DeltaSchema, net: NetFiles, *, clears: bool
) -> Sequence[DataFile]:
    """The rows to put are all that the mirror holds."""
    if net.partial:
        raise missing_row(_first(net.partial[0], FROM))
    if part.counts and net.gone:
        raise missing_row(_first(net.gone[0], ""))
    last = part.transaction(Step.ROWS)
    if not target.by_spark:
        if clears and net.whole and not target.view.is_empty() and target.view.has_change_feed():
            # Kernel knows no rows that go and rows that come in one commit of a table whose feed tells of both.
            target.commit(part.transaction(Step.FILL), Commit(schema=_news(schema, target), clear=True))
            faults.reached("mirror_cleared", f"{target.path} {part.index}")
            clears = False
        target.commit(last, Commit(schema=_news(schema, target), clear=clears, files=net.whole))
        return net.gone
    news = _news(schema, target)
    if news is not None:
        # Rows from before need not fit the schema that comes, so they go with the one that they have.
        target.commit(part.transaction(Step.SCHEMA), Commit(schema=news, clear=clears))
        faults.reached("mirror_schema_committed", f"{target.path} {part.index}")
    if net.whole or (clears and news is None):
        spark = own_session(spark)
        target.run(last, spark, put(spark, target, schema, net.whole, clear=clears and news is None))
    if target.held < last:
        target.commit(last, Commit())
    return net.files


def _changed(spark: SparkSession, part: Part, target: Target, schema: DeltaSchema, net: NetFiles) -> Sequence[DataFile]:
    last = part.transaction(Step.ROWS)
    snapshot = part.last or part.base
    is_filled = target.held >= part.transaction(Step.FILL)
    deleted_at_us = part.clears.event_time_us if part.clears is not None and not is_filled else None
    filled = () if is_filled else part.filled
    if snapshot is None or not (net or filled or deleted_at_us is not None):
        target.commit(last, Commit(schema=_news(schema, target)))
        return net.files
    rewrite = CopyOnWrite(
        directory=target.path,
        schema=schema.arrow(),
        key=tuple(physical_name(column_id) for column_id in snapshot.primary_key) or tuple(schema.arrow().names),
        counts=part.counts,
        put=tuple(file.path for file in net.whole),
        gone=tuple(file.path for file in net.gone),
        filled={physical_name(column.id): initial_scalar(column) for column in filled},
        deleted_at_us=deleted_at_us,
    )
    file_rewrite = None if target.by_spark else taken_up(spark, target.view, rewrite, net)
    if file_rewrite is None and part.counts:
        raise TableStopped(
            "a mirror of a table without a key cannot be merged by Spark",
            where=target.path,
            expected="a mirror without change data feed, row tracking and deletion vectors",
            next_step="give the table a key under sinks[].tables, or take those settings from its mirror; then `historian heal`",
        )
    if file_rewrite is None:
        _merged(spark, part, target, schema, net, deleted_at_us=deleted_at_us)
        return net.files
    faults.reached("mirror_taken_up", f"{target.path} {part.index}")
    target.commit(last, Commit(schema=_news(schema, target), removed=file_rewrite.removed, files=file_rewrite.files))
    taken = {file.path for file in file_rewrite.files}
    return [file for file in (*net.files, *file_rewrite.passing) if file.path not in taken]


def _merged(
    spark: SparkSession, part: Part, target: Target, schema: DeltaSchema, net: NetFiles, *, deleted_at_us: int | None
) -> None:
    """Spark changes the mirror, step by step; steps that it holds are skipped."""
    last, snapshot = part.transaction(Step.ROWS), part.last
    spark = own_session(spark)
    news, columns = _news(schema, target), filled_columns(target, part)
    if news is not None:
        target.commit(part.transaction(Step.SCHEMA), Commit(schema=news))
        faults.reached("mirror_schema_committed", f"{target.path} {part.index}")
    if (columns or deleted_at_us is not None) and target.held < part.transaction(Step.FILL):
        values = merge.filled(spark, target.path, schema, columns, deleted_at_us)
        target.run(part.transaction(Step.FILL), spark, values)
        faults.reached("mirror_filled", f"{target.path} {part.index}")
    if snapshot is not None and net:
        target.run(last, spark, merge.merged(spark, target, schema, snapshot.primary_key, net))
    if target.held < last:
        target.commit(last, Commit())


def _news(schema: DeltaSchema, target: Target) -> DeltaSchema | None:
    return schema.unlike(target.view.schema())


def _changed_unseen(file: DataFile, schema: DeltaSchema) -> TableStopped:
    rows = whole(file.path)
    names = {field.physical: field.name for field in schema.fields}
    key = {names[f.removeprefix(FROM)]: rows.column(f)[0].as_py() for f in rows.schema.names if f.startswith(FROM)}
    return TableStopped(
        "columns of a row changed, and its images do not tell to what",
        where=f"{key}, columns {', '.join(names[column] for column in rows.column(UNSEEN)[0].as_py())}",
        expected=WHOLE_IMAGES,
        next_step="set binlog_row_image=FULL, then `historian heal`; or keep only a changelog of this table, or leave the columns out",
    )


def _first(file: DataFile, prefix: str) -> str:
    rows = whole(file.path)
    return ", ".join(str(rows.column(name)[0].as_py()) for name in rows.schema.names if name.startswith(prefix))
