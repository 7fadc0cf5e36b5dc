"""Copies the rows of tables into plans, as of the end of each, while the log goes on.

What a plan copies is read before the plan is stored, and stored with it: a plan that comes again has the same rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.backfill.affected import AffectedRows
from connectors.backfill.estimates import estimated_rows, row_bytes
from connectors.backfill.foreign_keys.cascades import ChangedChild, changed_by_foreign_keys
from connectors.backfill.foreign_keys.logged import LoggedCascades
from connectors.backfill.keys.split_key import SplitKey
from connectors.backfill.pace import Pace
from connectors.backfill.repairs import repaired_behind
from connectors.backfill.replica import Replica
from connectors.backfill.selecting import ByThreads, PieceCounts, Selects
from connectors.backfill.selection import CopiedTable, read_as_of
from connectors.backfill.splits import LAST_PIECES, Piece, next_pieces, repaired_by_ranges, whole_table
from connectors.backfill.spool import Spool
from connectors.config import CopyLimits, limits_in_force
from connectors.readers.binlog.transport.connection import ConnectionLost
from connectors.tracking.copier import NO_CASCADES, CopyingPlan, ParentLog
from connectors.tracking.scope import place_at_end
from historian.plans.plans import Plan, PlannedTable, PlannedVersion, Quarantine, TableCopy
from historian.plans.segments import retracts

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.names import TableName
    from historian.plans.key_ranges import Key
    from historian.positions import LogPosition
    from historian.store import CopyOrders, CopyProgress

__all__ = ["Copier"]

_log = logging.getLogger(__name__)
_TOLD_VOIDS = frozenset(3 * 10**power for power in range(7))
"""Some tries fail where tables are written to and altered; people are told of the third one, the 30th and so on."""
_KEY_CHANGED = "the key in whose order its rows are copied has changed before all of them were"
_PAUSED = "copies are paused: `historian backfill CONFIG --resume` lets them go on"


class Copier:
    """Gives plans the rows that they copy; implements :class:`connectors.tracking.copier.Copier`.

    Args:
        tracker: that makes the plans.
        address: of the source.
        replica: that rows are copied from in its place.
        limits: how much is copied at a time, where nobody says other ones in the store.
        reads: whether rows are copied at all; else plans only keep to what was copied before.
        stopped: gives the ids of tables whose repairs go no further, since the sink does not take them.
        tells_rows: whether the sink tells rows of the table of that name by the source's values.
        selects: gives what makes the SELECTs of tables with a key over so many connections; by default threads do.
    """

    def __init__(
        self,
        tracker: Tracker,
        address: ServerAddress,
        limits: CopyLimits,
        *,
        replica: Replica | None = None,
        reads: bool = True,
        stopped: Callable[[], Collection[int]] = tuple,
        tells_rows: Callable[[TableName], bool] = lambda _: False,
        selects: Callable[[int], Selects] = ByThreads,
    ) -> None:
        self._tracker = tracker
        self._address = address
        self._replica = replica
        self._reads = reads
        self._stopped = stopped
        self._tells_rows = tells_rows
        self._selects = selects
        self._was_paused = False
        if reads and tracker.store.copies_wait():
            tracker.store.note_copies_wait("")  # of a run that was killed
        if reads and tracker.store.copies_reading():
            tracker.store.note_copies_reading("")
        self._pace = Pace(
            self._rows_address,
            tracker.reader.flavor,
            lambda: limits_in_force(limits, tracker.store.copy_orders().limits),
            note=tracker.store.note_copies_wait,
            is_replica=replica is not None,
        )
        self._counts = PieceCounts(tracker.store.note_copies_reading)
        self._chunk_rows: dict[int, int] = {}
        self._unexplained: dict[int, int] = {}
        self._voids: dict[int, int] = {}
        self._waits = False
        self._goes_first = False
        self._is_done = False
        self._logged = LoggedCascades(address)

    @property
    def waits(self) -> bool:
        """Whether, as of the last plan, rows are left that can be copied."""
        return self._waits

    @property
    def is_free(self) -> bool:
        """Whether they may be copied now, as the limits say.

        Raises:
            ConnectionLost: the server that rows are read from does not answer.
        """
        return self._is_done or self._pace.is_free  # where nothing is left, nobody is asked

    @property
    def goes_first(self) -> bool:
        """See :class:`connectors.tracking.copier.Copier`."""
        return self._goes_first

    def look_again(self) -> None:
        """See :class:`connectors.tracking.copier.Copier`."""
        self._is_done = False

    def with_copies(self, plan: Plan, begun: Collection[int], parents: ParentLog = NO_CASCADES) -> CopyingPlan:
        """See :class:`connectors.tracking.copier.Copier`; the tracker's history has come to the plan's end."""
        spool = Spool()
        progress = {} if self._is_done and not begun else {**self._tracker.store.copies(), **dict.fromkeys(begun)}
        waiting = {table_id: held for table_id, held in progress.items() if held is None or not held.is_done}
        self._is_done = not waiting
        self._goes_first = False
        changed_rows = self._changed_by_foreign_keys(plan, parents)
        if not waiting and not changed_rows:
            return CopyingPlan(plan=plan, copied=spool, is_news=False, close=spool.close)
        orders = self._orders()
        reads = self._reads and not orders.paused
        planned = {table.table_id: table for table in plan.tables}
        waiting, others_wait = self._considered(waiting, {*planned, *changed_rows, *orders.cancelled})
        # Tables that have nothing in the plan are as it would have them.
        wanted = {*waiting, *changed_rows} - set(planned)
        others = self._tracker.planned(plan.version, plan.version, wanted, plan.end)
        known = {**{table.table_id: table for table in others}, **planned}
        copies = {i: _standing(known[i], waiting[i]) for i in waiting if i in known}
        flavor = self._tracker.reader.flavor
        for table_id in [i for i, copy in copies.items() if copy.repairs or not copy.is_done]:
            known[table_id], copies[table_id] = repaired_behind(known[table_id], copies[table_id], flavor)
        for table_id, copy in copies.items():
            stop = _stop(known[table_id], copy, plan, waiting[table_id], orders, flavor)
            if stop is not None:
                known[table_id] = replace(known[table_id], quarantine=stop)
        copies |= self._estimated({i: copies[i] for i in begun if i in copies}, known)
        changed = {i for i, copy in copies.items() if copy.is_done or known[i].quarantine is not None} | set(begun)
        repaired = [i for i in changed_rows if i in known and _is_repaired(known[i], copies.get(i))]
        repairs = {i: _why_repaired(changed_rows[i], plan) for i in repaired}
        open_tables = {i: known[i] for i, copy in copies.items() if not copy.is_done and _goes_on(known[i])}
        under_repair = {i for i in open_tables if copies[i].repairs}
        left_out = under_repair & set(self._stopped()) if under_repair else set()
        open_tables = {i: table for i, table in open_tables.items() if i not in left_out}
        # A plan whose rows are compared with targets has no other rows of the table, and a capture behind it goes first.
        has_log = plan.start != plan.end
        # A first copy would never come further where foreign keys change its table's rows in each plan.
        first_copies = _first_copies(copies, repairs)
        self._goes_first = reads and has_log and (not under_repair <= left_out or bool(first_copies))
        compares = not has_log and plan.version == self._tracker.history.last_number
        apart = set(repairs) if compares else {*repairs, *under_repair}
        # A large table does not keep small ones waiting.
        by_rows = sorted(set(open_tables) - apart, key=lambda i: (_left(copies[i], waiting[i]), i))
        pieces = self._pieces({i: open_tables[i] for i in by_rows}, copies, plan.end) if reads else []
        told = {i for i in repairs if not changed_rows[i].is_chained and (i not in copies or i in first_copies)}
        bounded, first = [known[i] for i in repairs if i in told], len(plan.ranges) + len(pieces) + len(repairs)
        for table_id, some in self._affected(plan, parents, bounded, spool, first, first_copies).items():
            reason = repairs.pop(table_id).splitlines()[0]
            if some is not None:
                copies[table_id] = replace(some, repairs=reason)
                changed.add(table_id)
        pieces += [whole_table(i, known[i].versions[-1], flavor) for i in repairs]
        read = self._read(plan, pieces, copies, repairs, spool)
        copies |= {i: done for i, (done, _) in read.items() if done is not None}
        known |= {i: replace(known[i], quarantine=stop) for i, (_, stop) in read.items() if stop is not None}
        changed |= {i for i, outcome in read.items() if outcome != (None, None)}
        self._waits = reads and (others_wait or any(not copies[i].is_done for i in open_tables if _goes_on(known[i])))
        tables = {
            **planned,
            **{i: replace(known[i], copy=copies.get(i)) for i in {*copies, *repairs} if i in planned or i in changed},
        }
        with_copies = replace(plan, tables=tuple(tables[i] for i in sorted(tables)))
        return CopyingPlan(plan=with_copies, copied=spool, is_news=bool(changed), close=spool.close)

    def _considered(
        self, waiting: dict[int, CopyProgress | None], concerned: Collection[int]
    ) -> tuple[dict[int, CopyProgress | None], bool]:
        """Those of *waiting* of which a plan can say something, and whether others wait, which it leaves as they are.

        Of many tables one plan copies some alone, those with the fewest rows left. What the others are need not be looked up each time.
        """
        count = 2 * LAST_PIECES + self._pace.limits.connections  # some may be locked
        if len(waiting) <= count:
            return waiting, False
        stopped = self._tracker.store.quarantines()
        now = {i for i, held in waiting.items() if held is None or held.repairs or i in concerned}
        others = (i for i in waiting if i not in now and i not in stopped)
        by_rows = sorted(others, key=lambda i: (_left(TableCopy(), waiting[i]), i))
        return {i: waiting[i] for i in (*now, *by_rows[:count])}, len(by_rows) > count

    def _read(
        self,
        plan: Plan,
        pieces: Sequence[Piece],
        copies: Mapping[int, TableCopy],
        repairs: Mapping[int, str],
        spool: Spool,
    ) -> dict[int, tuple[TableCopy | None, Quarantine | None]]:
        """Reads *pieces* into *spool*; what comes of each table's copy, or why it stops, by id."""
        if not pieces:
            return {}
        try:
            # Rows that are compared belong to this plan; others can come with a later one.
            can_wait = not repairs
            read = read_as_of(
                self._address,
                self._tracker,
                plan,
                pieces,
                self._selects(self._pace.limits.connections),
                spool,
                replica=self._replica,
                skips_hidden=can_wait,
                counts=self._counts,
            )
        except BaseException:
            spool.close()
            raise
        mine = {table_id: [piece for piece in pieces if piece.table_id == table_id] for table_id in read}
        return {
            table_id: _repaired(mine[table_id][0], table, plan, repairs[table_id])
            if table_id in repairs
            else self._copied(mine[table_id], table, copies[table_id], plan)
            for table_id, table in read.items()
        }

    def _affected(
        self,
        plan: Plan,
        parents: ParentLog,
        tables: Sequence[PlannedTable],
        spool: Spool,
        first: int,
        copied: Mapping[int, Key],
    ) -> dict[int, TableCopy | None]:
        """The copies of *tables* of which some rows were read, by id; None: no rows of it changed."""
        rows = AffectedRows(self._address, self._tracker, plan, parents)
        try:
            return rows.read_all(tables, self._tells_rows, spool, first, copied)
        except BaseException:
            spool.close()
            raise

    def _orders(self) -> CopyOrders:
        """What people have said of copies by now; a pause is told once."""
        orders = self._tracker.store.copy_orders()
        if orders.paused and not self._was_paused:
            _log.warning(_PAUSED)
        self._was_paused = orders.paused
        return orders

    def _changed_by_foreign_keys(self, plan: Plan, parents: ParentLog) -> dict[int, ChangedChild]:
        """Tables whose rows the plan's log does not tell whole, by id."""
        if not parents.keys or self._logged.are_in(self._tracker.reader, parents.ranges):
            return {}
        accepted = self._tracker.accept_cascades
        names = {s.table_id: str(name) for name, s in self._tracker.history.catalog_at(plan.version).tables.items()}
        changed = changed_by_foreign_keys(self._tracker.reader, parents)
        return {i: child for i, child in changed.items() if names.get(i) not in accepted}

    def _estimated(self, copies: Mapping[int, TableCopy], tables: Mapping[int, PlannedTable]) -> dict[int, TableCopy]:
        """*copies* that begin, with how many rows there are to copy."""
        names = {i: s.name for i in copies if (s := tables[i].versions[-1].snapshot) is not None}
        try:
            rows = estimated_rows(self._rows_address, names.values())
        except ConnectionLost:
            if self._replica is None:
                raise
            rows = {}  # nothing is copied from it now
        return {i: replace(copies[i], estimate=rows[name]) for i, name in names.items() if name in rows}

    def _pieces(
        self, tables: Mapping[int, PlannedTable], copies: Mapping[int, TableCopy], end: LogPosition
    ) -> list[Piece]:
        """What is copied of *tables* now, as of *end*."""
        if not tables or not self.is_free or not self._is_held(end):
            return []
        flavor = self._tracker.reader.flavor
        last = {i: table.versions[-1] for i, table in tables.items()}
        whole = {i for i in tables if copies[i].repairs and not repaired_by_ranges(last[i].snapshot, flavor)}
        wanted = {i: (version, copies[i].upto) for i, version in last.items() if i not in whole}
        try:
            self._note_widths({i: version for i, (version, _) in wanted.items()})
            limits = self._pace.limits
            pieces = next_pieces(self._rows_address, flavor, wanted, limits, self._chunk_rows) if wanted else []
        except ConnectionLost as error:
            if self._replica is None:
                raise
            self._pace.lags(str(error))
            return []
        return [*pieces, *(whole_table(i, last[i], flavor) for i in sorted(whole))]

    def _note_widths(self, tables: Mapping[int, PlannedVersion]) -> None:
        """Notes how many rows a first piece of *tables* has, so that one of wide rows is no larger than others."""
        names = {i: v.snapshot.name for i, v in tables.items() if i not in self._chunk_rows and v.snapshot is not None}
        widths = row_bytes(self._rows_address, set(names.values()))
        for table_id, name in names.items():
            width = max(1, widths.get(name, 1))
            limits = self._pace.limits
            self._chunk_rows[table_id] = max(1, min(limits.chunk_rows, limits.chunk_bytes // width))

    @property
    def _rows_address(self) -> ServerAddress:
        return self._address if self._replica is None else self._replica.address

    def _is_held(self, end: LogPosition) -> bool:
        """Whether a replica that rows are read from holds all up to *end*; a lag is waited out for some seconds."""
        if self._replica is None:
            return True
        why = self._replica.lacks(end)
        self._pace.lags(why)
        return not why

    def _copied(
        self, pieces: Sequence[Piece], table: CopiedTable, copy: TableCopy, plan: Plan
    ) -> tuple[TableCopy | None, Quarantine | None]:
        """What comes of the copy of a table whose next pieces were read, or why it cannot be copied at all."""
        table_id = pieces[0].table_id
        if table.void:
            self._voids[table_id] = self._voids.get(table_id, 0) + 1
            level = logging.WARNING if self._voids[table_id] in _TOLD_VOIDS else logging.INFO
            text = "table %s: its rows are read again with the next plan: %s (try %s)"
            _log.log(level, text, _name(pieces[0]), table.void, self._voids[table_id])
            # A server may show a statement before it logs it: once is no proof.
            is_refused = table.is_unexplained and self._unexplained.get(table_id) == plan.version
            self._unexplained[table_id] = plan.version if table.is_unexplained else 0
            return None, _stop_at_end(plan, f"its rows cannot be copied: {table.void}") if is_refused else None
        self._voids.pop(table_id, None)
        self._pace.took(table.rows, table.size_bytes)
        if table.rows:
            self._chunk_rows[table_id] = max(1, self._pace.limits.chunk_bytes * table.rows // table.size_bytes)
        first, upto = pieces[0], pieces[-1].range.upto
        behind = first.range.after
        copied = replace(copy, key=first.key_ids, behind=behind, upto=upto, is_done=upto is None, rows=table.rows)
        return replace(copied, size_bytes=table.size_bytes, pieces=table.pieces), None


def _name(piece: Piece) -> str:
    snapshot = piece.version.snapshot
    return f"with id {piece.table_id}" if snapshot is None else str(snapshot.name)


def _left(copy: TableCopy, progress: CopyProgress | None) -> int:
    """About how many rows are left to copy."""
    return copy.estimate if progress is None else max(0, progress.estimate - progress.rows)


def _standing(table: PlannedTable, progress: CopyProgress | None) -> TableCopy:
    """What a plan says of a table's copy before it copies anything itself."""
    copy = TableCopy()
    if progress is not None:
        copy = TableCopy(key=progress.key, behind=progress.upto, upto=progress.upto, repairs=progress.repairs)
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


def _repaired(piece: Piece, table: CopiedTable, plan: Plan, reason: str) -> tuple[TableCopy | None, Quarantine | None]:
    """What comes of the repair of a table all of whose rows were read, or why it stops until it is repaired by itself."""
    if table.void:
        stop = Quarantine(place=place_at_end(plan.start), reason=reason, since=plan.start, repairable=True)
        return None, stop
    copy = TableCopy(key=piece.key_ids, is_done=True, rows=table.rows, repairs=reason.splitlines()[0])
    return replace(copy, size_bytes=table.size_bytes, pieces=table.pieces), None


def _why_repaired(child: ChangedChild, plan: Plan) -> str:
    return f"a foreign key changed its rows without row events, as rows of {child.parent} changed\n  at: {plan.end}"


def _first_copies(copies: Mapping[int, TableCopy], repairs: Collection[int]) -> dict[int, Key]:
    """Up to which key the tables of *repairs* are copied whose rows come to targets for the first time, by id."""
    first = {i: copies[i] for i in repairs if i in copies and not copies[i].is_done and not copies[i].repairs}
    return {i: copy.upto for i, copy in first.items() if copy.upto is not None}


def _is_repaired(table: PlannedTable, copy: TableCopy | None) -> bool:
    """Whether targets hold rows of the table by now, which the log does not tell of."""
    is_begun = copy is None or copy.is_done or copy.upto is not None
    return is_begun and _goes_on(table)


def _stop_at_end(plan: Plan, reason: str) -> Quarantine:
    return Quarantine(place=place_at_end(plan.end), reason=reason, since=plan.end)


def _stop(
    table: PlannedTable,
    copy: TableCopy,
    plan: Plan,
    progress: CopyProgress | None,
    orders: CopyOrders,
    flavor: str,
) -> Quarantine | None:
    """Why a table that is copied stops with *plan*, before anything of it is read; None: it goes on."""
    if copy.upto is not None and not _keeps_key(table, copy, flavor):
        return _stop_at_end(plan, _KEY_CHANGED)
    if table.table_id in orders.cancelled and not copy.is_done and _goes_on(table):
        return _cancelled(table, plan, progress)
    return None


def _cancelled(table: PlannedTable, plan: Plan, progress: CopyProgress | None) -> Quarantine:
    snapshot = table.versions[-1].snapshot
    assert snapshot is not None  # noqa: S101 - a table that goes on exists
    reason = (
        f"its copy was cancelled with {0 if progress is None else progress.rows} rows copied\n"
        f"  `historian backfill CONFIG --table {snapshot.name}` copies it from the beginning, and lets it go on"
    )
    return replace(_stop_at_end(plan, reason), repairable=True, is_cancelled=True)


def _goes_on(table: PlannedTable) -> bool:
    return table.quarantine is None and table.versions[-1].snapshot is not None
