"""What the log tells of tables behind a position, up to its present end: rows, or why rows there cannot be brought back."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectors.readers.binlog.transport.connection import same_server
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

__all__ = ["TableChanges", "changes_behind", "voids_behind"]


@dataclass(slots=True)
class TableChanges:
    """Changelog rows of one table in the order of the log; ``void``: why its rows cannot be brought back, "" where they can."""

    chunks: list[Chunk] = field(default_factory=list)
    void: str = ""

    @property
    def row_count(self) -> int:
        """How many there are."""
        return sum(chunk.rows.num_rows for chunk in self.chunks)

    @property
    def batches(self) -> list[pa.RecordBatch]:
        """The rows alone."""
        return [chunk.rows for chunk in self.chunks]


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
    found = {table_id: TableChanges() for table_id in tables}
    with _walked(tracker, server, start, number, tables, until) as (reader, walk, bounds):
        for table_id, version in tables.items():
            found[table_id].void = _void(walk, _snapshot(version))
        wanted = [
            PlannedTable(table_id=table_id, versions=(version,))
            for table_id, version in tables.items()
            if not found[table_id].void and table_id in walk.touched
        ]
        for planned in tracker.ranges_of(walk, start, bounds) if wanted else ():
            for chunk in reader.read(planned, wanted, stops=True):
                changes = found[chunk.table_id]
                if chunk.stopped:
                    changes.void = chunk.stopped
                elif lacking(chunk.rows):
                    changes.void = "the log does not hold whole images of rows that changed meanwhile"
                changes.chunks.append(chunk)
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
