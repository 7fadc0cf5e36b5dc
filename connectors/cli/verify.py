"""``historian verify``: mirrors compared with the source, value by value, as of one position."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from connectors.cli.heal import held_tracker
from connectors.cli.replay import lake_of
from connectors.cli.terminal.arguments import Config
from connectors.cli.terminal.outcome import ExitCode, ending
from connectors.cli.terminal.recorded_history import table_named
from connectors.cli.terminal.sessions import session
from connectors.config import ServerSource
from historian.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import SparkSession

    from connectors.config import PipelineConfig
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.names import TableName
    from historian.plans.plans import Plan
    from historian.schema.snapshots import Snapshot
    from sinks.delta import DeltaSettings

__all__ = ["differing_tables", "verify"]


@ending
def verify(
    config: Config,
    *,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table", metavar="TABLE", help="A table, as database.table; may be given again. By default all."
        ),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Let the next run write what differs into the targets.")
    ] = False,
) -> None:
    """Compare targets with the source: every row and value, as of the position that the lake holds.

    Prints each difference as the changelog rows that would mend it. Ends with 1 where there is one, or a table cannot be compared. The connector must not run
    meanwhile. Starts Spark.

    Targets that someone else wrote to are told, with the commits. --repair puts them back as they were, by Delta's RESTORE, before it compares.
    """
    wanted = None if table is None else [table_named(name) for name in table]
    with held_tracker(config) as (settings, tracker), session(f"verify {settings.name}", settings.sink_paths) as spark:
        differing = differing_tables(spark, settings, tracker, wanted, repair=repair)
    if differing:
        raise typer.Exit(ExitCode.FAILED)


def differing_tables(
    spark: SparkSession,
    settings: PipelineConfig,
    tracker: Tracker,
    wanted: Collection[TableName] | None = None,
    *,
    repair: bool = False,
) -> int:
    """How many tables differ, or cannot be compared; prints what does.

    Args:
        tracker: of the connector, whose lease the caller holds.
        wanted: tables; None: all that are captured.
        repair: let the next run write what differs.
    """
    if not isinstance(settings.source, ServerSource):
        raise ConfigError("binlog files hold no tables to compare with", problems=("expected a server @ $.source",))
    from connectors.recovery.repairing import repair as repaired
    from connectors.sink_kinds import repair_limits
    from connectors.tracking.sources import server_address

    address, lake = server_address(settings.source), lake_of(settings)
    limits = repair_limits(settings.source, settings.sinks)
    catalog = tracker.history.catalog_at(_last(tracker).version).tables
    differing: dict[Snapshot, _Difference] = {}
    for name, snapshot in sorted(catalog.items()):
        if not tracker.captured(name) or (wanted is not None and name not in wanted):
            continue
        theirs = _changed_by_others(spark, lake, snapshot, repair=repair)
        if theirs is None or theirs.is_comparable:
            reason = _verified(spark, lake, tracker, address, snapshot, settings.source.backfill.connections)
            theirs = theirs if reason is None else _Difference(reason)
        if theirs is not None:
            differing[snapshot] = theirs
    # A repair is a plan, and the lake does not hold that yet: all tables are compared before.
    for snapshot, found in differing.items() if repair else ():
        if found.reason:
            repaired(tracker, address, snapshot.table_id, found.reason, behind=found.behind, limits=limits)
            typer.echo(f"{snapshot.name}: the next run compares it, and writes what differs")
    return len(differing)


class _Difference(NamedTuple):
    """How a table differs.

    Attributes:
        reason: why the next run is to compare its targets; "": it is not.
        behind: the plan that they hold, where the lake has stopped the table.
        is_comparable: whether they can be compared now all the same.
    """

    reason: str = ""
    behind: int | None = None
    is_comparable: bool = False


def _changed_by_others(
    spark: SparkSession, lake: DeltaSettings, snapshot: Snapshot, *, repair: bool
) -> _Difference | None:
    """What is to be done where others wrote to the table's targets, which a repair puts back; None where they did not."""
    from sinks.delta.log.foreign import CannotPutBack
    from sinks.delta.writing.putting_back import foreign_changes

    name, found = snapshot.name, foreign_changes(spark, lake, snapshot.table_id)
    for target in found.targets:
        for commit in target.commits:
            typer.echo(f"{name}: {target.directory} was changed by someone else: {commit}")
    if not repair:
        if found.targets:
            typer.echo(f"{name}: not compared; `historian verify --table {name} --repair` puts back what was changed")
        return _Difference() if found.targets else None
    try:
        foreign_changes(spark, lake, snapshot.table_id, puts_back=True)
    except CannotPutBack as error:
        typer.echo(f"{name}: not compared: {error}")
        return _Difference(is_comparable=False)
    for target in found.targets:
        typer.echo(f"{name}: {target.directory} is again as it was at version {target.base}")
    if found.behind is not None:
        return _Difference("its targets were changed by someone else, and put back", found.behind)
    return _Difference(is_comparable=True) if found.targets else None


def _last(tracker: Tracker) -> Plan:
    last = tracker.store.last_plan()
    if last is None:
        raise SourceError("the connector has not run yet", where="plans", next_step="`historian run` starts it")
    return last


def _verified(
    spark: SparkSession,
    lake: DeltaSettings,
    tracker: Tracker,
    address: ServerAddress,
    snapshot: Snapshot,
    connections: int,
) -> str | None:
    """Why the table's targets are to be repaired, "" where they cannot be, None where they do not differ; prints what does."""
    from connectors.backfill.spool import Spool
    from connectors.recovery.repairing import read_whole
    from connectors.tail.json_lines import ndjson_rows
    from sinks.contract.local_chunks import LocalChunks
    from sinks.delta.repairs.returning import LeftBehind
    from sinks.delta.writing.comparing import NotComparable, compared

    with closing(Spool()) as copied, closing(LocalChunks(threads=connections)) as chunks:
        plan = read_whole(tracker, address, snapshot.table_id, "verify", copied, connections=connections)
        if plan is None:
            raise SourceError(
                "a statement is on the table behind what the lake holds",
                where=str(snapshot.name),
                next_step="`historian run --once`, then verify again",
            )
        chunks.fill([copied.chunks])
        try:
            with compared(spark, lake, plan, chunks) as found:
                rows = sum(found.record.operations.values())
                for chunk in found.chunks:
                    for line in ndjson_rows(chunk, found.snapshot):
                        typer.echo(line)
        except (NotComparable, LeftBehind) as error:
            typer.echo(f"{snapshot.name}: not compared: {error}")
            return "verify could not compare its targets" if isinstance(error, LeftBehind) else ""
    typer.echo(
        f"{snapshot.name}: {found.record.rows_read} rows at {plan.end}, {rows} changelog rows would mend its targets"
    )
    return f"verify found {rows} changelog rows to mend" if rows else None
