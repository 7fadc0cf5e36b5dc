"""``historian heal`` and ``historian ddl-override``: stopped tables go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.terminal.arguments import Config, configured
from connectors.cli.terminal.outcome import ending, say, tell
from connectors.cli.terminal.recorded_history import open_recorded, table_named
from connectors.cli.terminal.work_progress import log_progress
from historian.errors import SourceError

if TYPE_CHECKING:
    from connectors.cli.terminal.progress import Progress
    from connectors.config import PipelineConfig
    from connectors.tracking.tracker import Tracker
    from historian.names import TableName

__all__ = ["ddl_override", "heal", "held_tracker"]

_Table = Annotated[str, typer.Option("--table", metavar="TABLE", help="The stopped table, as database.table.")]


@ending
def heal(
    config: Config,
    *,
    table: Annotated[
        str | None, typer.Option("--table", metavar="TABLE", help="The stopped table, as database.table.")
    ] = None,
    repair: Annotated[
        bool | None,
        typer.Option(
            help="Compare targets with the source too, so that they lack nothing. By default where the connector copies rows."
        ),
    ] = None,
    lost_log: Annotated[
        bool, typer.Option("--lost-log", help="Go on behind log that was purged before it was read, with all tables.")
    ] = False,
) -> None:
    """Capture a stopped table anew from the server, or of topics from `source.schema`; it goes on from the log's present end.

    Its targets lack what changed between its stop and there. A connector that began with `initial` compares them with the source, so that they lack nothing.
    With --no-repair, and for other connectors, the changelog goes on behind a gap, and the mirror stays as it was. If a statement stopped the table,
    `ddl-override` loses nothing. The connector must not run meanwhile.
    """
    from connectors.recovery import healing
    from connectors.tracking.copier import copies_rows

    if (table is None) == (not lost_log):
        raise typer.BadParameter("give --table TABLE or --lost-log, one of the two")
    wanted = None if table is None else table_named(table)
    with held_tracker(config) as (settings, tracker):
        if wanted is None:
            done = healing.skip_lost_log(tracker)
            say(f"all tables go on from {done.position}")
            say(f"not known, of any table: its schema and rows behind {done.since} and up to there")
            names = sorted(name for name in tracker.history.catalog.tables if tracker.captured(name))
        else:
            with _catching_up(tracker):
                done = healing.heal(tracker, wanted, limit_bytes=settings.run.max_batch_bytes)
            say(f"{wanted} goes on from {done.position}, captured as version {done.version}")
            if done.since is not None:
                say(f"not known: its schema and rows behind {done.since} and up to there")
            names = [wanted]
        if copies_rows(settings.source, tracker.store) if repair is None else repair:
            for name in names:
                try:
                    _repair(settings, tracker, name)
                except SourceError as error:
                    if wanted is not None or error.retryable:
                        raise
                    tell(f"{name}: not compared with the source: {error}")
            return
    if done.since is not None:
        say("the next run leaves a gap in changelogs there, and mirrors as they are: what changed is missing from them")


def _repair(config: PipelineConfig, tracker: Tracker, table: TableName) -> None:
    from connectors.config import ServerSource
    from connectors.recovery.repairing import repair
    from connectors.sink_kinds import repair_limits
    from connectors.tracking.sources import server_address

    source, snapshot = config.source, tracker.history.catalog.tables[table]
    assert isinstance(source, ServerSource)  # noqa: S101 - else nothing could be captured
    limits = repair_limits(source, config.sinks)
    reason = "captured anew by historian heal"
    plan = repair(tracker, server_address(source), snapshot.table_id, reason, limits=limits)
    if plan is None:
        raise SourceError(
            "a statement came while the table was compared with the source",
            where=str(table),
            next_step=f"`historian run --once`, then `historian verify --table {table} --repair`",
        )
    say(f"{table}: the next run gives its targets what differs, from plan {plan.number} on")


@ending
def ddl_override(
    config: Config,
    *,
    table: _Table,
    statement: Annotated[
        str,
        typer.Option(
            "--statement", metavar="SQL", help="What the statement did, as one on this table; '' where it did nothing."
        ),
    ],
) -> None:
    """Give a statement in place of one that was not understood; its table goes on from there without a gap.

    The log from the stop on is read again for this table; the next run delivers what was held back. The statement is checked
    against the rows behind it as far as the log tells. The connector must not run meanwhile.
    """
    from connectors.recovery.overriding import override

    wanted = table_named(table)
    with held_tracker(config) as (settings, tracker):
        with _catching_up(tracker):
            done = override(tracker, wanted, statement, limit_bytes=settings.run.max_batch_bytes)
        stopped = {str(name): quarantine.reason for _, name, quarantine in tracker.store.stopped()}
    say(f"{wanted} goes on behind {done.position}, as version {done.version}; the next run delivers what was held back")
    if table in stopped:
        say(f"it stops again, further on\n  {stopped[table]}")


def _catching_up(tracker: Tracker) -> AbstractContextManager[Progress]:
    """Draws how much of the log is read that no plan has been made of."""
    last = tracker.store.last_plan()
    return log_progress("reading the log", tracker.reader, tracker.end_of(0 if last is None else last.number))


@contextmanager
def held_tracker(path: Path) -> Iterator[tuple[PipelineConfig, Tracker]]:
    """The connector's tracker, its lease held. Its plans copy nothing, and keep to what is copied already."""
    from connectors.backfill.copying import Copier
    from connectors.config import ServerSource
    from connectors.tracking.copier import copies_rows
    from connectors.tracking.sources import make_tracker, server_address

    settings = configured(path)
    store, source = open_recorded(settings), settings.source
    with closing(make_tracker(settings, store=store)) as tracker, store.lease(settings.name):
        if isinstance(source, ServerSource) and copies_rows(source, store):
            tracker.copier = Copier(tracker, server_address(source), source.backfill, reads=False)
        yield settings, tracker
