"""The rows that a plan copied, where they were lost with the store: they are read again, as of the plan's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.backfill.affected import AffectedRows
from connectors.backfill.foreign_keys.child_keys import Unbounded
from connectors.backfill.keys.split_key import SplitKey
from connectors.backfill.rows_of_keys import rows_of_keys
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
            if not _by_key_alone(address, tracker, plan, table, spool, number):
                rows.read_again(table, spool, number)
        except Unbounded as why:
            raise _lost(plan, table.table_id, str(why)) from why


def _by_key_alone(
    address: ServerAddress, tracker: Tracker, plan: Plan, table: PlannedTable, spool: Spool, number: int
) -> bool:
    """Reads rows of which the plan has just the primary keys, and says whether it did; foreign keys over other columns do not matter to these."""
    snapshot = table.versions[-1].snapshot
    assert table.copy is not None and snapshot is not None  # noqa: S101, PT018 the plan copies it
    key = snapshot.primary_key
    if [each.columns for each in table.copy.only] != [key] or any(
        each.columns == key for each in snapshot.foreign_keys
    ):
        return False
    with rows_of_keys(address, tracker, plan, table, plan.version) as found:
        if found is None:
            raise Unbounded("a statement is on it behind the plan")
        found.read(plan, table, table.copy.only[0].values, spool, number)
    return True


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
