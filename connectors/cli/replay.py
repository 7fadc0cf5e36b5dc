"""``historian replay``: one table is read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.heal import held_tracker
from connectors.cli.terminal.arguments import Config
from connectors.cli.terminal.outcome import ending, say
from connectors.cli.terminal.recorded_history import table_named
from connectors.cli.terminal.sessions import session
from connectors.cli.terminal.work_progress import log_progress
from historian.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.config import PipelineConfig
    from connectors.tracking.tracker import Tracker
    from historian.positions import LogPosition
    from sinks.delta import DeltaSettings
    from sinks.delta.reading.target_status import TableStatus
    from sinks.delta.reseeding.previous_targets import Boundary

__all__ = ["lake_of", "replay"]

_EARLIEST = "earliest"


@ending
def replay(
    config: Config,
    *,
    table: Annotated[str, typer.Option("--table", metavar="TABLE", help="The table, as database.table.")],
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="POS",
            help="Build fresh targets from here on, older rows being taken from the targets that it had; `earliest`: from the"
            " log's begin. By default go on where the targets of a stopped table stand.",
        ),
    ] = None,
) -> None:
    """Read one table again: rebuild its targets from a position, or revive it where its targets stopped.

    The next run writes it, as one plan up to where the others are; behind that the table goes on with them. The targets that
    it had stay as they are, and fresh ones stand beside them. The connector must not run meanwhile. Starts Spark.
    """
    from connectors.recovery import replaying

    wanted = table_named(table)
    with held_tracker(config) as (settings, tracker):
        lake = lake_of(settings)
        with session(f"replay {settings.name}", settings.sink_paths, settings.run.spark) as spark:
            table_status = _table_status(spark, lake, str(wanted))
            if start is None:
                (position, behind), seed = _stopped_at(table_status, table), None
            else:
                behind = 0
                position, seed = _begin(tracker, spark, lake, table_status.table_id, _position(tracker, start))
        last = tracker.store.last_plan()
        with log_progress("reading the log", tracker.reader, position, None if last is None else last.end):
            done = replaying.replay(
                tracker,
                table_status.table_id,
                position,
                behind=behind,
                seed=None if seed is None else (seed.plan, seed.table),
            )
    if seed is not None:
        say(f"{done.table}: what its targets held up to {position}, plan {seed.plan.number}, comes into fresh ones")
    where = "fresh targets" if done.anew else "its targets"
    say(f"{done.table}: the next run reads from {position} to {done.plan.end} into {where}, as plan {done.plan.number}")
    if done.anew:
        say(f"their names end in __r{done.plan.number}; in a catalog they take the names of those that were")


def lake_of(config: PipelineConfig) -> DeltaSettings:
    """The one lake that the configuration writes. Raises :class:`ConfigError` where it writes more that would read rows again."""
    from connectors.sink_kinds import keeps_rows, lake

    keeping = [lake(sink) for sink in config.sinks if keeps_rows(sink)]
    if len(keeping) != 1 or keeping[0] is None:
        problem = "expected one sink of type delta, and no other that keeps rows @ $.sinks"
        raise ConfigError("a table is read again for one lake", problems=(problem,))
    return keeping[0]


def _table_status(spark: SparkSession, lake: DeltaSettings, table: str) -> TableStatus:
    from sinks.delta.reading.target_status import table_status

    return table_status(spark, lake, table)


def _begin(
    tracker: Tracker, spark: SparkSession, lake: DeltaSettings, table_id: int, position: LogPosition
) -> tuple[LogPosition, Boundary | None]:
    """From where fresh targets are read, and what they begin with: from *position* on, or from before it.

    From behind it only where the log does not reach back to a boundary before it.
    """
    from connectors.recovery.replaying import earliest, lacks_rows
    from historian.history.prefix import covers
    from sinks.delta.reading.target_status import seed_for

    if not lacks_rows(tracker, table_id, position):
        return position, None
    first = earliest(tracker)
    seed = seed_for(spark, lake, table_id, position, first)
    if (seed is None or not covers(position, seed.plan.end)) and not lacks_rows(tracker, table_id, first):
        return first, None
    return (position, None) if seed is None else (seed.plan.end, seed)


def _stopped_at(table_status: TableStatus, table: str) -> tuple[LogPosition, int]:
    if not table_status.stopped:
        raise SourceError(
            "the lake has not stopped that table",
            where=table,
            next_step="give --from POS to build fresh targets",
        )
    if table_status.unclear or table_status.stopped_in is None:
        raise SourceError(
            "the table's targets do not stand where they can go on",
            where=table,
            found=table_status.unclear,
            next_step="give --from POS to build fresh targets; older rows come from these as they were",
        )
    return table_status.stopped_in.start, table_status.stopped_in.number - 1


def _position(tracker: Tracker, text: str) -> LogPosition:
    from connectors.recovery.replaying import earliest
    from historian.positions import parse_position

    if text == _EARLIEST:
        return earliest(tracker)
    return tracker.reader.locate(parse_position(text, tracker.reader.flavor))
