"""A chunk: rows of one table under one schema version, in log order, as Arrow; and how chunks travel as rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.missing_columns import lacking
from historian.changelog.operations import CHUNK_COLUMNS, Op, column_id

__all__ = [
    "CHUNK_STREAM",
    "NO_TABLE",
    "Chunk",
    "chunk_row",
    "chunks_of",
    "dead_letters",
    "ipc_stream",
    "operations",
    "positions",
    "transactions",
    "unread_chunk",
]

NO_TABLE = 0
"""The table id of a chunk of messages that cannot be read. It has no rows; its dead letters are the messages."""

_UUID_LENGTH = 36
_NO_ATTRIBUTES = ("sources", "row_count", "operations", "nulled", "missing", "dead_letters", "rows")

CHUNK_STREAM = pa.schema(
    [
        pa.field("table_id", pa.int32(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("segment", pa.int32(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("first_position", pa.string(), nullable=False),
        pa.field("last_position", pa.string(), nullable=False),
        pa.field("sources", pa.string(), nullable=False),
        pa.field("row_count", pa.int64(), nullable=False),
        pa.field("operations", pa.string(), nullable=False),
        pa.field("nulled", pa.string(), nullable=False),
        pa.field("stopped", pa.string(), nullable=False),
        pa.field("missing", pa.list_(pa.int32()), nullable=False),
        pa.field("dead_letters", pa.string(), nullable=False),
        pa.field("rows", pa.binary(), nullable=False),
    ]
)
"""A chunk as one row of a many-table stream.

``sources`` is a JSON array, ``operations`` another one: how many rows have each code of :class:`historian.changelog.operations.Op`. ``rows`` an Arrow IPC stream of one batch, and ``nulled`` what its schema metadata says
under that key. That is a JSON object from a column's physical name to how many values became NULL, since they cannot be
represented (:mod:`historian.values.policies`); "" where there are none.
``missing`` are the ids of columns that are absent in some row (:mod:`historian.changelog.missing_columns`). ``dead_letters`` is a JSON array of values that no
column could hold (see :func:`dead_letters`); "" where there are none.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Consecutive changelog rows of one table, all under one schema version.

    Attributes:
        table_id: the table's id in the history.
        version: number of the schema version its rows were written under.
        segment: which of the plan's segments of that table the rows belong to, from 0.
        sequence: place among all chunks of the plan, over all its ranges; in this order a table's chunks are in log
            order.
        file: binlog file of the rows.
        first_position, last_position: of the first and last row's transaction, as text.
        stopped: why the table's rows end here, which stops the table; "" where they do not. Such a chunk has no rows, and
            no chunk of the table behind it in its range.
        sources: what ``source`` indexes in ``rows`` (see :data:`historian.changelog.operations.CHUNK_COLUMNS`).
        rows: :data:`~historian.changelog.operations.CHUNK_COLUMNS`, then one column a column of the snapshot, named by
            :func:`~historian.changelog.operations.physical_name`, in the snapshot's order, typed as in :mod:`historian.values.arrow_types`.
            +C stands directly behind its -C, in the same chunk. Where rows have absent columns, bitmaps of them stand
            last (:mod:`historian.changelog.missing_columns`).
    """

    table_id: int
    version: int
    segment: int
    sequence: int
    file: str
    first_position: str
    last_position: str
    sources: tuple[str, ...]
    rows: pa.RecordBatch
    stopped: str = ""


def chunk_row(chunk: Chunk, *, compression: str | None = None) -> pa.RecordBatch:
    """*chunk* as a batch of one row of :data:`CHUNK_STREAM`; *compression*: of its ``rows``, as Arrow names it."""
    values = [
        chunk.table_id,
        chunk.version,
        chunk.segment,
        chunk.sequence,
        chunk.file,
        chunk.first_position,
        chunk.last_position,
        json.dumps(chunk.sources),
        chunk.rows.num_rows,
        operations(chunk),
        (chunk.rows.schema.metadata or {}).get(b"nulled", b"").decode(),
        chunk.stopped,
        lacking(chunk.rows),
        dead_letters(chunk),
    ]
    arrays = [pa.array([value], field.type) for value, field in zip(values, CHUNK_STREAM, strict=False)]
    body = ipc_stream(chunk.rows) if compression is None else _compressed(chunk.rows, compression)
    bounds = pa.array([0, body.size], pa.int32()).buffers()[1]
    return pa.RecordBatch.from_arrays(
        [*arrays, pa.Array.from_buffers(pa.binary(), 1, [None, bounds, body])], schema=CHUNK_STREAM
    )


def operations(chunk: Chunk) -> str:
    """How many rows of a chunk have each code of :class:`historian.changelog.operations.Op`, as a JSON array."""
    counts: list[int] = np.bincount(chunk.rows.column("op").to_numpy(), minlength=len(Op)).tolist()
    return json.dumps(counts)


def dead_letters(chunk: Chunk) -> str:
    """The dead letters of a chunk's rows, whose schema metadata names row, column, bytes, text and reason of each.

    Each is an object of ``column`` (its id), ``raw`` (the log's bytes in hexadecimal digits), ``text`` (as the server prints
    it) and ``reason`` (of :data:`historian.values.policies.REASONS`). Of its row it has ``position``, ``ordinal``, ``op`` and
    ``event_time_us``. Of a message that cannot be read ``raw`` is its value and ``text`` says why; it has no column and no op.
    """
    held: bytes | None = (chunk.rows.schema.metadata or {}).get(b"dead_letters")
    if held is None:
        return ""
    if chunk.table_id == NO_TABLE:
        return held.decode()
    places = positions(chunk)
    times = chunk.rows.column("event_time").cast(pa.int64())
    return json.dumps(
        [
            {
                "column": column_id(name),
                "raw": raw,
                "text": text,
                "reason": reason,
                "position": places[row].as_py(),
                "ordinal": chunk.rows.column("ordinal")[row].as_py(),
                "op": chunk.rows.column("op")[row].as_py(),
                "event_time_us": times[row].as_py(),
            }
            for row, name, raw, text, reason in json.loads(held)
        ]
    )


def unread_chunk(messages: Sequence[tuple[str, int, bytes, str]], *, sequence: int, file: str) -> Chunk:
    """Messages that cannot be read, as a chunk without rows, of :data:`NO_TABLE`.

    Args:
        messages: of each its place, its broker's time in UTC microseconds, its bytes, and why it cannot be read.
    """
    letters = [
        {
            "column": 0,
            "raw": raw.hex(),
            "text": why,
            "reason": "",
            "position": position,
            "ordinal": 0,
            "op": None,
            "event_time_us": time_us,
        }
        for position, time_us, raw, why in messages
    ]
    schema = pa.schema(CHUNK_COLUMNS, {"dead_letters": json.dumps(letters)})
    return Chunk(
        table_id=NO_TABLE,
        version=0,
        segment=0,
        sequence=sequence,
        file=file,
        first_position=messages[0][0],
        last_position=messages[-1][0],
        sources=(),
        rows=pa.RecordBatch.from_pylist([], schema),
    )


def ipc_stream(rows: pa.RecordBatch) -> pa.Buffer:
    """An Arrow IPC stream of one batch."""
    # Measured first: a sink that grows copies what it holds each time.
    size = pa.MockOutputStream()
    with pa.ipc.new_stream(size, rows.schema) as writer:
        writer.write_batch(rows)
    body = pa.allocate_buffer(size.size())
    with pa.ipc.new_stream(pa.FixedSizeBufferWriter(body), rows.schema) as writer:
        writer.write_batch(rows)
    return body


def _compressed(rows: pa.RecordBatch, compression: str) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    # The lowest level: what the next ones save takes longer than to write it.
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec(compression, 1))
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    return sink.getvalue()


def chunks_of(batch: pa.RecordBatch) -> Iterator[Chunk]:
    """The chunks in a batch of :data:`CHUNK_STREAM` rows; their Arrow data is not copied."""
    names = [name for name in CHUNK_STREAM.names if name not in _NO_ATTRIBUTES]
    columns = {name: batch.column(name).to_pylist() for name in names}
    sources, rows = batch.column("sources"), batch.column("rows")
    for at in range(batch.num_rows):
        yield Chunk(
            **{name: values[at] for name, values in columns.items()},
            sources=tuple(json.loads(sources[at].as_py())),
            rows=pa.ipc.open_stream(rows[at].as_buffer()).read_next_batch(),
        )


def positions(chunk: Chunk) -> pa.Array:
    """The position of each row's transaction as text: its GTID, or ``file:offset`` of its first event."""
    numbers = chunk.rows.column("sequence").cast(pa.string())
    separators = [":" if len(source) >= _UUID_LENGTH else "-" for source in chunk.sources]
    prefixes = pa.array([*map("".join, zip(chunk.sources, separators, strict=True)), f"{chunk.file}:"], pa.string())
    sources = chunk.rows.column("source")
    index = pc.if_else(pc.less(sources, 0), len(chunk.sources), sources.cast(pa.int64()))
    return pc.binary_join_element_wise(prefixes.take(index), numbers, "")


def transactions(chunk: Chunk) -> pa.Array:
    """The GTID of each row's transaction; NULL where it has none."""
    places = positions(chunk)
    return pc.if_else(pc.less(chunk.rows.column("source"), 0), pa.scalar(None, places.type), places)
