"""Copies the rows of tables into plans, as of the end of each, while the log goes on.

What a plan copies is read before the plan is stored, and stored with it: a plan that comes again has the same rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.backfill.keys.split_key import SplitKey
from connectors.backfill.selection import read_as_of
from connectors.backfill.splits import Piece, next_pieces
from connectors.backfill.spool import Spool
from connectors.config import CopyLimits
from connectors.tracking.copier import CopyingPlan
from connectors.tracking.scope import place_at_end
from historian.errors import SourceError
from historian.plans.key_ranges import KeyRange
from historian.plans.plans import Plan, PlannedTable, Quarantine, TableCopy
from historian.plans.segments import retracts

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.store import CopyOrders, CopyProgress

__all__ = ["Copier", "copy_again"]

_log = logging.getLogger(__name__)
_KEY_CHANGED = "the key in whose order its rows are copied has changed before all of them were"
_PAUSED = "copies are paused: `historian backfill CONFIG --resume` lets them go on"


class Copier:
    """Gives plans the rows that they copy; implements :class:`connectors.tracking.copier.Copier`.

    Args:
        tracker: that makes the plans.
        address: of the server, or of a replica with the same log.
        limits: how much is copied at a time.
        reads: whether rows are copied at all; else plans only keep to what was copied before.
    """

    def __init__(self, tracker: Tracker, address: ServerAddress, limits: CopyLimits, *, reads: bool = True) -> None:
        self._tracker = tracker
        self._address = address
        self._limits = limits
        self._reads = reads
        self._was_paused = False
        self._free_s = 0.0
        self._chunk_rows: dict[int, int] = {}
        self._unexplained: dict[int, int] = {}
        self._waits = False
        self._is_done = False

    @property
    def waits(self) -> bool:
        """Whether, as of the last plan, rows are left that can be copied."""
        return self._waits

    @property
    def is_free(self) -> bool:
        """Whether they may be copied now, as the limits say."""
        return time.monotonic() >= self._free_s

    def with_copies(self, plan: Plan, begun: Collection[int]) -> CopyingPlan:
        """See :class:`connectors.tracking.copier.Copier`; the tracker's history has come to the plan's end."""
        spool = Spool()
        progress = {} if self._is_done and not begun else {**self._tracker.store.copies(), **dict.fromkeys(begun)}
        waiting = {table_id: held for table_id, held in progress.items() if held is None or not held.is_done}
        self._is_done = not waiting
        if not waiting:
            return CopyingPlan(plan=plan, copied=spool, is_news=False, close=spool.close)
        orders = self._orders()
        reads = self._reads and not orders.paused
        planned = {table.table_id: table for table in plan.tables}
        # Tables that have nothing in the plan are as it would have them.
        others = self._tracker.planned(plan.version, plan.version, set(waiting) - set(planned), plan.end)
        known = {**{table.table_id: table for table in others}, **planned}
        copies = {i: _standing(known[i], waiting[i]) for i in waiting if i in known}
        for table_id, copy in copies.items():
            if copy.upto is not None and not _keeps_key(known[table_id], copy, self._tracker.reader.flavor):
                known[table_id] = _stopped(known[table_id], plan, _KEY_CHANGED)
        for table_id in copies.keys() & set(orders.cancelled):
            if not copies[table_id].is_done and _goes_on(known[table_id]):
                known[table_id] = _cancelled(known[table_id], plan, waiting[table_id])
        open_tables = {i: known[i] for i, copy in copies.items() if not copy.is_done and _goes_on(known[i])}
        changed = {i for i, copy in copies.items() if copy.is_done or known[i].quarantine is not None} | set(begun)
        if reads and self.is_free and open_tables:
            try:
                done, refused = self._copied(plan, open_tables, copies, spool)
            except BaseException:
                spool.close()
                raise
            copies.update(done)
            known |= {table_id: _stopped(known[table_id], plan, reason) for table_id, reason in refused.items()}
            changed.update(done, refused)
        self._waits = reads and any(
            not copies[table_id].is_done for table_id in open_tables if _goes_on(known[table_id])
        )
        tables = {
            **planned,
            **{i: replace(known[i], copy=copy) for i, copy in copies.items() if i in planned or i in changed},
        }
        with_copies = replace(plan, tables=tuple(tables[i] for i in sorted(tables)))
        return CopyingPlan(plan=with_copies, copied=spool, is_news=bool(changed), close=spool.close)

    def _orders(self) -> CopyOrders:
        """What people have said of copies by now; a pause is told once."""
        orders = self._tracker.store.copy_orders()
        if orders.paused and not self._was_paused:
            _log.warning(_PAUSED)
        self._was_paused = orders.paused
        return orders

    def _copied(
        self,
        plan: Plan,
        tables: Mapping[int, PlannedTable],
        copies: Mapping[int, TableCopy],
        spool: Spool,
    ) -> tuple[dict[int, TableCopy], dict[int, str]]:
        """What comes of the copies of *tables*, and by id why a table cannot be copied at all."""
        wanted = {table_id: (table.versions[-1], copies[table_id].upto) for table_id, table in tables.items()}
        tracker = self._tracker
        pieces = next_pieces(self._address, tracker.reader.flavor, wanted, self._limits, self._chunk_rows)
        read = read_as_of(self._address, tracker, plan, pieces, self._limits.connections, spool)
        done: dict[int, TableCopy] = {}
        refused: dict[int, str] = {}
        for table_id, table in read.items():
            if table.void:
                _log.info("table %s: its rows are read again with the next plan: %s", table_id, table.void)
                # A server may show a statement before it logs it: once is no proof.
                if table.is_unexplained and self._unexplained.get(table_id) == plan.version:
                    refused[table_id] = f"its rows cannot be copied: {table.void}"
                self._unexplained[table_id] = plan.version if table.is_unexplained else 0
                continue
            mine = [piece for piece in pieces if piece.table_id == table_id]
            upto = mine[-1].range.upto
            done[table_id] = replace(
                copies[table_id], key=mine[0].key_ids, upto=upto, is_done=upto is None, rows=table.rows
            )
            if self._limits.rows_per_s:
                self._free_s = max(self._free_s, time.monotonic()) + table.rows / self._limits.rows_per_s
            if table.rows:
                self._chunk_rows[table_id] = max(1, self._limits.chunk_bytes * table.rows // table.size_bytes)
        return done, refused


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
        if table.copy is not None and table.copy.rows
    ]
    for table_id, found in read_as_of(address, tracker, plan, pieces, 1, spool).items():
        if found.void:
            raise SourceError(
                "rows that a plan copied were lost with the store, and cannot be read again",
                where=f"plan {plan.number}, table id {table_id}",
                found=found.void,
                next_step="put the store back as it was, or start a new lake",
            )


def _split_key(table: PlannedTable, flavor: str) -> SplitKey | None:
    snapshot = table.versions[-1].snapshot
    return None if snapshot is None else SplitKey.of(snapshot, flavor)


def _standing(table: PlannedTable, progress: CopyProgress | None) -> TableCopy:
    """What a plan says of a table's copy before it copies anything itself."""
    copy = TableCopy() if progress is None else TableCopy(key=progress.key, behind=progress.upto, upto=progress.upto)
    for version in table.versions:
        if version.place is not None and any(retracts(edit) for edit in version.edits):
            return replace(copy, is_done=True, clears=version.segment)
    return copy


def _keeps_key(table: PlannedTable, copy: TableCopy, flavor: str) -> bool:
    """Whether what was copied in the order of a key can be told by it still, behind the plan's statements."""
    first, last = table.versions[0].snapshot, table.versions[-1].snapshot
    if first is None or last is None or copy.is_done:
        return True
    before, after = SplitKey.of(first, flavor), SplitKey.of(last, flavor)
    is_same = after is not None and tuple(column.id for column in after.columns) == copy.key
    return is_same and before is not None and after is not None and after.keeps_order(before)


def _stopped(table: PlannedTable, plan: Plan, reason: str, *, is_cancelled: bool = False) -> PlannedTable:
    place = place_at_end(plan.end)
    stop = Quarantine(place=place, reason=reason, since=plan.end, repairable=is_cancelled, is_cancelled=is_cancelled)
    return replace(table, quarantine=stop)


def _cancelled(table: PlannedTable, plan: Plan, progress: CopyProgress | None) -> PlannedTable:
    snapshot = table.versions[-1].snapshot
    assert snapshot is not None  # noqa: S101 - a table that goes on exists
    reason = (
        f"its copy was cancelled with {0 if progress is None else progress.rows} rows copied\n"
        f"  `historian backfill CONFIG --table {snapshot.name}` copies it from the beginning, and lets it go on"
    )
    return _stopped(table, plan, reason, is_cancelled=True)


def _goes_on(table: PlannedTable) -> bool:
    return table.quarantine is None and table.versions[-1].snapshot is not None
