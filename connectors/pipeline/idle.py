"""Plans without any log: with them targets apply rows that they left to a later plan, where the log brings none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from historian.plans.plans import Plan

if TYPE_CHECKING:
    from collections.abc import Collection

    from connectors.tracking.tracker import Tracker

__all__ = ["idle_plan"]


def idle_plan(tracker: Tracker, number: int, tables: Collection[int]) -> Plan | None:
    """Stores the plan behind plan *number*, which ends where that one does and names *tables*, by their ids.

    Where none of those is captured any more it names others, since sinks get no plan without tables. Safe to retry.

    Returns:
        None where there is a plan behind that one already, or that is one without log itself, or no table is captured.
    """
    store = tracker.store
    if not number or store.plan(number + 1) is not None:
        return None
    last = tracker.stored(number)
    if last.start == last.end:
        return None  # With that one everything was applied.
    touched = {*tables, *(table.table_id for table in last.tables)}
    known = tracker.planned(last.version, last.version, touched, last.end)
    planned = tuple(table for table in known if table.table_id in tables) or known[:1]
    if not planned:
        return None
    plan = tracker.plan_behind(last, start=last.end, end=last.end, tables=planned, version=last.version)
    store.append_plan(plan)
    return plan
