"""``historian run``: replicates until stopped."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.terminal.arguments import Config, configured
from connectors.cli.terminal.logs import bind
from connectors.cli.terminal.outcome import ExitCode, ending, tell
from connectors.monitoring.observer import Observer, WrittenPlan
from historian.errors import ConfigError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.plans.plans import Plan
    from historian.store import Store

__all__ = ["run"]


@ending
def run(
    config: Config,
    *,
    once: Annotated[bool, typer.Option("--once", help="End at what the log holds now.")] = False,
    until: Annotated[
        str | None, typer.Option("--until", metavar="POS", help="End at this position: GTIDs, or file:offset.")
    ] = None,
) -> None:
    """Replicate the log into the configured sinks.

    Ctrl-C ends it after the running batch. Start it again and it goes on where it was; nothing is written twice.
    Ends with 1 where a captured table stopped on the way; the others are complete.
    """
    from connectors.pipeline.run import run as replicate

    settings = configured(config)
    if once and until is not None:
        raise typer.BadParameter("give --once or --until, not both")
    if not settings.sinks:
        raise ConfigError("there is nothing to write to", problems=("missing @ $.sinks",), where=str(config))
    if until is not None:
        until = _located(settings, until)
    bind(connector=settings.name)
    progress = _Progress(settings)
    progress.begins(until or ("the log's present end" if once or settings.run.once else ""))
    try:
        stopped = replicate(settings, once=once, until=until, observer=progress)
        progress.look_for_stopped(stopped)
    finally:
        progress.close()
    tell(progress.summary())
    if progress.stopped:
        raise typer.Exit(ExitCode.FAILED)


def _located(config: PipelineConfig, text: str) -> str:
    """The position in GTIDs where the log has them: file and offset do not compare with those of a plan."""
    from connectors.tracking.sources import make_reader
    from historian.positions import parse_position

    position = parse_position(text, config.source.flavor)
    with closing(make_reader(config.source)) as reader:
        return str(reader.locate(position))


class _Progress(Observer):
    """A line on standard error for each plan with something in it, and for each table that stops."""

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self._store: Store | None = None
        self.plans = 0
        self.end = ""
        self.stopped: set[str] = set()

    def begins(self, end: str) -> None:
        """Tells what starts, and where it goes on from."""
        from connectors.tracking.recorded import recorded_store

        self._store = recorded_store(self._config)
        plan = None if self._store is None else self._store.last_plan()
        source = self._config.source
        began = (self._store and self._store.start()) or source.start
        begin = f"begins at {began}" if plan is None else f"goes on behind plan {plan.number}, {plan.end}"
        tell(f"{self._config.name}: replicates {source.place}; {begin}{f', up to {end}' if end else ''}; Spark starts")

    def closed(self) -> None:
        """What follows is of no plan."""
        bind(plan=None)

    def planned(self, plan: Plan) -> None:
        """Names the plan in what is logged while it is written."""
        bind(plan=plan.number)

    def written(self, written: WrittenPlan) -> None:
        """Tells of a plan that all sinks hold, and of tables that stopped."""
        plan = written.plan
        self.plans += 1
        self.end = str(plan.end)
        if plan.tables:
            statements = len({v.version for table in plan.tables for v in table.versions if v.place is not None})
            changes = f", {statements} schema changes" if statements else ""
            copies = [table.copy for table in plan.tables if table.copy is not None]
            told = []
            for what, mine in (
                ("copied", [copy for copy in copies if not copy.repairs]),
                ("compared", [copy for copy in copies if copy.repairs]),
            ):
                rows, done = sum(copy.rows for copy in mine), sum(copy.is_done for copy in mine)
                told += [f", {rows} rows {what}, {done} of {len(mine)} tables whole"] if mine else []
            copied = f"{''.join(told)}{self._left() if copies else ''}"
            now = datetime.now(timezone.utc).astimezone()
            rows, took_s = sum(written.rows.values()), written.decode_s + sum(written.write_s)
            behind = f", {_behind(written.event_time_us, now)} behind" if written.event_time_us else ""
            fields: dict[str, Any] = {
                "rows": rows,
                "tables": len(plan.tables),
                "seconds": round(took_s, 3),
                "end": str(plan.end),
            }
            tell(
                f"{now:%H:%M:%S} plan {plan.number}: {rows} rows, {len(plan.tables)} tables{changes}{copied}, in {took_s:.1f} s{behind}, "
                f"up to {plan.end}",
                **fields,
            )
        bind(plan=None)
        self.look_for_stopped(written.stopped)

    def _left(self) -> str:
        from historian.store import left_s

        seconds = None if self._store is None else left_s(self._store.copies().values())
        return f", about {timedelta(seconds=seconds)} left" if seconds else ""

    def look_for_stopped(self, stopped_by_sinks: Mapping[str, str]) -> None:
        """Tells of tables that stopped since the last look; one whose schema was never known is in no plan."""
        from connectors.tracking.recorded import recorded_store, stopped_tables

        if self._store is None:
            self._store = recorded_store(self._config)
        for found in () if self._store is None else stopped_tables(self._store):
            if str(found.table) not in self.stopped:
                self.stopped.add(str(found.table))
                tell(str(found), level=logging.ERROR, table=str(found.table))
        for table, reason in stopped_by_sinks.items():
            if table not in self.stopped:
                self.stopped.add(table)
                tell(f"stopped: {table} in its targets\n  {reason}", level=logging.ERROR, table=table)

    def close(self) -> None:
        """Closes the store."""
        if self._store is not None:
            self._store.close()

    def summary(self) -> str:
        """What the run did, in one line."""
        done = f"{self.plans} plans written, up to {self.end}" if self.plans else "nothing new in the log"
        stopped = f"; stopped: {', '.join(sorted(self.stopped))}" if self.stopped else ""
        return f"{done}{stopped}"


def _behind(event_time_us: int, now: datetime) -> str:
    """How long ago that was, in whole seconds."""
    passed = now - datetime.fromtimestamp(event_time_us / 1e6, timezone.utc)
    return str(max(timedelta(0), timedelta(seconds=round(passed.total_seconds()))))
