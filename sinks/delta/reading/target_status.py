"""Where the targets of one table of a lake stand, for those who read the table again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from historian.errors import ChainBroken, SinkError, UnknownTable
from historian.plans.plans import Plan
from sinks.contract.locations import TableLocation
from sinks.delta.lake.state import LakeState
from sinks.delta.reseeding.previous_targets import Boundary, boundaries, boundary_at, find_previous_targets
from sinks.delta.settings import DeltaSettings
from sinks.delta.writing.sink import DeltaSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.positions import LogPosition

__all__ = ["TableStatus", "seed_for", "table_status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """How a table stands in a lake.

    Attributes:
        table_id: of the history.
        stopped: why the lake has stopped it; "" where it has not.
        stopped_in: the plan in which it has; None where it has not.
        unclear: why the targets do not all hold just what precedes that plan; "" where they do.
    """

    table_id: int
    stopped: str = ""
    stopped_in: Plan | None = None
    unclear: str = ""


def table_status(spark: SparkSession, settings: DeltaSettings, table: str) -> TableStatus:
    """Looks at the targets of a table, by its name when it was written last. Reads only.

    Raises:
        SinkError: there is no lake, or the table is one of several shards.
        UnknownTable: it has no such table, or has dropped it.
    """
    state = DeltaSink(spark, settings).reading()
    if state is None:
        raise SinkError(
            "there is no lake yet", where=settings.path or settings.catalog, next_step="`historian run` makes it"
        )
    locations = [
        location
        for location in state.locations.values()
        if location.name == table and not location.dropped and location.directories
    ]
    if not locations:
        names = sorted(location.name for location in state.locations.values() if not location.dropped)
        raise UnknownTable("the lake has no such table", where=table, expected=f"one of {', '.join(names)}")
    location = max(locations, key=lambda location: location.table_id)
    if location.shards:
        raise SinkError(
            "a table of shards cannot be read again in its lake",
            where=table,
            found=location.stopped or None,
            next_step="start a new lake, where all shards are read from their begin",
        )
    if not location.stopped:
        return TableStatus(table_id=location.table_id)
    plan = state.plan(location.stopped_in)
    if plan is None:
        unclear = f"plan {location.stopped_in}, in which it stopped, is not in the lake"
        return TableStatus(table_id=location.table_id, stopped=location.stopped, unclear=unclear)
    seeded = any(table.seed for table in plan.tables if table.table_id == location.table_id)
    unclear = "its fresh targets lack what they were to begin with" if seeded else _unclear(state, location, plan)
    return TableStatus(table_id=location.table_id, stopped=location.stopped, stopped_in=plan, unclear=unclear)


def seed_for(
    spark: SparkSession, settings: DeltaSettings, table_id: int, position: LogPosition, begin: LogPosition
) -> Boundary | None:
    """The end of a plan up to which fresh targets of a table can begin with what its targets held; None where there is none.

    The last one at or before *position* from where the log is there; else the first one behind that. Reads only.

    Args:
        begin: where the log begins.

    Raises:
        PositionExpired: what they held there is not kept.
    """
    state = DeltaSink(spark, settings).reading()
    found = None if state is None else boundary_at(boundaries(state, table_id), position, begin)
    if state is not None and found is not None:
        find_previous_targets(state, table_id, found.plan.number)
    return found


def _unclear(state: LakeState, location: TableLocation, plan: Plan) -> str:
    links = state.links_until(plan.number - 1)
    for directory in location.directories:
        target = state.target(location, directory)
        before = links.get(directory, 0)
        try:
            target.refresh()
        except ChainBroken as error:
            return str(error)
        if target.held != before:
            return f"{directory} holds a part of plan {plan.number}, in which the table stopped, or misses one before"
    return ""
