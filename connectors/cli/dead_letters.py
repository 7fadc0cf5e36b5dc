"""``historian replay-dead-letters``: values that now have a form that holds them come into the targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.heal import held_tracker
from connectors.cli.replay import lake_of
from connectors.cli.terminal.arguments import Config
from connectors.cli.terminal.outcome import ending, say
from connectors.cli.terminal.recorded_history import table_named
from connectors.cli.terminal.sessions import session
from connectors.cli.terminal.work_progress import log_progress

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from connectors.tracking.tracker import Tracker
    from sinks.delta.lake.dead_letters import DeadLetterColumn

__all__ = ["replay_dead_letters"]


@ending
def replay_dead_letters(
    config: Config,
    *,
    table: Annotated[
        str | None, typer.Option("--table", metavar="TABLE", help="Of this table alone, as database.table.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="CHOICE", help="Such as zero_dates; by default all.")
    ] = None,
) -> None:
    """Bring dead letters into the targets, where the configuration now has a form that holds their values.

    Tables with such letters are read again from where they began, into fresh targets, as by `replay --from earliest`. The
    connector must not run meanwhile. Starts Spark.
    """
    from connectors.recovery.replaying import earliest, replay

    wanted = None if table is None else str(table_named(table))
    with held_tracker(config) as (settings, tracker):
        found = _dead_letters(settings, wanted, reason)
        held = {letters: _is_held(tracker, letters) for letters in found}
        for letters, is_held in held.items():
            say(f"{letters}: {'has a form now' if is_held else 'no form that is configured holds them'}")
        if not found:
            say("there are no dead letters")
        for table_id in sorted({letters.table_id for letters, is_held in held.items() if is_held}):
            begin, last = earliest(tracker), tracker.store.last_plan()
            with log_progress("reading the log", tracker.reader, begin, None if last is None else last.end):
                done = replay(tracker, table_id, begin)
            say(f"{done.table}: the next run reads it again into fresh targets, as plan {done.plan.number}")


def _dead_letters(config: PipelineConfig, table: str | None, reason: str | None) -> Sequence[DeadLetterColumn]:
    from historian.values.policies import REASONS
    from sinks.delta import DeltaSink
    from sinks.delta.lake.dead_letters import dead_letter_columns

    lake = lake_of(config)
    if reason is not None and reason not in REASONS:
        raise typer.BadParameter(f"expected one of {', '.join(REASONS)} (got {reason!r})")
    with session(f"replay-dead-letters {config.name}", config.sink_paths, config.run.spark) as spark:
        state = DeltaSink(spark, lake).reading()
        found = () if state is None else dead_letter_columns(spark, state)
    return [each for each in found if table in (None, each.table) and reason in (None, each.choice)]


def _is_held(tracker: Tracker, letters: DeadLetterColumn) -> bool:
    """Whether the column's present form holds every value of its type."""
    from historian.values.policies import holds_all

    versions = tracker.type_options.applied(tracker.history.versions_of(letters.table_id))
    columns = (v.snapshot.column_by_id(letters.column_id) for v in reversed(versions) if v.snapshot is not None)
    column = next((column for column in columns if column is not None), None)
    return column is not None and holds_all(column.type, letters.choice)
