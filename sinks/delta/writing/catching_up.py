"""Lets mirrors and histories of a lake wait, and brings them to where their changelogs are."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from historian.errors import ChainBroken, TableStopped
from historian.names import TableName
from historian.plans.plans import Plan, PlannedVersion
from sinks.contract.locations import Homes, TableLocation
from sinks.contract.parts import ChunkRows, Part
from sinks.delta.lake.deferral import Stand, Stands, TakeUp, Turn, late_targets, noted, turn_of, waiting
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

__all__ = ["Pacing", "stands_of"]

_log = logging.getLogger(__name__)


def stands_of(state: LakeState) -> Stands:
    """How far targets of a lake are behind their changelogs, once they hold the last plan; reads as little as that takes."""
    late = _are_late(state.homes, {**state.links, **state.last_links})
    return noted({}, state.homes, state.recorded_plans()) if late else {}


def _are_late(homes: Homes, links: Links) -> bool:
    return any(
        links.get(home.changelog, 0) > min(links.get(target, 0) for target in targets)
        for home in homes.values()
        if (targets := late_targets(home))
    )


class Pacing:
    """Says of each plan of an opened lake what it does, and has taken up what waited."""

    def __init__(self, spark: SparkSession, state: LakeState, settings: DeltaSettings, shaper: Shaper) -> None:
        self._spark = spark
        self._state = state
        self._settings = settings
        self._shaper = shaper
        self._every_us: dict[TableName, int] = {}
        self._versions: dict[int, tuple[int, PlannedVersion]] = {}
        self._targets: dict[str, Target] = {}
        self._stands: Stands = {}
        self._last: RecordedPlan | None = None
        # Where no table waits, or did before the last plan, and none may, there is nothing to follow.
        late = (_are_late(state.homes, links) for links in (state.links, {**state.links, **state.last_links}))
        self._is_needed = settings.defers or any(late)
        if self._is_needed:
            recorded = state.recorded_plans()
            self._stands, self._last = noted({}, state.homes, recorded[:-1]), next(reversed(recorded), None)

    def turn(self, plan: Plan, parts: Sequence[Part], homes: Homes, stops: Collection[int], rows: ChunkRows) -> Turn:
        """What *plan* does; the same when it comes again, whatever the settings say by then.

        Args:
            plan: as the lake sees it.
            parts: of the plan, of tables that go on.
            homes: after the plan.
            stops: ids of tables that stop in the plan.
            rows: of the plan.
        """
        if not self._is_needed:
            return Turn(own=tuple(parts))
        state = self._state
        recorded = state.last_links if state.last is not None and state.last.number == plan.number else None
        self._stands = self._before(plan)
        turn = turn_of(
            plan,
            parts,
            homes,
            {**self._stands, **self._read_again(plan, homes)},
            stops=stops,
            every_us=self._every,
            recorded=recorded,
            version_of=self._version,
        )
        for part in turn.own:
            self._versions[part.home.table_id] = plan.number, part.versions[0]
        counts: dict[int, int] = {}
        for (table_id, _), chunks in rows.items():
            counts[table_id] = counts.get(table_id, 0) + sum(chunks.values())
        self._last = RecordedPlan(
            number=plan.number, made_us=plan.system_time_us, rows=counts, links=recorded or turn.links()
        )
        return turn

    def take_up(self, takes: Sequence[TakeUp], plan: Plan, writer: PlanWriter, *, first: bool) -> None:
        """Brings the targets of tables up to their changelogs; *first*: before the plan's own rows are in those."""
        parts: list[Part] = []
        deferred: list[DeferredRows] = []
        for take in takes:
            try:
                found = self._rows(take, plan, len(deferred), first=first)
            except (TableStopped, ChainBroken) as error:
                _log.error("table %s is stopped: %s", take.part.home.name, error)
                self._state.stop(take.part.home.table_id, str(error), plan.number)
                continue
            if found:
                deferred += found
                parts.append(replace(take.part, chunks={one.sequence: one.rows for one in found}))
        if parts:
            writer.write(parts, DeferredChunks(self._spark, deferred))

    def due_us(self) -> Mapping[int, int]:
        """Ids of tables whose rows wait, and until when, as of the last plan."""
        last = [] if self._last is None else [self._last]
        homes = self._state.homes
        waits = waiting(noted(self._stands, homes, last), homes) if self._is_needed else {}
        return {stand.table_id: (stand.taken_us or 0) + self._every(homes[stand.table_id]) for stand in waits.values()}

    def _before(self, plan: Plan) -> Stands:
        if self._last is None or self._last.number >= plan.number:
            return self._stands
        return noted(self._stands, self._state.homes, [self._last])

    def _read_again(self, plan: Plan, homes: Homes) -> Stands:
        """The stands of tables that *plan* takes up where they stopped: what lies between is nothing that they have."""
        stands: dict[str, Stand] = {}
        for table in plan.tables:
            if table.behind and table.table_id in homes:
                known = [recorded for recorded in self._state.recorded_plans() if recorded.number <= table.behind]
                home = homes[table.table_id]
                stands |= {home.changelog: Stand(), **noted({}, {table.table_id: home}, known)}
        return stands

    def _every(self, home: TableLocation) -> int:
        """The time that is said of a table, in microseconds."""
        if home.came_as not in self._every_us:
            self._every_us[home.came_as] = self._settings.for_table(home.came_as).mirror_every_us
        return self._every_us[home.came_as]

    def _version(self, stand: Stand) -> PlannedVersion:
        """The version under which waiting rows were written, as the lake sees it."""
        number, version = self._versions.get(stand.table_id, (0, None))
        if version is not None and number == stand.last:
            return version
        homes = self._state.homes
        plan = self._state.plan(stand.last)
        if plan is None:
            raise ChainBroken(
                "a plan is missing in the lake", where=self._state.path(""), expected=f"plan {stand.last}"
            )
        seen = self._shaper.seen(plan, homes).plan
        version = next(table for table in seen.tables if table.table_id == stand.table_id).versions[0]
        return replace(version, snapshot=homes[stand.table_id].keyed(version.snapshot))

    def _rows(self, take: TakeUp, plan: Plan, sequence: int, *, first: bool) -> tuple[DeferredRows, ...]:
        """The rows to take up; none where the changelog itself could not go on in the plan."""
        target = self._target(take.changelog, plan)
        if not first and target.held < self._state.last_links.get(take.changelog, 0):
            return ()
        end = next_offset(self._view_before(target, plan, take.part.home) if first else target.view)
        offsets = range(end - take.rows - take.own_rows, end)
        return rows_between(target.view, take.part.home, take.part.versions[0], offsets, sequence=sequence)

    def _view_before(self, target: Target, plan: Plan, home: TableLocation) -> TableView:
        """A changelog as it was before *plan*, which it may hold in part."""
        state = self._state
        behind = next((t.behind for t in plan.tables if t.table_id == home.table_id), None)
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
                next_step="start the table anew in another lake",
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
