"""Stopped tables go on with all rows that the source holds now: targets are compared with them, and given what differs.

A repair begins with a plan of one table, behind the last one and without any log. The rows are those of the last plan's end. A
:class:`connectors.backfill.copying.Copier` goes on where they are not all.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.backfill.estimates import estimated_rows
from connectors.backfill.keys.split_key import SplitKey
from connectors.backfill.selecting import ByThreads
from connectors.backfill.selection import read_as_of
from connectors.backfill.splits import Piece, even_pieces, next_pieces, repaired_by_ranges
from connectors.backfill.spool import Spool
from connectors.tracking.scope import is_noted
from historian.errors import SourceError
from historian.plans.key_ranges import KeyRange
from historian.plans.plans import Plan, PlannedTable, Quarantine, TableCopy
from historian.plans.segments import resumed_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectors.config import CopyLimits
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.history.versions import Version

__all__ = ["read_range", "read_whole", "repair", "repairable", "table_behind"]


def repairable(tracker: Tracker) -> dict[int, Quarantine]:
    """The stopped tables that a look at the source brings back, by id: their schema is known, and rows alone are not.

    Those that were dropped behind their stop are among them: none of their rows are there. None are where the configuration takes in other
    tables than the last plan: a plan that says so comes first.
    """
    if not is_noted(tracker.captured, tracker.store.last_plan()):
        return {}
    stops = tracker.store.quarantines()
    stops = {i: stop for i, stop in stops.items() if stop.repairable and not stop.is_cancelled}
    if not stops:
        return {}
    chains = {i: tracker.history.versions_of(i) for i in stops if i}
    # Behind a statement that was not understood a table has no schema either, but was not dropped.
    known = {i: chain[-1].name for i, chain in chains.items() if chain and chain[-1].unknown is None}
    return {i: stop for i, stop in stops.items() if i in known and tracker.captured(known[i])}


def repair(
    tracker: Tracker,
    address: ServerAddress,
    table_id: int,
    reason: str,
    *,
    behind: int | None = None,
    limits: CopyLimits | None = None,
) -> Plan | None:
    """Stores the plan with which the repair of a table begins, as of the last plan's end, and takes its stop back.

    Args:
        tracker: of the connector, whose lease the caller holds; it has come to the log's end.
        address: of the server that is asked for rows.
        reason: why the targets are compared with the source.
        behind: the plan that targets hold which their sink has stopped; None: they hold all plans of the table.
        limits: of what a plan reads, where the table can be repaired by ranges of its key; None: it is read as a whole.

    Returns:
        The plan; None where a statement came meanwhile, so that it is to be tried again behind the next plan.

    Raises:
        SourceError: the table's schema is not known, or rows cannot be read as of a position.
    """
    with closing(Spool()) as copied:
        plan = _read(tracker, address, table_id, reason, copied, behind=behind, limits=limits)
        if plan is not None:
            stopped = [stop[:2] for stop in tracker.store.stopped() if stop[0] == table_id]
            tracker.store.heal(stopped, plans=(plan,), copied=copied)
            if tracker.copier is not None:
                tracker.copier.look_again()
    return plan


def read_whole(
    tracker: Tracker, address: ServerAddress, table_id: int, reason: str, copied: Spool, *, connections: int = 1
) -> Plan | None:
    """The plan by which targets are compared with a table as of the last plan's end, and its rows in *copied*; it is not stored.

    Args and errors are those of :func:`repair`; None where a statement came meanwhile. *connections* read side by side.
    """
    return _read(tracker, address, table_id, reason, copied, behind=None, limits=None, connections=connections)


def table_behind(tracker: Tracker, table_id: int, last: Plan) -> PlannedTable:
    """A table as a plan behind *last*, the last one, is to have it, with what plans have not told of it. Errors are those of :func:`repair`."""
    return _resumed(tracker, _known(tracker, table_id), _held(tracker, table_id, last))


def read_range(
    tracker: Tracker,
    address: ServerAddress,
    table: PlannedTable,
    last: Plan,
    keys: KeyRange,
    copied: Spool,
    version: int,
) -> Plan | None:
    """As :func:`read_whole`, of the rows of *table* whose keys lie in a range; it is one of those that are repaired by ranges.

    Args:
        table: as of :func:`table_behind`.
        last: the plan as of whose end.
        version: number of the last timeline entry that the plan knows.
    """
    now = table.versions[-1]
    key = None if now.snapshot is None else SplitKey.of(now.snapshot, tracker.reader.flavor)
    plan = tracker.plan_behind(last, start=last.end, end=last.end, tables=(), version=version)
    piece = Piece(table_id=table.table_id, version=now, key=key, range=keys, of_source=True)
    read = read_as_of(address, tracker, plan, [piece], ByThreads(), copied)[table.table_id]
    if read.void:
        return None
    copy = TableCopy(
        key=piece.key_ids,
        behind=keys.after,
        upto=keys.upto,
        is_done=keys.upto is None,
        rows=read.rows,
        repairs="verify",
        size_bytes=read.size_bytes,
        pieces=read.pieces,
    )
    return replace(plan, tables=(replace(table, copy=copy),))


def _read(
    tracker: Tracker,
    address: ServerAddress,
    table_id: int,
    reason: str,
    copied: Spool,
    *,
    behind: int | None,
    limits: CopyLimits | None,
    connections: int = 1,
) -> Plan | None:
    last = tracker.store.last_plan()
    chain: Sequence[Version] = tracker.history.versions_of(table_id)
    is_gone = bool(chain) and chain[-1].snapshot is None and chain[-1].unknown is None
    if not is_gone:
        chain = _known(tracker, table_id)
    assert last is not None  # noqa: S101 a table stops in a plan, or behind one
    held = _held(tracker, table_id, last) if behind is None else _held_by_targets(tracker, table_id, behind)
    table = _resumed(tracker, chain, held)
    plan = tracker.plan_behind(last, start=last.end, end=last.end, tables=(), version=tracker.history.last_number)
    if is_gone:
        return replace(plan, tables=(replace(_emptied(table), behind=behind),))
    flavor, version = tracker.reader.flavor, table.versions[-1]
    if limits is not None and repaired_by_ranges(version.snapshot, flavor):
        pieces, connections = next_pieces(address, flavor, {table_id: (version, None)}, limits, {}), limits.connections
    else:
        pieces = even_pieces(address, table_id, version, flavor, connections)
    if not pieces:
        return None
    read = read_as_of(address, tracker, plan, pieces, ByThreads(connections), copied)[table_id]
    if read.void:
        return None
    upto, key = pieces[-1].range.upto, pieces[0].key_ids
    copy = TableCopy(key=key, upto=upto, is_done=upto is None, rows=read.rows, repairs=reason)
    copy = replace(copy, size_bytes=read.size_bytes, pieces=read.pieces)
    if not copy.is_done and version.snapshot is not None:
        estimate = estimated_rows(address, (version.snapshot.name,)).get(version.snapshot.name, 0)
        copy = replace(copy, estimate=estimate)
    return replace(plan, tables=(replace(table, copy=copy, behind=behind),))


def _known(tracker: Tracker, table_id: int) -> Sequence[Version]:
    chain = tracker.history.versions_of(table_id)
    if not chain or chain[-1].snapshot is None or tracker.store.last_plan() is None:
        raise SourceError(
            "a table without a known schema cannot be compared with the source",
            where=str(chain[-1].name) if chain else f"table id {table_id}",
            next_step="`historian heal` captures it again",
        )
    return chain


def _held(tracker: Tracker, table_id: int, last: Plan) -> int:
    """Number of the last version that plans up to *last* had of the table; 0: none."""
    plan: Plan | None = last
    while plan is not None:
        numbers = [v.version for table in plan.tables if table.table_id == table_id for v in table.versions]
        if numbers:
            return numbers[-1]
        plan = tracker.store.plan(plan.previous)
    return 0


def _emptied(table: PlannedTable) -> PlannedTable:
    """*table*, which was dropped, without the statements on its way there: whatever its targets hold of it goes."""
    first, last = table.versions[0], table.versions[-1]
    return replace(table, versions=(first, replace(last, segment=first.segment + 1)))


def _held_by_targets(tracker: Tracker, table_id: int, behind: int) -> int:
    """Number of the version with which a table began in the plan behind *behind*, in which its targets stopped; 0: it had none.

    What they took of that plan is of this version at least: its CREATE, where they had no earlier one.
    """
    plan = tracker.stored(behind + 1)
    return next(
        (table.versions[0].version for table in plan.tables if table.table_id == table_id and table.versions), 0
    )


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
