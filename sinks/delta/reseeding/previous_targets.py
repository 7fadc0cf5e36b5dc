"""What the targets of a table held once, and where it can still be read: fresh targets begin with it.

Changelogs and histories count what they hold, so that any later version of theirs tells it. What a mirror held, the version that
held it does, or the folded changelog is it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from historian.errors import PositionExpired, PositionUnknown
from historian.history.prefix import covers
from historian.plans.plans import Plan, PlannedTable
from sinks.contract.decisions import Decisions
from sinks.contract.locations import TableLocation, location_holding
from sinks.contract.storage import located, reading
from sinks.delta.lake.deferral import followed
from sinks.delta.log.target import MAINTENANCE, is_of
from sinks.delta.log.time_travel import version_holding
from sinks.delta.schema.schema_evolution import DELETED
from sinks.delta.settings import KINDS

if TYPE_CHECKING:
    from historian.positions import LogPosition
    from sinks.delta.lake.state import LakeState
    from sinks.delta.log.table_view import TableView

__all__ = ["Boundary", "PreviousTarget", "boundaries", "boundary_at", "find_previous_targets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The end of *plan*, up to which targets of a table hold or held all of its rows; *table*: what was said of it last."""

    plan: Plan
    table: PlannedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousTarget:
    """A target as it was with a plan.

    Attributes:
        kind: "changelog", "mirror" or "history".
        view: with the plan; it tells schema and offsets, and its files may be gone.
        rows: with the plan or later, untouched by others, and all files there; None for a mirror that the changelog amounts to.
    """

    kind: str
    view: TableView
    rows: TableView | None


def boundaries(state: LakeState, table_id: int) -> Sequence[Boundary]:
    """The ends of plans up to which some targets of a table, present or former ones, hold all of its rows; in order.

    Not those at which the table was stopped, or a mirror or history waited for rows.
    """
    if state.last is None:
        return ()
    last = state.last.number if state.holds_last() else state.last.previous
    waits = _waiting(state, table_id)
    found: list[Boundary] = []
    newest: PlannedTable | None = None
    for plan in state.plans():
        if plan.number > last:
            break
        newest = next((table for table in plan.tables if table.table_id == table_id), newest)
        if newest is None:
            continue
        behind = newest.behind if newest in plan.tables else None
        if behind:
            # What came between is nothing that its targets had.
            found = [each for each in found if each.plan.number <= behind]
        held = newest.quarantine is None and plan.number not in waits
        if held and location_holding(state.locations, table_id, plan.number) is not None:
            found.append(Boundary(plan=plan, table=newest))
    return found


def boundary_at(found: Sequence[Boundary], position: LogPosition, begin: LogPosition) -> Boundary | None:
    """The last of *found* at or before *position* from where a log that begins at *begin* is there, or else the first behind."""
    there = [each for each in found if _covers(each.plan.end, begin)]
    before = [each for each in there if _covers(position, each.plan.end)]
    return before[-1] if before else next(iter(there), None)


def find_previous_targets(state: LakeState, table_id: int, number: int) -> Sequence[PreviousTarget]:
    """What the targets of a table held with that plan; a changelog comes first.

    Raises:
        PositionExpired: that is not kept.
    """
    location = location_holding(state.locations, table_id, number)
    if location is None:
        raise PositionExpired(
            "a table's targets do not hold that plan",
            where=f"plan {number} in {state.path('')}",
            expected=f"targets of table id {table_id} that were written up to there",
        )
    links = state.links_until(number)
    found: list[PreviousTarget] = []
    for kind in KINDS:
        directory = getattr(location, kind)
        if directory:
            found.append(_previous(state, location, kind, number, links.get(directory, 0)))
    return found


def _previous(state: LakeState, location: TableLocation, kind: str, number: int, link: int) -> PreviousTarget:
    directory = getattr(location, kind)
    path = state.path(directory)
    newest = state.kernel.view(path)
    where = f"the {kind} as of plan {number} in {path}"
    if newest is None:
        raise _not_kept(where, "a Delta table", "none")
    version = version_holding(state.kernel, newest, f"{state.connector}/{directory}", link)
    view = None if version is None else state.kernel.view_at(path, version)
    if version is None or view is None:
        raise _not_kept(where, "its Delta log back to there", "a log that begins later, or a table that was put back")
    rows = view if _is_whole(view) else None
    if rows is None and kind != "mirror":
        later = _untouched(state, newest, version)
        found = newest if later == newest.version else state.kernel.view_at(path, later)
        rows = found if found is not None and _is_whole(found) else None
    if rows is None and not (kind == "mirror" and _is_folded_changelog(location, view, number, state)):
        what = "" if kind != "mirror" else "; by the changelog it is not known"
        raise _not_kept(where, f"the files of version {version}{what}", "some that are gone: VACUUM deletes them")
    return PreviousTarget(kind=kind, view=view, rows=rows)


def _untouched(state: LakeState, newest: TableView, version: int) -> int:
    """The last version behind *version* up to which nobody else changed rows."""
    while version < newest.version:
        info = state.kernel.commit_info(newest.path, version + 1)
        if info is None or not (is_of(state.connector, info) or info.get("operation") in MAINTENANCE):
            break
        version += 1
    return version


def _is_whole(view: TableView) -> bool:
    """Whether all files of a version are there."""
    places = [located(path) for path in view.files()]
    if not places:
        return True
    with reading(view.path):
        infos = places[0][0].get_file_info([place for _, place in places])
    return all(info.type == pafs.FileType.File for info in infos)


def _is_folded_changelog(location: TableLocation, mirror: TableView, number: int, state: LakeState) -> bool:
    """Whether a mirror had just the rows of the folded changelog."""
    plan = state.plan(number)
    if not location.changelog or plan is None or DELETED[0] in mirror.schema().names():
        return False
    made = Decisions.parse(location.evolved)
    stayed = any(made.is_one_of(edit, "keep", before=plan.version + 1) for edit in ("truncate", "drop_table"))
    return not stayed and not made.kept(plan.version)


def _waiting(state: LakeState, table_id: int) -> set[int]:
    """Numbers of plans with which a mirror or history of the table, of whichever location, was behind its changelog."""
    recorded = state.recorded_plans()
    # One that was replaced has another id by now.
    locations = [h for h in state.locations.values() if h.table_id == table_id or h.is_replaced]
    return {
        plan.number
        for location in locations
        if location.mirror or location.history
        for plan, deferrals in followed({}, {table_id: replace(location, table_id=table_id)}, recorded)
        if any(deferral.rows for deferral in deferrals.values())
        if location_holding(state.locations, table_id, plan.number) == location
    }


def _covers(position: LogPosition, other: LogPosition) -> bool:
    try:
        return covers(position, other)
    except PositionUnknown:
        return False  # On some other server's file, where no log is read from.


def _not_kept(where: str, expected: str, found: str) -> PositionExpired:
    return PositionExpired(
        "what a table's targets held is not kept any more",
        where=where,
        expected=expected,
        found=found,
        next_step="give a later POS, or one at or before where the table begins; or replicate the table into another lake, from the start",
    )
