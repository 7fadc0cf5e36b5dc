"""What the log tells of tables behind a position, up to its present end: rows, or why rows there cannot be brought back."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.backfill.spool import Spool
from connectors.readers.binlog.transport.connection import same_server
from connectors.tracking.ranges import SEQUENCE_BITS
from connectors.tracking.rereading import walked_again
from historian.changelog.chunks import Chunk
from historian.changelog.missing_columns import lacking
from historian.plans.plans import PlannedTable, PlannedVersion
from historian.positions import LogPosition

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.readers.base import Bound, Reader
    from connectors.tracking.tracker import Tracker
    from connectors.tracking.walk import Walk
    from historian.positions import FilePosition
    from historian.schema.snapshots import Snapshot

_MEMORY_BYTES = 64 << 20
_PART_ROWS, _PART_BYTES = 250_000, 64 << 20

__all__ = ["TableChanges", "changes_behind", "voids_behind"]


class TableChanges:
    """Changelog rows of one table in the order of the log, gone through as often as wanted.

    Beyond a limit they are in a temporary file, which those of other tables share.

    Attributes:
        void: why its rows cannot be brought back; "" where they can.
        row_count: how many there are; ``size_bytes``: of them as Arrow.
    """

    def __init__(self, table_id: int = 0, held: Spool | None = None) -> None:
        self._table_id = table_id
        self._held = held
        self.void = ""
        self.row_count = 0
        self.size_bytes = 0

    def add(self, chunk: Chunk) -> None:
        """Takes *chunk* last."""
        assert self._held is not None  # noqa: S101 without one it has no rows
        self._held.add(chunk)
        self.row_count += chunk.rows.num_rows
        self.size_bytes += chunk.rows.nbytes

    def chunks(self) -> Iterator[Chunk]:
        """The rows, in chunks."""
        return iter(()) if self._held is None else self._held.chunks(self._table_id)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows alone."""
        return (chunk.rows for chunk in self.chunks())

    @property
    def parts(self) -> int:
        """In how many parts they are compared with other rows, so that what is held of a part at once is bounded."""
        return 1 + max(self.row_count // _PART_ROWS, self.size_bytes // _PART_BYTES)


def changes_behind(
    tracker: Tracker,
    server: str,
    start: LogPosition,
    number: int,
    tables: Mapping[int, PlannedVersion],
    *,
    until: FilePosition | None = None,
) -> dict[int, TableChanges]:
    """The changes of *tables* behind *start*, by table id.

    A table is void where a statement behind *start* is on it, or where the log does not hold its changes whole.

    Args:
        tracker: of the connector; neither its history nor its store learns of what is read.
        server: identity of the one whose log is to be read: rows of another one cannot be brought back by it.
        start: the end of a plan, or of the log that one will hold.
        number: of the last timeline entry at or before it.
        tables: id to the version in force at *start*.
        until: a place in its log, where what is read ends; None: the log's present end.

    Raises:
        ConnectionLost: the address leads to another server, or nobody answers.
        LogPurged: the log behind *start* is gone.
    """
    held = Spool(_MEMORY_BYTES)
    found = {table_id: TableChanges(table_id, held) for table_id in tables}
    with _walked(tracker, server, start, number, tables, until) as (reader, walk, bounds):
        for table_id, version in tables.items():
            found[table_id].void = _void(walk, _snapshot(version))
        wanted = [
            PlannedTable(table_id=table_id, versions=(version,))
            for table_id, version in tables.items()
            if not found[table_id].void and table_id in walk.touched
        ]
        for index, planned in enumerate(tracker.ranges_of(walk, start, bounds) if wanted else ()):
            for chunk in reader.read(planned, wanted, sequence=index << SEQUENCE_BITS, stops=True):
                changes = found[chunk.table_id]
                if chunk.stopped:
                    changes.void = chunk.stopped
                elif lacking(chunk.rows):
                    changes.void = "the log does not hold whole images of rows that changed meanwhile"
                if not changes.void:
                    changes.add(chunk)
    return found


def voids_behind(
    tracker: Tracker, server: str, start: LogPosition, number: int, tables: Mapping[int, PlannedVersion]
) -> dict[int, str]:
    """Why statements behind *start* keep rows from being brought back, by table id; "": none do. What rows changed is not looked at.

    Arguments and errors are those of :func:`changes_behind`.
    """
    with _walked(tracker, server, start, number, tables, None) as (_, walk, _):
        return {table_id: _void(walk, _snapshot(version)) for table_id, version in tables.items()}


@contextmanager
def _walked(
    tracker: Tracker,
    server: str,
    start: LogPosition,
    number: int,
    tables: Mapping[int, PlannedVersion],
    until: FilePosition | None,
) -> Iterator[tuple[Reader, Walk, list[Bound]]]:
    """A reader of that server's log, and what it has walked over."""
    names = {_snapshot(version).name for version in tables.values()}
    # A reader of its own: the tracker's keeps the log that it scanned last, which a plan is about to be decoded from.
    with closing(copy.copy(tracker.reader)) as reader:
        # Behind that, all connections of this reader lead to the same server, or it raises.
        same_server(server, reader.server(), "the log behind rows that were selected")
        end = None if until is None else _place(reader, server, start, until)
        walk, bounds = walked_again(tracker, reader, names.__contains__, number, start, end)
        yield reader, walk, bounds


def _place(reader: Reader, server: str, start: LogPosition, at: FilePosition) -> LogPosition:
    """*at* as a position that can be compared with *start*; only where that is of another server's log are GTIDs counted for it."""
    place = LogPosition(flavor=reader.flavor, gtids="", file=at.file, offset=at.offset)
    return replace(place, server=server) if start.server == server else reader.locate(place)


def _void(walk: Walk, snapshot: Snapshot) -> str:
    stop = walk.quarantines.get(snapshot.table_id)
    if stop is not None:
        return stop.reason.splitlines()[0]
    for entry in walk.new_entries:
        for edit in entry.edits:
            if snapshot.name in (getattr(edit, "table", None), getattr(edit, "new", None)):
                return f"a statement changed the table meanwhile: {entry.statement[:120]}"
    held = walk.catalog.tables.get(snapshot.name)
    if held is None or held.table_id != snapshot.table_id:
        return "the table went away meanwhile"
    return ""


def _snapshot(version: PlannedVersion) -> Snapshot:
    assert version.snapshot is not None  # noqa: S101 - tables that are copied exist
    return version.snapshot
