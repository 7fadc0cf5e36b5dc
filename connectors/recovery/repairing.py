"""Stopped tables go on with all rows that the source holds now: targets are compared with them, and given what differs.

A repair is one plan of one table, behind the last one and without any log. The rows are those of the last plan's end.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.backfill.selection import read_as_of
from connectors.backfill.splits import whole_table
from connectors.backfill.spool import Spool
from historian.errors import SourceError
from historian.plans.plans import Plan, PlannedTable, Quarantine, TableCopy
from historian.plans.segments import resumed_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.history.versions import Version

__all__ = ["read_whole", "repair", "repairable"]


def repairable(tracker: Tracker) -> dict[int, Quarantine]:
    """The stopped tables that a look at the source brings back, by id: their schema is known, and rows alone are not."""
    tables = {snapshot.table_id: name for name, snapshot in tracker.history.catalog.tables.items()}
    stops = tracker.store.quarantines()
    return {
        i: stop
        for i, stop in stops.items()
        if stop.repairable and not stop.is_cancelled and i in tables and tracker.captured(tables[i])
    }


def repair(
    tracker: Tracker, address: ServerAddress, table_id: int, reason: str, *, behind: int | None = None
) -> Plan | None:
    """Stores the plan that repairs a table as of the last plan's end, and takes its stop back.

    Args:
        tracker: of the connector, whose lease the caller holds; it has come to the log's end.
        address: of the server that is asked for rows.
        reason: why the targets are compared with the source.
        behind: the plan that targets hold which their sink has stopped; None: they hold all plans of the table.

    Returns:
        The plan; None where a statement came meanwhile, so that it is to be tried again behind the next plan.

    Raises:
        SourceError: the table's schema is not known, or rows cannot be read as of a position.
    """
    with closing(Spool()) as copied:
        plan = read_whole(tracker, address, table_id, reason, copied, behind=behind)
        if plan is not None:
            stopped = [stop[:2] for stop in tracker.store.stopped() if stop[0] == table_id]
            tracker.store.heal(stopped, plans=(plan,), copied=copied)
    return plan


def read_whole(
    tracker: Tracker, address: ServerAddress, table_id: int, reason: str, copied: Spool, *, behind: int | None = None
) -> Plan | None:
    """The plan by which targets are compared with a table as of the last plan's end, and its rows in *copied*; it is not stored.

    Args and errors are those of :func:`repair`; None where a statement came meanwhile.
    """
    last = tracker.store.last_plan()
    chain = tracker.history.versions_of(table_id)
    if last is None or not chain or chain[-1].snapshot is None:
        raise SourceError(
            "a table without a known schema cannot be compared with the source",
            where=str(chain[-1].name) if chain else f"table id {table_id}",
            next_step="`historian heal` captures it again",
        )
    held = _held(tracker, table_id, last if behind is None else tracker.stored(behind))
    table = _resumed(tracker, chain, held)
    plan = tracker.plan_behind(last, start=last.end, end=last.end, tables=(), version=tracker.history.last_number)
    piece = whole_table(table_id, table.versions[-1], tracker.reader.flavor)
    read = read_as_of(address, tracker, plan, (piece,), 1, copied)[table_id]
    if read.void:
        return None
    copy = TableCopy(key=piece.key_ids, is_done=True, rows=read.rows, repairs=reason)
    return replace(plan, tables=(replace(table, copy=copy, behind=behind),))


def _held(tracker: Tracker, table_id: int, last: Plan) -> int:
    """Number of the last version that plans up to *last* had of the table; 0: none."""
    plan: Plan | None = last
    while plan is not None:
        numbers = [v.version for table in plan.tables if table.table_id == table_id for v in table.versions]
        if numbers:
            return numbers[-1]
        plan = tracker.store.plan(plan.previous)
    return 0


def _resumed(tracker: Tracker, chain: Sequence[Version], held: int) -> PlannedTable:
    versions = tracker.type_options.applied(chain)
    table = resumed_table(versions, held or versions[-1].number, tracker.captured, None)
    if table is None or table.quarantine is not None:
        raise SourceError(
            "a table cannot be repaired that left what is captured meanwhile",
            where=str(chain[-1].name),
            found="" if table is None or table.quarantine is None else table.quarantine.reason.splitlines()[0],
        )
    return table
