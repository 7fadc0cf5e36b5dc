"""A run as lines on standard error: what starts, its plans, tables that stop, and what was done in the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from connectors.cli.terminal.logs import bind, writes_lines
from connectors.cli.terminal.outcome import tell
from connectors.cli.terminal.sizes import bytes_text, counted
from connectors.monitoring.observer import Observer, WrittenPlan
from historian.errors import HistorianError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.plans.plans import Plan, TableCopy
    from historian.store import Store

__all__ = ["RunLines"]

_EVERY_S = 5.0
_LOOK_EVERY_S = 1.0


class RunLines(Observer):
    """A line for each table that stops, within about a second, and for plans with something in them.

    Where plans come fast, a line tells of all since the last one, :data:`_EVERY_S` seconds later at the earliest. The first plan and the
    last one are told in any case. As JSON each plan has its record.

    Args:
        tells_plans: something else shows them where not.
        is_alone: no other connector runs in the process; else lines begin with its name.
        clock_s: a clock that never goes back.

    Attributes:
        stopped: captured tables that have, and did not come back since.
    """

    def __init__(
        self,
        config: PipelineConfig,
        *,
        tells_plans: bool = True,
        is_alone: bool = True,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_alone = is_alone
        self._config = config
        self._tells_plans = tells_plans
        self._clock_s = clock_s
        self._store: Store | None = None
        self._untold: list[WrittenPlan] = []
        self._told_s: float | None = None
        self._looked_s: float | None = None
        self._unlooked: Mapping[str, str] | None = None
        self._plans = 0
        self._end = ""
        self._left_out: set[str] = set()
        self.stopped: set[str] = set()

    def configured(self, config: PipelineConfig) -> None:
        """Which tables are captured by now."""
        self._config = config

    def begins(self, end: str) -> None:
        """Tells what starts, and where it goes on from."""
        from connectors.tracking.recorded import reached_plan, recorded_store

        self._store = recorded_store(self._config)
        plan = None if self._store is None else reached_plan(self._store)
        source = self._config.source
        began = (self._store and self._store.start()) or source.start
        begin = f"begins at {began}" if plan is None else f"goes on behind plan {plan.number}, {plan.end}"
        tell(f"{self._config.name}: replicates {source.place}; {begin}{f', up to {end}' if end else ''}; Spark starts")

    def closed(self) -> None:
        """What follows is of no plan."""
        self._tell_plans()
        self._bind(plan=None)
        if self._unlooked is not None:
            with suppress(HistorianError):  # What ended the run is told by itself.
                self.look_for_stopped(self._unlooked)

    def planned(self, plan: Plan) -> None:
        """Names the plan in what is logged while it is written."""
        self._bind(plan=plan.number)

    def written(self, written: WrittenPlan) -> None:
        """Tells of a plan that all sinks hold, now or later, and of tables that stopped."""
        self._plans += 1
        self._end = str(written.plan.end)
        if written.plan.tables and self._tells_plans:
            self._untold.append(written)
            if not writes_lines() or self._is_time():
                self._tell_plans()
        self._bind(plan=None)
        self._unlooked = written.stopped
        self._look()

    def waits(self, waiting_bytes: int) -> None:  # noqa: ARG002 that time passes is enough
        """Tells of plans whose time has come, and of tables that stopped in them."""
        if self._is_time():
            self._tell_plans()
        self._look()

    def _look(self) -> None:
        """Looks behind a plan, but not so often that plans that come fast wait for it: each look opens the store."""
        is_time = self._looked_s is None or self._clock_s() - self._looked_s >= _LOOK_EVERY_S
        if self._unlooked is not None and is_time:
            self.look_for_stopped(self._unlooked)

    def _is_time(self) -> bool:
        return self._told_s is None or self._clock_s() - self._told_s >= _EVERY_S

    def _tell_plans(self) -> None:
        if not self._untold:
            return
        written, self._untold = _Written.of(self._untold), []
        now = datetime.now(timezone.utc).astimezone()
        copied = f"{''.join(_copied(written.copies))}{self._left() if written.copies else ''}"
        behind = f", {_behind(written.event_time_us, now)} behind" if written.event_time_us else ""
        self._tell(f"{now:%H:%M:%S} {written.text(copied)}{behind}, up to {written.end}", **written.fields())
        self._told_s = self._clock_s()

    def _left(self) -> str:
        from historian.store import left_s

        seconds = None if self._store is None else left_s(self._store.copies().values())
        return f", about {timedelta(seconds=seconds)} left" if seconds else ""

    def look_for_stopped(self, stopped_by_sinks: Mapping[str, str]) -> None:
        """Tells of tables that stopped since the last look, and of those that go on; one whose schema was never known is in no plan.

        Args:
            stopped_by_sinks: all that are stopped now, and why.
        """
        from connectors.tracking.recorded import recorded_store, stopped_tables

        self._unlooked, self._looked_s = None, self._clock_s()
        if self._store is None:
            self._store = recorded_store(self._config)
        now = set(stopped_by_sinks)
        for found in () if self._store is None else stopped_tables(self._store):
            name = str(found.table)
            now.add(name)
            if name in self.stopped | self._left_out:
                continue
            if self._config.source.tables(found.table):
                self.stopped.add(name)
                self._tell(str(found), level=logging.ERROR, table=name)
            else:
                self._left_out.add(name)
                self._tell(str(found), level=logging.WARNING, table=name)
        for table, reason in stopped_by_sinks.items():
            if table not in self.stopped:
                self.stopped.add(table)
                self._tell(f"stopped: {table} in its targets\n  {reason}", level=logging.ERROR, table=table)
        for table in sorted(self.stopped - now):
            self.stopped.remove(table)
            self._tell(f"goes on: {table}", table=table)

    def _tell(self, text: str, **fields: Any) -> None:
        name = self._config.name
        if self._is_alone:
            tell(text, **fields)
        else:
            tell(f"{name}: {text}", connector=name, **fields)

    def _bind(self, **fields: object) -> None:
        """Fields of all records of the process are those of its one connector."""
        if self._is_alone:
            bind(**fields)

    def close(self) -> None:
        """Closes the store."""
        if self._store is not None:
            self._store.close()

    def summary(self) -> str:
        """What the run did, in one line."""
        done = f"{counted(self._plans, 'plan')} written, up to {self._end}" if self._plans else "nothing new in the log"
        stopped = f"; stopped: {', '.join(sorted(self.stopped))}" if self.stopped else ""
        return f"{done}{stopped}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """Plans that one line tells of; ``number`` is the last one's."""

    number: int
    plans: int
    rows: int
    tables: int
    statements: int
    copies: tuple[tuple[int, TableCopy], ...]
    took_s: float
    event_time_us: int
    end: str

    @classmethod
    def of(cls, written: Sequence[WrittenPlan]) -> _Written:
        last, plans = written[-1], [each.plan for each in written]
        tables = [table for plan in plans for table in plan.tables]
        return cls(
            number=last.plan.number,
            plans=len(plans),
            rows=sum(sum(each.rows.values()) for each in written),
            tables=len({table.table_id for table in tables}),
            statements=len({v.version for table in tables for v in table.versions if v.place is not None}),
            copies=tuple((table.table_id, table.copy) for table in tables if table.copy is not None),
            took_s=sum(each.decode_s + sum(each.write_s) for each in written),
            event_time_us=last.event_time_us,
            end=str(last.plan.end),
        )

    def text(self, copied: str) -> str:
        plans = f" of {self.plans} plans" if self.plans > 1 else ""
        changes = f", {counted(self.statements, 'schema change')}" if self.statements else ""
        what = f"{counted(self.rows, 'row')}{plans}, {counted(self.tables, 'table')}{changes}{copied}"
        return f"plan {self.number}: {what}, in {self.took_s:.1f} s"

    def fields(self) -> dict[str, Any]:
        return {"rows": self.rows, "tables": self.tables, "seconds": round(self.took_s, 3), "end": self.end}


def _copied(copies: Sequence[tuple[int, TableCopy]]) -> list[str]:
    """How many rows were copied, and how many compared, with their bytes in memory; a table of several plans counts once."""
    told = []
    for what, mine in (
        ("copied", [each for each in copies if not each[1].repairs]),
        ("compared", [each for each in copies if each[1].repairs]),
    ):
        rows, done = sum(copy.rows for _, copy in mine), sum({i: copy.is_done for i, copy in mine}.values())
        sizes = [copy.size_bytes for _, copy in mine if copy.rows]
        # An older release's plan does not say.
        size = "" if not sizes or None in sizes else f" ({bytes_text(sum(filter(None, sizes)))})"
        told += (
            [f", {counted(rows, 'row')}{size} {what}, {done} of {counted(len({i for i, _ in mine}), 'table')} whole"]
            if mine
            else []
        )
    return told


def _behind(event_time_us: int, now: datetime) -> str:
    """How long ago that was, in whole seconds."""
    passed = now - datetime.fromtimestamp(event_time_us / 1e6, timezone.utc)
    return str(max(timedelta(0), timedelta(seconds=round(passed.total_seconds()))))
