"""The Delta sink: plans become commits of changelogs, mirrors and histories, each exactly once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from historian.errors import ChainBroken, PositionExpired, TableStopped
from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan
from sinks.contract.base import RecoveredStore, TargetStatus
from sinks.contract.chain import check_connector, check_follows
from sinks.contract.chunks import Chunks
from sinks.contract.locations import TableLocations, ended
from sinks.contract.parts import STEPS, Part, check_planned, count_rows, parts_of
from sinks.contract.tables import stopped_locations
from sinks.delta import faults
from sinks.delta.lake.catalog import CatalogTables, catalog_names
from sinks.delta.lake.dead_letters import DEAD_LETTERS, record_dead_letters
from sinks.delta.lake.deferral import late_targets, waiting
from sinks.delta.lake.repair_records import REPAIRS, record_repairs
from sinks.delta.lake.state import LakeState
from sinks.delta.lake.state_rows import operation_counts
from sinks.delta.log.kernel import Kernel
from sinks.delta.log.target import Target, signature
from sinks.delta.repairs.new_keys import with_new_keys
from sinks.delta.repairs.repairing import Repairing
from sinks.delta.reseeding.seeding import seed
from sinks.delta.rewrite.compaction import Compactor
from sinks.delta.rewrite.spark_rows import writer_of
from sinks.delta.schema.stops import repairable
from sinks.delta.settings import DeltaSettings
from sinks.delta.writing.catching_up import Pacing, deferrals_of
from sinks.delta.writing.rounds import PlanWriter
from sinks.shaping.plans import Shaped, Shaper
from sinks.shards.chunks import grouped_chunks
from sinks.shards.plans import grouped_plan, repaired_shards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DeltaSink"]

_log = logging.getLogger(__name__)

_PLANS = 100
"""So many are written between two looks at the files that they are recorded in."""


class DeltaSink:
    """Writes changelogs, mirrors and histories into a directory of Delta tables; implements :class:`sinks.contract.base.Sink`.

    A table whose target cannot take its rows is stopped, and says why in :meth:`status`; the others go on.
    """

    def __init__(self, spark: SparkSession, settings: DeltaSettings) -> None:
        self._spark = spark
        self._settings = settings
        self._catalog = CatalogTables(spark, settings.catalog) if settings.catalog else None
        if self._catalog is not None:
            self._root = self._catalog.root
        else:
            self._root = settings.path if "://" in settings.path else str(Path(settings.path).absolute())
        self._state: LakeState | None = None
        self._targets: dict[str, Target] = {}
        self._compactor = Compactor(spark, settings)
        self._shaper = Shaper(spark, settings.rules_of)
        self._pacing: Pacing | None = None
        self._told_of: TableLocations = {}
        self._told_stopped: Mapping[str, str] = {}

    def recover(self) -> RecoveredStore | None:
        """See :class:`sinks.contract.base.Sink`."""
        return self._lake("").recover()

    def open(self, connector: str) -> int:
        """See :class:`sinks.contract.base.Sink`."""
        self._targets = {}
        state = self._state = self._lake(connector)
        state.claim()
        self._align(state)
        self._pacing = Pacing(self._spark, state, self._settings, self._shaper)
        if state.last is None:
            return 0
        if not state.holds_last():
            return state.last.previous
        state.advance()
        return state.last.number

    def write(self, plan: Plan, timeline: Callable[[int], Sequence[TimelineEntry]], chunks: Chunks) -> None:
        """See :class:`sinks.contract.base.Sink`."""
        state = self._opened(plan)
        held = 0 if state.last is None else state.last.number
        if plan.number < held:
            state.check_earlier(plan)
            return
        locations = state.assigned(plan)
        grouped = grouped_plan(state.locations, plan, self._settings.for_table)
        grouped.check(first=state.last is None)
        chunks = grouped_chunks(chunks, grouped.routes, grouped.shards, grouped.hidden)
        shaped = self._shaper.shaped(grouped.plan, locations, chunks, first=state.last is None)
        shaped = replace(
            shaped,
            plan=with_new_keys(shaped.plan, locations),
            stops={**shaped.stops, **grouped.stops, **repaired_shards(plan, grouped)},
        )
        try:
            self._write(state, shaped, plan, locations, timeline)
        finally:
            shaped.release()

    def _write(
        self,
        state: LakeState,
        shaped: Shaped,
        plan: Plan,
        locations: TableLocations,
        timeline: Callable[[int], Sequence[TimelineEntry]],
    ) -> None:
        held = 0 if state.last is None else state.last.number
        chunks = shaped.chunks
        rows, stops, partial = count_rows(chunks)
        check_planned(shaped.plan, rows)
        stops = {**shaped.stops, **stops}
        locations = stopped_locations(locations, stops, plan.number)
        if stops:
            # Before the plan, which tells a replay that its tables hold it: what is not written is known then.
            state.record_locations(locations, plan.number)
        parts = [
            part for part in parts_of(shaped.plan, locations, rows, partial) if part.location.table_id not in stops
        ]
        assert self._pacing is not None  # noqa: S101 opened
        turn = self._pacing.turn(shaped.plan, parts, locations, stops, rows)
        if plan.number == held:
            state.check_last(plan, rows)
        else:
            state.record_changes(plan, [e for e in timeline(state.recorded_version) if e.number <= plan.version])
            faults.reached("schema_changes_recorded")
            state.record_plan(plan, rows, turn.links(), operation_counts(chunks.heads, locations))
            faults.reached("plan_recorded")
        state.record_locations(locations, plan.number)
        faults.reached("tables_recorded")
        record_dead_letters(state.kernel, state.path(DEAD_LETTERS), shaped.source, chunks)
        faults.reached("letters_recorded")
        unseeded = self._seeded(state, plan, parts)
        turn = replace(turn, own=tuple(part for part in turn.own if part.location.table_id not in unseeded))
        closed = {directory: reason for at, reason in stops.items() for directory in locations[at].directories}
        writer = PlanWriter(self._spark, state, self._targets, plan, self._settings, closed)
        self._pacing.write_deferred(turn.before, plan, writer, first=True)
        with closing(Repairing(self._spark, state, self._settings, shaped.plan, state.stop)) as repairing:
            repaired = repairing.repaired(turn.own, chunks)
            record_repairs(state.kernel, state.path(REPAIRS), plan, repaired.records)
            faults.reached("repairs_recorded")
            writer.write(repaired.parts, repaired.chunks)
        self._pacing.write_deferred(turn.after, plan, writer, first=False)
        self._align(state)
        state.advance()
        faults.reached("plan_written")
        self._compactor.tidy(self._targets, state.locations, plan.number)
        if plan.number % _PLANS == 0:
            state.compact()

    def _seeded(self, state: LakeState, plan: Plan, parts: Sequence[Part]) -> set[int]:
        """Fresh targets begin with what former ones held, where *plan* says so; ids of tables that cannot, which are stopped."""
        failed: set[int] = set()
        seeded = [table for table in plan.tables if table.seed]
        if not seeded:
            return failed
        # The first part of each.
        firsts = {part.location.table_id: part for part in reversed(parts)}
        for table in seeded:
            part = firsts.get(table.table_id)
            if part is None:
                continue
            try:
                seed(self._spark, state, self._settings, part, table.seed)
            except (PositionExpired, TableStopped, ChainBroken) as error:
                _log.error(
                    "table %s is stopped: %s", part.location.name, error, extra={"table": str(part.location.name)}
                )
                state.stop(table.table_id, str(error), plan.number)
                failed.add(table.table_id)
        return failed

    def stopped(self) -> Mapping[str, str]:
        """See :class:`sinks.contract.base.Sink`."""
        locations: TableLocations = {} if self._state is None else self._state.locations
        # Asked with every plan, of tables of which most may have nothing new; what changes is put in another mapping.
        if locations is not self._told_of:
            self._told_of, self._told_stopped = locations, _stopped_in(locations)
        return self._told_stopped

    def repairable(self) -> Mapping[int, int]:
        """See :class:`sinks.contract.base.Sink`."""
        locations = () if self._state is None else self._state.locations.values()
        return repairable(locations, self._settings)

    def due_us(self) -> Mapping[int, int]:
        """See :class:`sinks.contract.base.Sink`."""
        return {} if self._pacing is None else self._pacing.due_us()

    def commit_s(self) -> Sequence[float]:
        """See :class:`sinks.contract.base.Sink`."""
        return () if self._state is None else self._state.kernel.commit_s()

    def held(self) -> int:
        """See :class:`sinks.contract.base.Sink`."""
        state = self._read_state()
        # The last one may be half written.
        return 0 if state is None or state.last is None else state.last.previous

    def status(self) -> Sequence[TargetStatus]:
        """See :class:`sinks.contract.base.Sink`."""
        state = self._read_state()
        return () if state is None else tuple(self._statuses(state))

    def known(self) -> Sequence[TargetStatus]:
        """See :class:`sinks.contract.base.Sink`; who writes a target is as it was chosen."""
        return () if self._state is None else tuple(self._statuses(self._state, asks=False))

    def reading(self) -> LakeState | None:
        """What the lake has recorded, whoever's it is; None where there is no lake. Reads only."""
        state = self._lake("")
        return state if state.load() else None

    def _read_state(self) -> LakeState | None:
        return self.reading() if self._state is None else self._state

    def _align(self, state: LakeState) -> None:
        if self._catalog is not None:
            names = catalog_names(state.locations, self._settings)
            self._catalog.align(names, lambda directory: state.kernel.view(state.path(directory)) is not None)

    def _lake(self, connector: str) -> LakeState:
        return LakeState(Kernel(self._spark, signature(connector)), self._settings, self._root, connector)

    def _opened(self, plan: Plan) -> LakeState:
        state = self._state
        check_connector(plan, None if state is None else state.connector, self._root)
        assert state is not None  # noqa: S101 checked with its connector
        held = 0 if state.last is None else state.last.number
        wanted = held if state.complete or state.last is None else state.last.previous
        if plan.number > held:
            check_follows(plan, wanted, self._root, holder="the lake", elsewhere="start a new lake")
        return state

    def _statuses(self, state: LakeState, *, asks: bool = True) -> Iterator[TargetStatus]:
        links = {**state.links, **state.last_links}
        locations = [location for location in state.locations.values() if not location.is_replaced]
        # A table that is gone leaves its directories to one that came under its name.
        by_age = sorted(locations, key=lambda location: not location.dropped)
        targets = {d: location for location in by_age for d in location.directories}
        previous = {d: location for location in locations for d in location.previous}
        over = ended(state.locations)
        waits = waiting(deferrals_of(state), state.locations)
        first = {
            d: deferral.first for deferral in waits.values() for d in late_targets(state.locations[deferral.table_id])
        }
        plans: dict[int, tuple[str, int]] = {0: ("", 0)}
        for directory, location in (targets | previous).items():
            is_written = directory not in previous and location.why_stopped is None
            view = state.kernel.view(state.path(directory)) if asks else None
            noted = 0 if asks else links.get(directory, 0)
            held = noted if view is None else view.transaction(f"{state.connector}/{directory}")
            wanted = self._settings.for_table(location.came_as).writer
            number = held // STEPS
            if state.last is not None and held >= links.get(directory, 0) and is_written:
                # Where rows wait, all up to the first plan with some is there.
                lacking = state.plan(first[directory]) if directory in first else None
                number = state.last.number if lacking is None else lacking.previous
            if number not in plans:
                plan = state.plan(number)
                plans[number] = ("", 0) if plan is None else (str(plan.end), plan.system_time_us)
            yield TargetStatus(
                table=location.name,
                target=directory,
                kind=location.kind(directory),
                plan=number,
                position=plans[number][0],
                made_us=plans[number][1],
                writer=wanted if view is None else writer_of(view, location.kind(directory), wanted),
                stopped=location.former_why if directory in previous else location.why_stopped,
                ended=over.get(directory),
                path=state.path(directory),
            )
        for location in locations:
            why = location.stopped or location.former_why
            if why and not (location.dropped or (location.directories and location.stopped) or location.previous):
                kind = next(kind for kind in ("mirror", "history") if not getattr(location, kind))
                yield TargetStatus(table=location.name, target="", kind=kind, plan=0, position="", stopped=why)


def _stopped_in(locations: TableLocations) -> dict[str, str]:
    """Tables that are not written any more, and why."""
    held = (location for location in locations.values() if not location.is_replaced)
    reasons = ((one.name, one.stopped or (one.former_why if not one.dropped else "")) for one in held)
    return {name: reason for name, reason in reasons if reason}
