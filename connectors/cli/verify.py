"""``historian verify``: mirrors compared with the source, value by value, as of one position."""

from __future__ import annotations

import random
from dataclasses import dataclass
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
    from collections.abc import Callable, Collection

    from pyspark.sql import SparkSession

    from connectors.backfill.spool import Spool
    from connectors.config import PipelineConfig
    from connectors.pipeline.comparing import ComparedRows
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.changelog.chunks import Chunk
    from historian.names import TableName
    from historian.plans.key_ranges import KeyRange
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
    sample: Annotated[
        float | None,
        typer.Option("--sample", metavar="PERCENT", help="Compare about so much of each table, other rows each time."),
    ] = None,
) -> None:
    """Compare targets with the source: every row and value, as of the position that the lake holds.

    Prints each difference as the changelog rows that would mend it. Ends with 1 where there is one, or a table cannot be compared. The connector must not run
    meanwhile. Starts Spark.

    Targets that someone else wrote to are told, with the commits. --repair puts them back as they were, by Delta's RESTORE, before it compares.

    --sample compares ranges of the primary key, chosen at random. A table whose key tells none, such as one of texts, is compared as a whole. With
    --repair the next run compares all of a table that differs.
    """
    if sample is not None and not 0 < sample <= 100:
        raise typer.BadParameter("give --sample a number above 0 and up to 100")
    wanted = None if table is None else [table_named(name) for name in table]
    with held_tracker(config) as (settings, tracker), session(f"verify {settings.name}", settings.sink_paths) as spark:
        differing = differing_tables(spark, settings, tracker, wanted, repair=repair, percent=sample)
    if differing:
        raise typer.Exit(ExitCode.FAILED)


def differing_tables(
    spark: SparkSession,
    settings: PipelineConfig,
    tracker: Tracker,
    wanted: Collection[TableName] | None = None,
    *,
    repair: bool = False,
    percent: float | None = None,
) -> int:
    """How many tables differ, or cannot be compared; prints what does.

    Args:
        tracker: of the connector, whose lease the caller holds.
        wanted: tables; None: all that are captured.
        repair: let the next run write what differs.
        percent: of each table's rows, about, that are compared; None: all are.
    """
    if not isinstance(settings.source, ServerSource):
        raise ConfigError("binlog files hold no tables to compare with", problems=("expected a server @ $.source",))
    from connectors.recovery.repairing import repair as repaired
    from connectors.sink_kinds import repair_limits
    from connectors.tracking.sources import server_address

    address, lake = server_address(settings.source), lake_of(settings)
    limits = repair_limits(settings.source, settings.sinks)
    catalog = tracker.history.catalog_at(_last(tracker).version).tables
    comparison = _Comparison(
        spark=spark,
        lake=lake,
        tracker=tracker,
        address=address,
        connections=settings.source.backfill.connections,
        percent=percent,
    )
    differing: dict[Snapshot, _Difference] = {}
    for name, snapshot in sorted(catalog.items()):
        if not tracker.captured(name) or (wanted is not None and name not in wanted):
            continue
        theirs = _changed_by_others(spark, lake, snapshot, repair=repair)
        if theirs is None or theirs.is_comparable:
            reason = comparison.differs(snapshot)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """What tables are compared with, and how."""

    spark: SparkSession
    lake: DeltaSettings
    tracker: Tracker
    address: ServerAddress
    connections: int
    percent: float | None

    def differs(self, snapshot: Snapshot) -> str | None:
        """Why the table's targets are to be repaired, "" where they cannot be, None where they do not differ; prints what does."""
        from sinks.delta.repairs.returning import LeftBehind
        from sinks.delta.writing.comparing import NotByRanges, NotComparable

        try:
            if self.percent is not None:
                try:
                    return self._sampled(snapshot, self.percent)
                except NotByRanges:
                    self._tell_whole(snapshot)
            return self._whole(snapshot)
        except (NotComparable, LeftBehind) as error:
            typer.echo(f"{snapshot.name}: not compared: {error}")
            return "verify could not compare its targets" if isinstance(error, LeftBehind) else ""

    def _whole(self, snapshot: Snapshot) -> str | None:
        from connectors.recovery.repairing import read_whole

        def read(copied: Spool) -> Plan | None:
            table_id, connections = snapshot.table_id, self.connections
            return read_whole(self.tracker, self.address, table_id, "verify", copied, connections=connections)

        found = self._compared(snapshot, read)
        typer.echo(f"{snapshot.name}: {found.rows_read} rows at {found.end}, {_mending(found.rows_differing)}")
        return _reason(found.rows_differing)

    def _sampled(self, snapshot: Snapshot, percent: float) -> str | None:
        """As :meth:`differs`, of random ranges of its key. Raises NotByRanges where there are none that targets tell too."""
        from connectors.backfill.keys.split_key import SplitKey
        from connectors.backfill.samples import random_ranges
        from connectors.backfill.splits import repaired_by_ranges
        from connectors.recovery.repairing import read_range, table_behind

        tracker, last = self.tracker, _last(self.tracker)
        table = table_behind(tracker, snapshot.table_id, last)
        flavor, now = tracker.reader.flavor, table.versions[-1]
        key = None if now.snapshot is None else SplitKey.of(now.snapshot, flavor)
        if key is None or not repaired_by_ranges(now, flavor):
            self._tell_whole(snapshot)
            return self._whole(snapshot)
        sample = random_ranges(self.address, key, percent, random.SystemRandom())
        rows = differing = 0
        for keys in sample.ranges:

            def read(copied: Spool, keys: KeyRange = keys) -> Plan | None:
                return read_range(tracker, self.address, table, last, keys, copied, tracker.history.last_number)

            found = self._compared(snapshot, read)
            rows, differing = rows + found.rows_read, differing + found.rows_differing
        typer.echo(
            f"{snapshot.name}: {rows} of about {max(rows, sample.table_rows)} rows at {last.end}, in {len(sample.ranges)}"
            f" ranges of its key, {_mending(differing)}"
        )
        return _reason(differing)

    def _compared(self, snapshot: Snapshot, read: Callable[[Spool], Plan | None]) -> ComparedRows:
        from connectors.pipeline.comparing import compare

        found = compare(self.spark, self.lake, read, _print_rows, threads=self.connections)
        if found is None:
            raise SourceError(
                "a statement is on the table behind what the lake holds",
                where=str(snapshot.name),
                next_step="`historian run --once`, then verify again",
            )
        return found

    def _tell_whole(self, snapshot: Snapshot) -> None:
        typer.echo(
            f"{snapshot.name}: compared as a whole, since targets do not tell which rows lie in a range of its key"
        )


def _print_rows(chunk: Chunk, snapshot: Snapshot) -> None:
    from connectors.tail.json_lines import ndjson_rows

    for line in ndjson_rows(chunk, snapshot):
        typer.echo(line)


def _mending(rows: int) -> str:
    return f"{rows} changelog rows would mend its targets"


def _reason(rows: int) -> str | None:
    return f"verify found {rows} changelog rows to mend" if rows else None
