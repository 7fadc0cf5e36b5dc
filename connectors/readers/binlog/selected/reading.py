"""Rows of a table as it is now, read by SELECT into chunks as the log's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.kernels.results import layout as at
from connectors.readers.binlog.kernels.results.encoding import encode
from connectors.readers.binlog.rows.decoder import NO_ROWS
from connectors.readers.binlog.selected.columns import select_statement
from connectors.readers.binlog.selected.definitions import misfit
from connectors.readers.binlog.selected.failures import TableChanged
from connectors.readers.binlog.selected.images import Images
from connectors.readers.binlog.selected.results import Result
from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS
from historian.errors import SourceError, ValueUnrepresentable
from historian.plans.plans import PlannedVersion
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["select_rows"]

_MOST_ROWS = 2**31
_ORDINAL = [field.name for field in CHUNK_COLUMNS].index("ordinal")


def select_rows(  # noqa: PLR0913 each by name, and each is wanted
    connection: Connection[Any],
    version: PlannedVersion,
    *,
    table_id: int,
    where: str = "",
    flavor: str,
    position: LogPosition,
    event_time_us: int,
    sequence: int = 0,
    max_chunk_rows: int = 128 * 1024,
    max_chunk_bytes: int = 24 * 1024 * 1024,
) -> Iterator[Chunk]:
    """The rows that a table holds now, as +A at *position*, in chunks with the values and types that the log's decoder gives.

    No more is held than a chunk, a row and a few megabytes. An iterator that is closed before its end closes the connection, as does an
    error; at its end the connection may be used again. A value that cannot be represented ends the rows with a chunk
    that says so, and closes the connection. Chunks that come before an error are a part of the rows, and no more than that.

    Args:
        connection: of :func:`~connectors.readers.binlog.selected.sessions.selecting_connection`, or with the same settings;
            a transaction that it has begun goes on.
        version: its snapshot says which columns are read and how.
        where: a predicate in SQL; "": all rows.
        position: whose file and offset stand for each row's transaction; rows are numbered from 0 by their ordinals.
        event_time_us: of all rows.
        sequence: number of the first chunk.
        max_chunk_rows: at least 2.
        max_chunk_bytes: measured as the rows' bytes in a log and what Arrow needs besides.

    Raises:
        TableChanged: the table is not as *version* says, as far as the server tells. Of ENUM and SET it tells nothing but numbers.
        ConnectionLost: the connection broke: retry.
        SelectInterrupted: the server broke the statement off: retry.
        SourceError: the server refuses it.
    """
    snapshot = version.snapshot
    if snapshot is None:
        raise ValueError(f"version {version.version} of table {table_id} has no schema")
    chunks = _Chunks(version, table_id, position, sequence)
    try:
        images = Images(
            version,
            snapshot,
            flavor=flavor,
            offset=position.offset,
            event_time_us=event_time_us,
            max_rows=max_chunk_rows,
            max_bytes=max_chunk_bytes,
        )
    except ValueUnrepresentable as error:
        yield chunks.stopped(error)
        return
    ended = False
    try:
        result = Result(connection, select_statement(snapshot, where), f"SELECT from {snapshot.name}")
        _compare(result, snapshot, flavor)
        yield from _read(result, images, chunks, snapshot)
        ended = not chunks.is_stopped
        if ended:
            result.end()
    finally:
        if not ended:
            own: Any = connection
            own._force_close()  # noqa: SLF001 - rows that nobody has read stand before any other answer


class _Chunks:
    """Numbers chunks and their rows."""

    def __init__(self, version: PlannedVersion, table_id: int, position: LogPosition, sequence: int) -> None:
        self._version, self._table_id, self._position = version, table_id, position
        self._next = sequence
        self._rows = 0
        self.is_stopped = False

    def taken(self, images: Images) -> Chunk:
        """The builder's rows as a chunk."""
        try:
            rows = images.builder.take(lambda _source, _sequence: self._place)
        except ValueUnrepresentable as error:
            return self.stopped(error)
        first, self._rows = self._rows, self._rows + rows.num_rows
        if self._rows > _MOST_ROWS:
            raise SourceError(
                "a SELECT of too many rows", where=str(images.builder.snapshot.name), expected=f"at most {_MOST_ROWS}"
            )
        ordinals = pa.array(np.arange(first, self._rows, dtype=np.int32))
        return self._chunk(rows.set_column(_ORDINAL, rows.schema.field(_ORDINAL), ordinals))

    def stopped(self, error: ValueUnrepresentable) -> Chunk:
        """The chunk that ends the table's rows."""
        self.is_stopped = True
        return replace(self._chunk(NO_ROWS), stopped=str(error))

    @property
    def _place(self) -> str:
        return f"{self._position.file}:{self._position.offset}"

    def _chunk(self, rows: pa.RecordBatch) -> Chunk:
        self._next += 1
        return Chunk(
            table_id=self._table_id,
            version=self._version.version,
            segment=self._version.segment,
            sequence=self._next - 1,
            file=self._position.file,
            first_position=self._place,
            last_position=self._place,
            sources=(),
            rows=rows,
        )


def _compare(result: Result, snapshot: Snapshot, flavor: str) -> None:
    """Compares what the server says of the columns with the schema."""
    columns, found = snapshot.columns, result.definitions
    if len(columns) != len(found):
        raise TableChanged(
            "a result has other columns than the table",
            where=str(snapshot.name),
            expected=f"{len(columns)} columns",
            found=len(found),
        )
    for column, described in zip(columns, found, strict=True):
        difference = misfit(column.type, described, flavor)
        if difference is not None:
            raise TableChanged(
                "a column is not as the schema says",
                where=f"{snapshot.name}.{column.name}",
                expected=str(column.type),
                found=difference,
            )


def _read(result: Result, images: Images, chunks: _Chunks, snapshot: Snapshot) -> Iterator[Chunk]:
    state = result.state
    images.receive_from(state)
    while True:
        code = encode(*result.arguments())
        image_bytes = images.bytes_in(state)
        if image_bytes and code != at.PARTS:
            for _ in images.decoded(image_bytes):
                yield chunks.taken(images)
                if chunks.is_stopped:
                    return
            images.receive_from(state)
        if code == at.MORE:
            result.receive()
        elif code == at.PARTS:
            result.join()
        elif code == at.FULL:
            if not image_bytes:
                images.grow(int(state[at.NEEDED]))
                images.receive_from(state)
        elif code == at.END:
            break
        else:
            raise _failure(code, result, snapshot)
    if images.builder.rows:
        yield chunks.taken(images)


def _failure(code: int, result: Result, snapshot: Snapshot) -> SourceError:
    if code == at.ERROR:
        return result.error()
    column = int(result.state[at.COLUMN])
    named = 0 <= column < len(snapshot.columns)
    return TableChanged(
        "a row of a result does not fit the schema",
        where=f"{snapshot.name}.{snapshot.columns[column].name}" if named else str(snapshot.name),
        expected=str(snapshot.columns[column].type) if named else f"{len(snapshot.columns)} columns",
    )
