"""The rows that a plan copied, where they were lost with the store: they are read again, as of the plan's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.backfill.affected import AffectedRows
from connectors.backfill.foreign_keys.child_keys import Unbounded
from connectors.backfill.keys.split_key import SplitKey
from connectors.backfill.selecting import ByThreads
from connectors.backfill.selection import read_as_of
from connectors.backfill.splits import Piece
from connectors.backfill.spool import Spool
from connectors.tracking.cascades import parent_log
from historian.errors import SourceError
from historian.plans.key_ranges import KeyRange
from historian.plans.plans import Plan, PlannedTable

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker

__all__ = ["copy_again"]


def copy_again(tracker: Tracker, address: ServerAddress, plan: Plan, spool: Spool) -> None:
    """Reads the rows that *plan* copies again, as of its end, into *spool*.

    Raises:
        SourceError: a statement is on one of its tables behind that, so that they are lost.
    """
    pieces = [
        Piece(
            table_id=table.table_id,
            version=table.versions[-1],
            key=_split_key(table, tracker.reader.flavor),
            range=KeyRange(after=table.copy.behind, upto=table.copy.upto),
        )
        for table in plan.tables
        if table.copy is not None and table.copy.rows and not table.copy.only
    ]
    for table_id, found in read_as_of(address, tracker, plan, pieces, ByThreads(), spool).items():
        if found.void:
            raise _lost(plan, table_id, found.void)
    some = [table for table in plan.tables if table.copy is not None and table.copy.rows and table.copy.only]
    log = parent_log(tracker.history, plan.version, plan.version, None, (), tuple)
    rows = AffectedRows(address, tracker, plan, log)
    for number, table in enumerate(some, len(plan.ranges) + len(pieces)):
        try:
            rows.read_again(table, spool, number)
        except Unbounded as why:
            raise _lost(plan, table.table_id, str(why)) from why


def _lost(plan: Plan, table_id: int, found: str) -> SourceError:
    return SourceError(
        "rows that a plan copied were lost with the store, and cannot be read again",
        where=f"plan {plan.number}, table id {table_id}",
        found=found,
        next_step="put the store back as it was, or start a new lake",
    )


def _split_key(table: PlannedTable, flavor: str) -> SplitKey | None:
    snapshot = table.versions[-1].snapshot
    return None if snapshot is None else SplitKey.of(snapshot, flavor)
