"""Lets mirrors and histories of a lake wait, and brings them to where their changelogs are."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from historian.errors import ChainBroken, TableStopped
from historian.names import TableName
from historian.plans.plans import Plan, PlannedVersion
from sinks.contract.locations import TableLocation, TableLocations
from sinks.contract.parts import ChunkRows, Part
from sinks.delta.lake.deferral import (
    Deferral,
    Deferrals,
    DeferredPart,
    PlanDeferral,
    late_targets,
    noted,
    turn_of,
    waiting,
)
from sinks.delta.lake.deferred_rows import DeferredChunks, DeferredRows, rows_between
from sinks.delta.lake.state import LakeState
from sinks.delta.lake.state_rows import Links, RecordedPlan
from sinks.delta.log.table_view import TableView
from sinks.delta.log.target import Target
from sinks.delta.log.time_travel import version_holding
from sinks.delta.settings import DeltaSettings
from sinks.delta.targets.changelog import next_offset
from sinks.delta.writing.rounds import PlanWriter
from sinks.shaping.plans import Shaper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Pacing", "deferrals_of"]

_log = logging.getLogger(__name__)


def deferrals_of(state: LakeState) -> Deferrals:
    """How far targets of a lake are behind their changelogs, once they hold the last plan; reads as little as that takes."""
    late = _are_late(state.locations, {**state.links, **state.last_links})
    return noted({}, state.locations, state.recorded_plans()) if late else {}


def _are_late(locations: TableLocations, links: Links) -> bool:
    return any(
        links.get(location.changelog, 0) > min(links.get(target, 0) for target in targets)
        for location in locations.values()
        if (targets := late_targets(location))
    )


class Pacing:
    """Says of each plan of an opened lake what it does, and has applied what waited."""

    def __init__(self, spark: SparkSession, state: LakeState, settings: DeltaSettings, shaper: Shaper) -> None:
        self._spark = spark
        self._state = state
        self._settings = settings
        self._shaper = shaper
        self._every_us: dict[TableName, int] = {}
        self._versions: dict[int, tuple[int, PlannedVersion]] = {}
        self._targets: dict[str, Target] = {}
        self._deferrals: Deferrals = {}
        self._last: RecordedPlan | None = None
        # Where no table waits, or did before the last plan, and none may, there is nothing to follow.
        late = (_are_late(state.locations, links) for links in (state.links, {**state.links, **state.last_links}))
        self._is_needed = settings.defers or any(late)
        if self._is_needed:
            recorded = state.recorded_plans()
            self._deferrals, self._last = noted({}, state.locations, recorded[:-1]), next(reversed(recorded), None)

    def turn(
        self, plan: Plan, parts: Sequence[Part], locations: TableLocations, stops: Collection[int], rows: ChunkRows
    ) -> PlanDeferral:
        """What *plan* does; the same when it comes again, whatever the settings say by then.

        Args:
            plan: as the lake sees it.
            parts: of the plan, of tables that go on.
            locations: after the plan.
            stops: ids of tables that stop in the plan.
            rows: of the plan.
        """
        if not self._is_needed:
            return PlanDeferral(own=tuple(parts))
        state = self._state
        recorded = state.last_links if state.last is not None and state.last.number == plan.number else None
        self._deferrals = self._before(plan)
        turn = turn_of(
            plan,
            parts,
            locations,
            {**self._deferrals, **self._read_again(plan, locations)},
            stops=stops,
            every_us=self._every,
            recorded=recorded,
            version_of=self._version,
        )
        for part in turn.own:
            self._versions[part.location.table_id] = plan.number, part.versions[0]
        counts: dict[int, int] = {}
        for (table_id, _), chunks in rows.items():
            counts[table_id] = counts.get(table_id, 0) + sum(chunks.values())
        self._last = RecordedPlan(
            number=plan.number, made_us=plan.system_time_us, rows=counts, links=recorded or turn.links()
        )
        return turn

    def write_deferred(self, takes: Sequence[DeferredPart], plan: Plan, writer: PlanWriter, *, first: bool) -> None:
        """Brings the targets of tables up to their changelogs; *first*: before the plan's own rows are in those."""
        parts: list[Part] = []
        deferred: list[DeferredRows] = []
        for take in takes:
            try:
                found = self._rows(take, plan, len(deferred), first=first)
            except (TableStopped, ChainBroken) as error:
                name = take.part.location.name
                _log.error("table %s is stopped: %s", name, error, extra={"table": str(name)})
                self._state.stop(take.part.location.table_id, str(error), plan.number)
                continue
            if found:
                deferred += found
                parts.append(replace(take.part, chunks={one.sequence: one.rows for one in found}))
        if parts:
            writer.write(parts, DeferredChunks(self._spark, deferred))

    def due_us(self) -> Mapping[int, int]:
        """Ids of tables whose rows wait, and until when, as of the last plan."""
        last = [] if self._last is None else [self._last]
        locations = self._state.locations
        waits = waiting(noted(self._deferrals, locations, last), locations) if self._is_needed else {}
        return {
            deferral.table_id: (deferral.taken_us or 0) + self._every(locations[deferral.table_id])
            for deferral in waits.values()
        }

    def _before(self, plan: Plan) -> Deferrals:
        if self._last is None or self._last.number >= plan.number:
            return self._deferrals
        return noted(self._deferrals, self._state.locations, [self._last])

    def _read_again(self, plan: Plan, locations: TableLocations) -> Deferrals:
        """The stands of tables that *plan* applies where they stopped: what lies between is nothing that they have."""
        deferrals: dict[str, Deferral] = {}
        for table in plan.tables:
            if table.behind and table.table_id in locations:
                known = [recorded for recorded in self._state.recorded_plans() if recorded.number <= table.behind]
                location = locations[table.table_id]
                deferrals |= {location.changelog: Deferral(), **noted({}, {table.table_id: location}, known)}
        return deferrals

    def _every(self, location: TableLocation) -> int:
        """The time that is said of a table, in microseconds."""
        if location.came_as not in self._every_us:
            self._every_us[location.came_as] = self._settings.for_table(location.came_as).mirror_every_us
        return self._every_us[location.came_as]

    def _version(self, deferral: Deferral) -> PlannedVersion:
        """The version under which waiting rows were written, as the lake sees it."""
        number, version = self._versions.get(deferral.table_id, (0, None))
        if version is not None and number == deferral.last:
            return version
        locations = self._state.locations
        plan = self._state.plan(deferral.last)
        if plan is None:
            raise ChainBroken(
                "a plan is missing in the lake", where=self._state.path(""), expected=f"plan {deferral.last}"
            )
        seen = self._shaper.seen(plan, locations).plan
        version = next(table for table in seen.tables if table.table_id == deferral.table_id).versions[0]
        return replace(version, snapshot=locations[deferral.table_id].keyed(version.snapshot))

    def _rows(self, take: DeferredPart, plan: Plan, sequence: int, *, first: bool) -> tuple[DeferredRows, ...]:
        """The rows to apply; none where the changelog itself could not go on in the plan."""
        target = self._target(take.changelog, plan)
        if not first and target.held < self._state.last_links.get(take.changelog, 0):
            return ()
        end = next_offset(self._view_before(target, plan, take.part.location) if first else target.view)
        offsets = range(end - take.rows - take.own_rows, end)
        return rows_between(target.view, take.part.location, take.part.versions[0], offsets, sequence=sequence)

    def _view_before(self, target: Target, plan: Plan, location: TableLocation) -> TableView:
        """A changelog as it was before *plan*, which it may hold in part."""
        state = self._state
        behind = next((t.behind for t in plan.tables if t.table_id == location.table_id), None)
        link = (state.links_until(behind) if behind else state.links).get(target.directory, 0)
        if target.held <= link:
            return target.view
        version = version_holding(state.kernel, target.view, target.application, link)
        view = None if version is None else state.kernel.view_at(target.path, version)
        if view is None:
            raise ChainBroken(
                "a changelog does not show what it was before a plan",
                where=target.path,
                expected=f"its Delta log back to before plan {plan.number}",
                next_step="replicate the table into another lake, from the start",
            )
        return view

    def _target(self, changelog: str, plan: Plan) -> Target:
        if changelog not in self._targets:
            state = self._state
            self._targets[changelog] = Target(
                state.kernel, plan.connector, changelog, state.path(changelog), "changelog"
            )
        target = self._targets[changelog]
        target.refresh()
        return target
