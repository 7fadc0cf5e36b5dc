"""Pieces of tables as of the end of a plan: SELECTed from snapshots that hold it, and brought back to it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from connectors.backfill.changes import TableChanges, changes_behind, voids_behind
from connectors.backfill.keys.coverage import Ask, asking, within
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.replica import Replica
from connectors.backfill.rewind import rewound, rewound_bag
from connectors.backfill.selecting import PieceCounts, PieceSelects, Selects, read_piece
from connectors.backfill.snapshots import NotVisible, SourceSnapshot, snapshot_behind
from connectors.backfill.splits import Piece
from connectors.backfill.spool import Spool
from connectors.readers.binlog.selected.failures import SelectInterrupted, TableChanged
from connectors.readers.binlog.transport.connection import ConnectionLost, server_identity
from connectors.tracking.ranges import SEQUENCE_BITS
from historian.changelog.chunks import Chunk, positions
from historian.changelog.operations import CHUNK_COLUMNS, Op, physical_name
from historian.changelog.row_images import Mask
from historian.errors import SourceError
from historian.plans.key_ranges import KeyRange
from historian.positions import FilePosition

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from connectors.readers.base import Reader
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.plans.plans import CopiedPiece, Plan

__all__ = ["CopiedTable", "copied_chunk", "read_as_of"]


@dataclass(slots=True)
class CopiedTable:
    """What came of a table's pieces.

    Attributes:
        rows: that it has as of the plan's end; ``size_bytes``: of them as Arrow.
        pieces: what the SELECT of each gave.
        void: why they are not known; "" where they are.
        is_unexplained: whether the server's table differs from the schema, and the log has no statement on it.
    """

    rows: int = 0
    size_bytes: int = 0
    pieces: tuple[CopiedPiece, ...] = ()
    void: str = ""
    is_unexplained: bool = False


_log = logging.getLogger(__name__)
_MOMENT = "rows of a table without a key changed at the very moment of the SELECT"
_STILL_S = 5.0
"""How long a plan, and the log behind it, wait for a moment at which nobody changes a table without a key."""


def read_as_of(  # noqa: PLR0913 each by name, and each is wanted
    address: ServerAddress,
    tracker: Tracker,
    plan: Plan,
    pieces: Sequence[Piece],
    selects: Selects,
    spool: Spool,
    *,
    replica: Replica | None = None,
    skips_hidden: bool = False,
    counts: PieceCounts | None = None,
) -> dict[int, CopiedTable]:
    """Reads *pieces* as of the end of *plan* into *spool*, as chunks of +A that follow those of the plan's log; by table id.

    A void table has nothing in the spool.

    Args:
        address: of the source.
        selects: makes the SELECTs of tables with a key.
        replica: that is read in place of the source, but for tables without a key and pieces that only the source can give.
        skips_hidden: whether the log goes on without these rows where the source's commits hang; else that is an error.
        counts: count what the SELECTs give, and tell it on the way; by default nobody is told.

    Raises:
        OwnTransactions: the replica holds transactions that are not in the source's log.
        ConnectionLost: the server does not answer, or its address leads to another one meanwhile.
        NotVisible: transactions of the plan's log are not visible for long.
        SourceError: it refuses a SELECT, or cannot say what is visible.
        LogPurged: the log behind the plan is gone.
    """
    found = {piece.table_id: CopiedTable() for piece in pieces}
    versions = {piece.table_id: piece.version for piece in pieces}
    failed: dict[int, SourceError] = {}
    numbered = {piece: len(plan.ranges) + number for number, piece in enumerate(pieces)}
    counts = PieceCounts() if counts is None else counts
    with closing(Spool()) as selected, counts.of(plan.number, numbered), closing(address.connect()) as connection:
        add = counts.adding(selected.add)
        prepare_session(connection)
        ask = asking(connection)
        # All that is read of the source, rows and log, is to be of the server that this connection leads to.
        source = server_identity(connection, tracker.reader.flavor, str(address))
        bags: dict[int, TableChanges] = {}
        work = PieceSelects(
            server=address,
            identity=source,
            is_replica=False,
            flavor=tracker.reader.flavor,
            plan=plan,
            numbered=numbered,
            ended=counts.ended,
        )
        of_source, of_replica = _by_server(pieces, replica)
        for failures in selects(work, of_source, add):
            failed |= failures
        if replica is not None and of_replica:
            failed |= _of_replica(replica, connection, tracker.reader, work, of_replica, selects, add)
        for piece in pieces:
            if not _identity(piece):
                try:
                    bags[piece.table_id] = _bag(address, source, tracker, plan, piece, numbered, add)
                except (TableChanged, SelectInterrupted, NotVisible) as error:
                    failed[piece.table_id] = error
        hidden = next((error for error in failed.values() if isinstance(error, NotVisible)), None)
        if hidden is not None:
            if not skips_hidden:
                raise hidden
            _log.warning("copies wait: %s", hidden)
        wanted = {i: version for i, version in versions.items() if i not in bags}
        changes = {**bags, **changes_behind(tracker, source, plan.end, plan.version, wanted)} if wanted else bags
        for table_id, table in found.items():
            mine = [piece for piece in pieces if piece.table_id == table_id]
            failure = failed.get(table_id)
            table.is_unexplained = isinstance(failure, TableChanged) and not changes[table_id].void
            table.void = changes[table_id].void if failure is None else str(failure).splitlines()[0]
            table.void = table.void or _untold(changes[table_id], mine[0])
            if not table.void:
                table.pieces = tuple(map(counts.copied, mine))
                _rewind(selected, changes[table_id], mine, plan, ask, table, spool, numbered[mine[0]])
    return found


def _by_server(pieces: Sequence[Piece], replica: Replica | None) -> tuple[list[Piece], list[Piece]]:
    """The pieces with a key that the source gives, and those that its replica does."""
    keyed = [piece for piece in pieces if _identity(piece)]
    of_source = [piece for piece in keyed if replica is None or piece.of_source]
    return of_source, [piece for piece in keyed if replica is not None and not piece.of_source]


def _of_replica(
    replica: Replica,
    source: Connection[Any],
    reader: Reader,
    work: PieceSelects,
    pieces: Sequence[Piece],
    selects: Selects,
    add: Callable[[Chunk], None],
) -> dict[int, SourceError]:
    """Reads *pieces* from the replica in place of the source; why tables could not be read, by id.

    What one replica shows lies in the log of the *source* once it has no transactions of its own: the same replica is asked, behind that.
    """
    failed: dict[int, SourceError] = {}
    try:
        identity = replica.identity()
        its_own = replace(work, server=replica.address, identity=identity, is_replica=True)
        for failures in selects(its_own, pieces, add):
            failed |= failures
        replica.check_own(identity, source, reader)
    except ConnectionLost as error:
        # The log can be followed without it.
        failed = {piece.table_id: error for piece in pieces}
    lost = next((error for error in failed.values() if isinstance(error, ConnectionLost)), None)
    if lost is not None:
        _log.warning("copies wait: %s", lost)
    return failed


def _bag(
    address: ServerAddress,
    server: str,
    tracker: Tracker,
    plan: Plan,
    piece: Piece,
    numbered: Mapping[Piece, int],
    add: Callable[[Chunk], None],
) -> TableChanges:
    """Reads a table whose rows nothing tells apart, and its changes up to the very moment of that.

    What the log has of it up to the snapshot is read before the table is: a snapshot that cannot be placed costs no SELECT.

    Raises:
        TableChanged: it is not as the schema says.
        SelectInterrupted: the server broke the SELECT off.
    """
    flavor, deadline_s = tracker.reader.flavor, time.monotonic() + _STILL_S
    while True:
        with snapshot_behind(address, flavor, plan.end, server=server) as snapshot:
            changes = _changes_before(snapshot, tracker, plan, piece)
            if not changes.void:
                prepare_session(snapshot.connection)
                read_piece(snapshot, flavor, plan, piece, numbered[piece], add)
                # An old snapshot shows the table that has the name by now, and MySQL 5.7 an emptied one, without an error.
                tables = {piece.table_id: piece.version}
                changes.void = voids_behind(tracker, server, plan.end, plan.version, tables)[piece.table_id]
                return changes
        if changes.void != _MOMENT:
            return changes
        if time.monotonic() > deadline_s:
            assert piece.version.snapshot is not None  # noqa: S101 - tables that are copied exist
            _log.warning(
                "table %s: no moment was found at which nobody changes it, within %g seconds. It has no key, so it was not read",
                piece.version.snapshot.name,
                _STILL_S,
            )
            return changes


def _changes_before(snapshot: SourceSnapshot, tracker: Tracker, plan: Plan, piece: Piece) -> TableChanges:
    """The changes of the table up to the source's snapshot; void where some may be in it or not."""
    end, executed, whole = snapshot.end, snapshot.executed, snapshot.whole
    assert end is not None  # noqa: S101 - it is the source's
    changes = _changes_until(tracker, snapshot.server, plan, piece, end)
    if changes.void:
        return changes
    if executed is not None:
        seen = (
            executed.contains_gtid(place)
            for chunk in changes.chunks()
            for place in positions(chunk).unique().to_pylist()
        )
        if not all(seen):
            changes.void = _MOMENT
    elif whole is not None and changes.row_count:
        is_behind = whole.covers(plan.end.at)
        surely = _changes_until(tracker, snapshot.server, plan, piece, whole) if is_behind else TableChanges()
        if changes.row_count != surely.row_count:
            changes.void = _MOMENT
    return changes


def _changes_until(tracker: Tracker, server: str, plan: Plan, piece: Piece, end: FilePosition) -> TableChanges:
    """The changes of the table from the plan's end up to that place of the server's log."""
    tables = {piece.table_id: piece.version}
    return changes_behind(tracker, server, plan.end, plan.version, tables, until=end)[piece.table_id]


def _rewind(
    selected: Spool,
    changes: TableChanges,
    pieces: Sequence[Piece],
    plan: Plan,
    ask: Ask,
    table: CopiedTable,
    spool: Spool,
    number: int,
) -> None:
    """Writes the rows of one table as of the plan's end into *spool*."""
    first, sequence, ordinal = pieces[0], number << SEQUENCE_BITS, 0
    key, identity = first.key, _identity(first)
    whole = KeyRange(after=first.range.after, upto=pieces[-1].range.upto)

    is_again = False

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal is_again
        for chunk in selected.chunks(first.table_id):
            if not chunk.stopped:
                yield chunk.rows
            elif not is_again:
                spool.add(chunk)
        is_again = True

    def is_wanted(rows: pa.RecordBatch) -> Mask:
        return np.ones(rows.num_rows, np.bool_) if key is None else within(rows, key, whole, ask)

    if identity:
        rows_then = rewound(batches, changes, identity, is_wanted, parts=changes.parts)
    else:
        rows_then = rewound_bag(batches, changes, parts=changes.parts)
    for rows in rows_then:
        if rows.num_rows:
            spool.add(copied_chunk(rows, first, plan, sequence, ordinal))
            sequence += 1
            ordinal += rows.num_rows
            table.size_bytes += rows.nbytes
    table.rows = ordinal


def copied_chunk(rows: pa.RecordBatch, piece: Piece, plan: Plan, sequence: int, ordinal: int) -> Chunk:
    """Rows that the plan's end has, whatever they were read from, as a chunk."""
    count = rows.num_rows
    columns = (
        np.full(count, Op.APPEND, np.uint8),
        np.full(count, plan.system_time_us, np.int64),
        np.full(count, -1, np.int16),
        np.full(count, plan.end.offset, np.int64),
        np.arange(ordinal, ordinal + count, dtype=np.int32),
    )
    system = [pa.array(values).cast(field.type) for values, field in zip(columns, CHUNK_COLUMNS, strict=True)]
    place = str(plan.end.at)
    return Chunk(
        table_id=piece.table_id,
        version=piece.version.version,
        segment=piece.version.segment,
        sequence=sequence,
        file=plan.end.file,
        first_position=place,
        last_position=place,
        sources=(),
        rows=pa.RecordBatch.from_arrays([*system, *rows.columns[len(system) :]], schema=rows.schema),
    )


def _untold(changes: TableChanges, piece: Piece) -> str:
    """Why *changes* do not tell which rows they are of; "" where they do.

    A value that targets cannot hold is NULL in a unique key, so that keys which differ read alike. In a primary key it would stop the table.
    """
    assert piece.version.snapshot is not None  # noqa: S101 - tables that are copied exist
    names = _identity(piece)
    if piece.key_ids == piece.version.snapshot.primary_key:
        return ""
    if any(rows.column(name).null_count for rows in changes for name in names):
        return "a row changed meanwhile whose key has a value that its column's form cannot hold"
    return ""


def _identity(piece: Piece) -> tuple[str, ...]:
    """The names of the columns that tell the rows of a table apart; () where none do."""
    assert piece.version.snapshot is not None  # noqa: S101 - tables that are copied exist
    return tuple(map(physical_name, piece.key_ids or piece.version.snapshot.primary_key))
