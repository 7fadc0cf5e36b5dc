"""Reads one table again: into fresh targets, from its beginning or behind the rows of previous targets, or from its stop on.

Each is one plan of that table alone, which ends where the last plan ends; behind it the table goes on with the others. The
connector must not run meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectors.tracking.rereading import walked_again
from connectors.tracking.type_options import check_type_options
from historian.errors import PositionUnknown, SourceError, StoreError, UnknownTable
from historian.history.prefix import Prefix, covers
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable
from historian.plans.type_options import planned_type_options
from historian.positions import LogPosition
from historian.schema.gaps import ResumeTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectors.readers.base import Bound
    from connectors.tracking.tracker import Tracker
    from connectors.tracking.walk import Walk
    from historian.history.versions import Version

__all__ = ["ReplayPlan", "earliest", "lacks_rows", "replay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """The plan that reads the table again; ``anew``: into fresh targets."""

    table: TableName
    plan: Plan
    anew: bool


def earliest(tracker: Tracker) -> LogPosition:
    """Where the log begins, or the history, if that begins later."""
    origin, start = tracker.history.origin, tracker.reader.start()
    return origin if covers(origin, start) else start


def lacks_rows(tracker: Tracker, table_id: int, start: LogPosition) -> bool:
    """Whether the table held rows at *start*, which fresh targets that are filled from there on would lack.

    Raises:
        PositionUnknown: the history begins behind that.
    """
    chain, last = tracker.history.versions_of(table_id), tracker.store.last_plan()
    base = _number_at(tracker, start, 0 if last is None else last.version)
    first = chain[0] if chain else None
    if first is None or first.number > base:
        return False
    began, horizon = first.entry.position, tracker.history.horizon
    is_begin = covers(began, start) and covers(start, began) and first.entry.place is None
    return not is_begin or (horizon is not None and first.number <= horizon.number)


def replay(
    tracker: Tracker,
    table_id: int,
    start: LogPosition,
    *,
    behind: int = 0,
    seed: tuple[Plan, PlannedTable] | None = None,
) -> ReplayPlan:
    """Stores the plan that reads a table again from *start* up to where the last plan ends.

    Args:
        tracker: of the connector, whose lease the caller holds.
        table_id: of the table.
        start: where its targets stand, or, into fresh targets, no later than it began, or where *seed* ends.
        behind: the plan that its targets hold; 0: fresh ones.
        seed: the plan up to which fresh targets begin with the rows of previous ones, and the table as that plan has it.

    Raises:
        UnknownTable: there is no such table now, or it is not captured.
        PositionUnknown: fresh targets would lack rows, since the table held some at *start*, or its log has a gap.
        ConfigError: its columns had other type options in targets that go on, or in *seed*.
        SourceError: the connector has stopped the table.
        LogPurged: the log is not there back to *start*.
    """
    last = tracker.store.last_plan()
    if last is None:
        raise StoreError("no plan was made yet", next_step="`historian run` makes the first one")
    chain = [v for v in tracker.history.versions_of(table_id) if v.number <= last.version]
    name = _present_name(tracker, chain, table_id)
    base = _number_at(tracker, start, last.version)
    # Rows of previous targets come with the gaps that those have.
    _check_read(chain, name, 0 if seed else base)
    if not behind and not seed and lacks_rows(tracker, table_id, start):
        raise _held_rows(chain, name, start)
    walk, bounds = _walked(tracker, {version.name for version in chain}, base, start, last)
    table = _planned(tracker, table_id, name, walk, base, last, start)
    plan = tracker.plan_behind(
        last,
        start=start,
        end=last.end,
        ranges=tracker.planned_ranges(walk, start, bounds, (table,)),
        tables=(replace(table, behind=behind, seed=seed[0].number if seed else 0),),
        version=last.version,
    )
    if behind:
        check_type_options(plan, tracker.store.type_options())
    if seed:
        check_type_options(plan, planned_type_options(replace(seed[0], tables=(seed[1],))))
    tracker.store.append_plan(plan)
    return ReplayPlan(table=name, plan=plan, anew=not behind)


def _present_name(tracker: Tracker, chain: Sequence[Version], table_id: int) -> TableName:
    snapshot = chain[-1].snapshot if chain else None
    if snapshot is None or not tracker.captured(snapshot.name):
        raise UnknownTable(
            "a table that is gone, or not captured, cannot be read again",
            where=f"table id {table_id}" if not chain else str(chain[-1].name),
        )
    stop = tracker.store.quarantines().get(table_id)
    if stop is not None:
        raise SourceError(
            "the connector has stopped the table, so that its log cannot be read to the end",
            where=str(snapshot.name),
            found=stop.reason.splitlines()[0],
            next_step="`historian ddl-override` or `historian heal` first",
        )
    return snapshot.name


def _number_at(tracker: Tracker, start: LogPosition, last: int) -> int:
    """Number of the last entry before the first one behind *start*."""
    history = tracker.history
    if not covers(start, history.origin):
        raise PositionUnknown(
            "the position lies before the start of the history",
            where=str(start),
            expected=f"{history.origin} or a later position",
        )
    prefix = Prefix(start)
    number = history.first_number
    while number < last and (entry := history.entry(number + 1)) is not None and prefix.holds(entry):
        number += 1
    return number


def _check_read(chain: Sequence[Version], name: TableName, base: int) -> None:
    """Targets equal the source only if every change behind version *base* is in the log."""
    lost = next(
        (e for v in chain if v.number > base for e in v.edits if isinstance(e, ResumeTable) and e.loses_rows), None
    )
    if lost is not None:
        raise PositionUnknown(
            "some changes of the table were never read",
            where=f"{name} behind {lost.unknown_since}",
            found=lost.reason,
            next_step="give a position after the gap, or replicate the table into another lake, from the start",
        )


def _held_rows(chain: Sequence[Version], name: TableName, start: LogPosition) -> PositionUnknown:
    return PositionUnknown(
        "the table held rows at that position, which fresh targets would lack",
        where=f"{name} at {start}",
        expected=f"a position at or before {chain[0].entry.position}, where the table begins, or targets that held them",
        found="no plan from whose end on the log is there, and with which its targets held all of its rows",
        next_step="give an earlier POS; or leave out --from for a table that its sink stopped; or replicate the table into another lake",
    )


def _walked(
    tracker: Tracker, names: set[TableName], base: int, start: LogPosition, last: Plan
) -> tuple[Walk, list[Bound]]:
    """Reads the log from *start* to the end of *last* for the tables of these names. Stores nothing."""
    walk, bounds = walked_again(
        tracker, tracker.reader, lambda name: name in names and tracker.captured(name), base, start, last.end
    )
    if walk.new_entries:
        raise StoreError(
            "the log has statements that the history does not have",
            where=f"behind {start}",
            found=walk.new_entries[0].statement,
        )
    return walk, bounds


def _planned(
    tracker: Tracker, table_id: int, name: TableName, walk: Walk, base: int, last: Plan, start: LogPosition
) -> PlannedTable:
    tables = tracker.planned(base, last.version, {table_id}, start, walk.quarantines)
    found = next((table for table in tables if table.table_id == table_id), None)
    stop = walk.quarantines.get(table_id) if found is None else found.quarantine
    if found is None or stop is not None:
        raise PositionUnknown(
            "the table's rows cannot be read up to the last plan",
            where=f"{name} behind {start}",
            found="" if stop is None else stop.reason,
            next_step="give a later position, or replicate the table into another lake",
        )
    return replace(found, proven=walk.proven.get(table_id))
