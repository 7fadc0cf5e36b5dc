"""``historian verify``: mirrors compared with the source, value by value, as of one position."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from connectors.cli.comparison import Comparison, last_plan, print_rows
from connectors.cli.heal import held_tracker
from connectors.cli.replay import lake_of
from connectors.cli.terminal.arguments import Config, configured
from connectors.cli.terminal.kernels import compile_first
from connectors.cli.terminal.outcome import ExitCode, ending, say
from connectors.cli.terminal.progress import can_be_live, progress
from connectors.cli.terminal.recorded_history import open_recorded, table_named
from connectors.cli.terminal.sessions import session
from connectors.config import ServerSource
from historian.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import SparkSession

    from connectors.cli.terminal.progress import Progress
    from connectors.config import PipelineConfig
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.changelog.chunks import Chunk
    from historian.names import TableName
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
    continuous: Annotated[
        bool,
        typer.Option(
            "--continuous", help="Compare range by range, round by round, while the connector runs, until ended."
        ),
    ] = False,
) -> None:
    """Compare targets with the source: every row and value, as of the position that the lake holds.

    Prints each difference as the changelog rows that would mend it. Ends with 1 where there is one, or a table cannot be compared. The connector must not run
    meanwhile. Starts Spark.

    Targets that someone else wrote to are told, with the commits. --repair puts them back as they were, by Delta's RESTORE, before it compares.

    --sample compares ranges of the primary key, chosen at random. A table whose key tells none, such as one of texts, is compared as a whole. With
    --repair the next run compares all of a table that differs.

    --continuous holds no lease and writes nothing, so the connector may run. It keeps to the limits of `source.backfill`. What differs is compared again as of
    a later plan, and printed where it still does. SIGINT or SIGTERM ends it.
    """
    if sample is not None and not 0 < sample <= 100:
        raise typer.BadParameter("give --sample a number above 0 and up to 100")
    wanted = None if table is None else [table_named(name) for name in table]
    compile_first()
    if continuous:
        if repair or sample is not None:
            raise typer.BadParameter(
                "--continuous goes alone: a repair is ordered by `historian verify --repair` when the connector stands still"
            )
        if _differs_meanwhile(configured(config), wanted):
            raise typer.Exit(ExitCode.FAILED)
        return
    with (
        held_tracker(config) as (settings, tracker),
        session(f"verify {settings.name}", settings.sink_paths, settings.run.spark) as spark,
    ):
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
    from connectors.recovery.repairing import repair as repaired
    from connectors.sink_kinds import repair_limits
    from connectors.tracking.sources import server_address

    lake = _compared_lake(settings)
    assert isinstance(settings.source, ServerSource)  # noqa: S101 checked with the lake
    address = server_address(settings.source)
    limits = repair_limits(settings.source, settings.sinks)
    catalog = tracker.history.catalog_at(last_plan(tracker).version).tables
    differing: dict[Snapshot, _Difference] = {}
    compared = {
        name: snapshot
        for name, snapshot in sorted(catalog.items())
        if tracker.captured(name) and (wanted is None or name in wanted)
    }
    # Rows are read, and compared. A table costs something that holds none, and one that the server knows nothing of.
    weights = {name: 1 + rows for name, rows in (dict.fromkeys(compared, 0) | _estimates(address, compared)).items()}
    with progress("verifying", 2 * sum(weights.values())) as told:
        comparison = Comparison(
            spark=spark,
            lake=lake,
            tracker=tracker,
            address=address,
            connections=settings.source.backfill.connections,
            percent=percent,
            on_read=lambda: told.reach(reached + weights[name]),
        )
        reached = 0
        for number, (name, snapshot) in enumerate(compared.items(), 1):
            told.what = f"verifying {name}, {number} of {len(compared)}"
            theirs = _changed_by_others(spark, lake, snapshot, repair=repair)
            if theirs is None or theirs.is_comparable:
                reason = comparison.differs(snapshot)
                theirs = theirs if reason is None else _Difference(reason)
            if theirs is not None:
                differing[snapshot] = theirs
            reached += 2 * weights[name]
            told.reach(reached)
    # A repair is a plan, and the lake does not hold that yet: all tables are compared before.
    for snapshot, found in differing.items() if repair else ():
        if found.reason:
            repaired(tracker, address, snapshot.table_id, found.reason, behind=found.behind, limits=limits)
            say(f"{snapshot.name}: the next run compares it, and writes what differs")
    return len(differing)


def _estimates(address: ServerAddress, names: Collection[TableName]) -> dict[TableName, int]:
    """About how many rows tables hold, where somebody sees it."""
    from connectors.backfill.estimates import estimated_rows

    return estimated_rows(address, names) if can_be_live() else {}


def _differs_meanwhile(settings: PipelineConfig, wanted: Collection[TableName] | None) -> bool:
    """Compares until a signal comes; whether anything differed."""
    from connectors.pipeline.continuous import ContinuousComparison
    from connectors.pipeline.signals import signals
    from connectors.tracking.sources import server_address

    lake, stopping = _compared_lake(settings), threading.Event()
    assert isinstance(settings.source, ServerSource)  # noqa: S101 checked with the lake
    with (
        closing(open_recorded(settings)) as store,
        signals(stopping.set),
        session(f"verify {settings.name}", settings.sink_paths, settings.run.spark) as spark,
        # A Spark context takes SIGINT for itself.
        signals(stopping.set),
        progress("verifying") as told,
    ):
        rounds = _Rounds(told, server_address(settings.source))
        return ContinuousComparison(spark, settings, lake, store, wanted, told=rounds, stopping=stopping).run()


class _Rounds:
    """What a continuous comparison tells, see :class:`connectors.pipeline.continuous.Told`; its rounds are a bar, of about as many rows as the server says."""

    def __init__(self, told: Progress, address: ServerAddress) -> None:
        self._told = told
        self._address = address
        self._number = 0
        self._weights: dict[TableName, int] = {}

    def say(self, line: str) -> None:
        """Prints it."""
        say(line)

    def differs(self, chunk: Chunk, table: Snapshot) -> None:
        """Prints the rows."""
        print_rows(chunk, table)

    def begins(self, tables: Collection[TableName]) -> None:
        """Draws a new round."""
        rows = _estimates(self._address, tables)
        self._number += 1
        # A table costs something that holds none.
        self._weights = {name: 1 + rows.get(name, 0) for name in tables}
        self._told.what, self._told.total = f"round {self._number}", sum(self._weights.values()) or None
        self._told.reach(0)

    def reached(self, table: TableName, rows: int) -> None:
        """Draws it so far. Of a table that holds more than was said the rest does not count."""
        names = list(self._weights)
        at = names.index(table)
        self._told.what = f"round {self._number}: verifying {table}, {at + 1} of {len(names)}"
        self._told.reach(sum(self._weights[name] for name in names[:at]) + min(rows, self._weights[table]))


def _compared_lake(settings: PipelineConfig) -> DeltaSettings:
    if not isinstance(settings.source, ServerSource):
        raise ConfigError(
            "binlog files and topics hold no tables to compare with", problems=("expected a server @ $.source",)
        )
    return lake_of(settings)


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
            say(f"{name}: {target.directory} was changed by someone else: {commit}")
    if not repair:
        if found.targets:
            say(f"{name}: not compared; `historian verify --table {name} --repair` puts back what was changed")
        return _Difference() if found.targets else None
    try:
        foreign_changes(spark, lake, snapshot.table_id, puts_back=True)
    except CannotPutBack as error:
        say(f"{name}: not compared: {error}")
        return _Difference(is_comparable=False)
    for target in found.targets:
        say(f"{name}: {target.directory} is again as it was at version {target.base}")
    if found.behind is not None:
        return _Difference("its targets were changed by someone else, and put back", found.behind)
    return _Difference(is_comparable=True) if found.targets else None
