"""Tasks turn chunks into Parquet files that lie in the targets' directories and that no table knows yet.

One pass over chunks writes the files of every table: the changelog's rows and the net change for the mirror. For the
history the rows that begin and the ends of those from before. What a failed task leaves behind is an orphan, which VACUUM takes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from historian.changelog.chunks import Chunk
from historian.changelog.operations import physical_name
from historian.errors import TableStopped, ValueUnrepresentable
from historian.schema.snapshots import Snapshot
from sinks.contract.chunks import Chunks
from sinks.contract.storage import located, writing
from sinks.delta import faults
from sinks.delta.log.commits import DataFile
from sinks.delta.log.statistics import file_statistics
from sinks.rows.intervals import Added, IntervalRows
from sinks.rows.key_ranges import KeyRanges
from sinks.rows.packing import PAGES, column_encodings
from sinks.rows.shapes import NetRows, changelog_rows
from sinks.rows.variant import fitted

__all__ = [
    "CHANGELOG",
    "DELETES",
    "ENDED",
    "FILES",
    "FRESH",
    "MIRROR_FILE_BYTES",
    "OPENED",
    "PARTIAL",
    "STOPPED",
    "UNSEEN",
    "UPSERTS",
    "FileWriter",
    "HistoryWork",
    "Work",
    "WrittenFile",
    "file_rows",
    "files_of",
    "labelled",
    "write_files",
]

CHANGELOG, UPSERTS, PARTIAL, UNSEEN, DELETES = "changelog", "upserts", "partial", "unseen", "deletes"
FRESH = "fresh"
"""Rows to put that a mirror has no row for, unless a configured key does not tell rows apart."""
OPENED, ENDED = "opened", "ended"
STOPPED = "stopped"
"""No file: why the part cannot be written, in the place of statistics."""

_BUFFER_BYTES = 64 << 20
_FILE_BYTES = 512 << 20
MIRROR_FILE_BYTES = 8 << 20
"""Where a file of a small mirror ends: the smaller they are, the less a change of few keys writes anew."""
_BATCH_ROWS = 1 << 18
_DICTIONARY_BYTES = 64 << 10
"""A column whose values make more than this goes on without a dictionary: a large one costs more time than it saves bytes."""
FILES = "table_id int, segment int, kind string, path string, size_bytes long, rows long, statistics string"
_FILE_SCHEMA = pa.schema(
    [
        ("table_id", pa.int32()),
        ("segment", pa.int32()),
        ("kind", pa.string()),
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("rows", pa.int64()),
        ("statistics", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWork:
    """What an executor must know to write the rows of a history.

    Attributes:
        schema: of its files, physical names.
        directory: absolute.
        key: ids of the key's columns.
        added: see :class:`sinks.rows.intervals.IntervalRows`.
        ends: whether rows from before the part can end in it.
    """

    schema: pa.Schema
    directory: str
    key: tuple[int, ...]
    added: Added
    ends: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an executor must know to write the files of one part.

    Attributes:
        written: version to the snapshot that rows under it were written with.
        carried: version to the same columns with the types that changelog and history have now.
        changelog: the schema of changelog files, physical names; None: none are wanted.
        changelog_directory, mirror_directory: absolute.
        offsets: chunk sequence to the changelog offset of its first row.
        system_time_us: of every row.
        target: the snapshot that mirror rows are projected to; None: no mirror rows are wanted.
        partial: whether rows have absent columns.
        moves: whether an update may change the mirror's key.
        sorted: whether the mirror's rows are written in the order of their key.
        soft: whether deleted rows stay in the mirror.
        history: None: no rows of a history are wanted.
        ranges: of the keys whose rows are wanted for mirror and history, and the number of the one; None: all are.
        labels: version to the names that columns have in targets, by those in chunks, where they are others.
        blanks: version to the names of columns that the mirror has and that are NULL in its rows.
    """

    table_id: int
    segment: int
    written: Mapping[int, Snapshot]
    carried: Mapping[int, Snapshot]
    changelog: pa.Schema | None
    changelog_directory: str
    offsets: Mapping[int, int]
    system_time_us: int
    target: Snapshot | None
    mirror: pa.Schema | None
    mirror_directory: str
    soft: bool
    history: HistoryWork | None
    partial: bool = False
    moves: bool = False
    sorted: bool = False
    ranges: tuple[KeyRanges, int] | None = None
    labels: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    blanks: Mapping[int, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file that an executor wrote for one part."""

    table_id: int
    segment: int
    kind: str
    file: DataFile


class FileWriter:
    """Writes batches of one schema to Parquet files of a directory, each of about that size; :meth:`close` gives the files."""

    def __init__(self, directory: str, schema: pa.Schema, file_bytes: int = _FILE_BYTES) -> None:
        self._directory = directory
        self._file_bytes = file_bytes
        # A few times smaller in a file.
        self._buffer_bytes = min(_BUFFER_BYTES, 4 * file_bytes)
        self._schema = schema
        self._system, self._root = located(directory)
        self._buffer: list[pa.RecordBatch] = []
        self._buffered_bytes = 0
        self._writer: Any = None
        self._stream: Any = None
        self._path = ""
        self._files: list[DataFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows, in order. Raises :class:`historian.errors.SinkError` where they cannot be written."""
        if batch.num_rows:
            self._buffer.append(batch)
            self._buffered_bytes += batch.nbytes
            if self._buffered_bytes >= self._buffer_bytes:
                self._flush()

    def write_table(self, rows: pa.Table) -> None:
        """Adds the rows of a table, in order."""
        for batch in rows.to_batches(max_chunksize=_BATCH_ROWS):
            self.write(batch)

    def close(self) -> list[DataFile]:
        """Ends the last file; the files, in order. None were written where there were no rows."""
        self._flush()
        self._finish()
        return self._files

    def _flush(self) -> None:
        if not self._buffer:
            return
        if self._writer is None:
            self._open(max(self._buffer, key=len))
        with writing(self._path):
            self._writer.write_table(pa.Table.from_batches(self._buffer, self._schema))
            size = self._stream.tell()
        self._buffer, self._buffered_bytes = [], 0
        if size >= self._file_bytes:
            self._finish()

    def _open(self, rows: pa.RecordBatch) -> None:
        """Begins a file, encoded as suits *rows*, which are among its first."""
        name = f"part-{uuid.uuid4()}.zstd.parquet"
        self._path = f"{self._directory}/{name}"
        self._footers: list[pq.FileMetaData] = []
        with writing(self._path):
            self._stream = self._system.open_output_stream(f"{self._root}/{name}")
            # Decimals up to 18 digits as integers, as Spark's own files have them.
            self._writer = pq.ParquetWriter(
                self._stream,
                self._schema,
                compression="zstd",
                dictionary_pagesize_limit=_DICTIONARY_BYTES,
                store_decimal_as_integer=True,
                metadata_collector=self._footers,
                **PAGES,
                **column_encodings(rows),
            )

    def _finish(self) -> None:
        if self._writer is None:
            return
        with writing(self._path):
            self._writer.close()
            size = self._stream.tell()
            self._stream.close()
        self._writer = None
        footer = self._footers[0]
        self._files.append(
            DataFile(
                path=self._path,
                size_bytes=size,
                rows=footer.num_rows,
                statistics=file_statistics(footer, self._schema),
            )
        )
        faults.reached("file_written", f"{self._directory} {len(self._files)}")


def write_files(chunks: Chunks, works: Iterable[Work], *, by_table: bool = False) -> list[WrittenFile]:
    """Writes the files of *works* from *chunks*; *by_table*: one task takes all rows of a table."""
    by_part = {(work.table_id, work.segment): work for work in works}
    return chunks.map(_writer(by_part), by_table=by_table) if by_part else []


def files_of(rows: Iterable[Any]) -> list[WrittenFile]:
    """The files that rows of :data:`FILES` tell of."""
    return [
        WrittenFile(
            table_id=row.table_id,
            segment=row.segment,
            kind=row.kind,
            file=DataFile(path=row.path, size_bytes=row.size_bytes, rows=row.rows, statistics=row.statistics),
        )
        for row in rows
    ]


def file_rows(part: tuple[int, int], kind: str, files: Iterable[DataFile]) -> Iterator[pa.RecordBatch]:
    """Rows of :data:`FILES` that tell of *files*."""
    for file in files:
        values = (*part, kind, file.path, file.size_bytes, file.rows, file.statistics)
        arrays = [pa.array([value], f.type) for value, f in zip(values, _FILE_SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_FILE_SCHEMA)


def _writer(works: Mapping[tuple[int, int], Work]) -> Callable[[Iterable[Chunk]], Iterator[WrittenFile]]:
    def write(chunks: Iterable[Chunk]) -> Iterator[WrittenFile]:
        open_parts: dict[tuple[int, int], _PartWriter] = {}
        for chunk in chunks:
            part = chunk.table_id, chunk.segment
            if part in works:
                if part not in open_parts:
                    open_parts[part] = _PartWriter(works[part])
                open_parts[part].write(chunk)
        for (table_id, segment), writer in open_parts.items():
            for kind, files in writer.close():
                for file in files:
                    yield WrittenFile(table_id=table_id, segment=segment, kind=kind, file=file)

    return write


def labelled(chunk: Chunk, work: Work) -> Chunk:
    """*chunk* with its columns under the names that they have in targets."""
    if chunk.version not in work.labels:
        return chunk
    labels = work.labels[chunk.version]
    names = [labels.get(name, name) for name in chunk.rows.schema.names]
    return replace(chunk, rows=chunk.rows.rename_columns(names))


class _PartWriter:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._changelog = None if work.changelog is None else FileWriter(work.changelog_directory, work.changelog)
        self._net: NetRows | None = None
        if work.target is not None:
            self._net = NetRows(work.target, partial=work.partial, soft=work.soft, moves=work.moves)
        history = work.history
        self._intervals = None if history is None else IntervalRows(history.schema, history.key, history.added)
        self._stopped = ""

    def write(self, chunk: Chunk) -> None:
        """Takes a chunk; none after one that cannot be written."""
        if not self._stopped:
            try:
                self._write(chunk)
            except (TableStopped, ValueUnrepresentable) as error:
                self._stopped = self._reason(error)

    def close(self) -> list[tuple[str, list[DataFile]]]:
        """The files by their kind; or :data:`STOPPED` alone, and what was written is an orphan."""
        files: list[tuple[str, list[DataFile]]] = []
        if not self._stopped:
            try:
                files = list(self._close())
            except (TableStopped, ValueUnrepresentable) as error:
                self._stopped = self._reason(error)
        why = DataFile(path="", size_bytes=0, rows=0, statistics=self._stopped)
        return [(STOPPED, [why])] if self._stopped else files

    def _reason(self, error: TableStopped | ValueUnrepresentable) -> str:
        """The error's text, with the column's name where it has the one in files."""
        names = {physical_name(c.id): f"{s.name}.{c.name}" for s in self._work.written.values() for c in s.columns}
        error.where = names.get(error.where or "", error.where)
        return str(error)

    def _write(self, chunk: Chunk) -> None:
        work = self._work
        chunk = labelled(chunk, work)
        written, carried = work.written[chunk.version], work.carried[chunk.version]
        first_offset = work.offsets[chunk.sequence]
        if self._changelog is not None and work.changelog is not None:
            self._changelog.write(
                changelog_rows(
                    chunk,
                    written=written,
                    carried=carried,
                    schema=work.changelog,
                    first_offset=first_offset,
                    system_time_us=work.system_time_us,
                )
            )
        wanted = None
        if work.ranges is not None:
            ranges, number = work.ranges
            wanted = pa.array(ranges.numbers(chunk.rows, written) == number)
        if self._net is not None:
            self._net.add(chunk, written, work.blanks.get(chunk.version, ()), wanted=wanted)
        if self._intervals is not None:
            self._intervals.add(chunk, written=written, carried=carried, first_offset=first_offset, wanted=wanted)

    def _close(self) -> Iterator[tuple[str, list[DataFile]]]:
        if self._changelog is not None:
            yield CHANGELOG, self._changelog.close()
        if self._net is not None:
            yield from self._net_files(self._net)
        history = self._work.history
        if self._intervals is not None and history is not None:
            opened, ended = self._intervals.finish()
            yield OPENED, _files(opened, history.directory, history.schema)
            yield ENDED, _files(ended, history.directory, history.schema) if history.ends else []

    def _net_files(self, rows: NetRows) -> Iterator[tuple[str, list[DataFile]]]:
        work, net = self._work, rows.finish()
        fresh = pa.array(rows.fresh) if len(rows.fresh) else pa.repeat(False, net.whole.num_rows)
        parts = (
            (UPSERTS, net.whole.filter(pc.invert(fresh))),
            (FRESH, net.whole.filter(fresh)),
            (PARTIAL, net.partial),
            (UNSEEN, net.unseen),
            (DELETES, net.gone),
        )
        key = work.target.primary_key if work.sorted and work.target is not None else ()
        for kind, found in parts:
            part = found.sort_by([(physical_name(column), "ascending") for column in key]) if key else found
            if kind == PARTIAL:
                part = _with_kept(part, work.mirror)
            schema = _with_more(work.mirror, part.schema)
            table = pa.table([fitted(part.column(f.name), f.type, f.name) for f in schema], schema=schema)
            yield kind, _files(table, work.mirror_directory, schema, MIRROR_FILE_BYTES)


def _files(rows: pa.Table, directory: str, schema: pa.Schema, file_bytes: int = _FILE_BYTES) -> list[DataFile]:
    writer = FileWriter(directory, schema, file_bytes)
    writer.write_table(rows)
    return writer.close()


def _with_kept(rows: pa.Table, mirror: pa.Schema | None) -> pa.Table:
    """*rows* with NULL in columns of the mirror that their table does not have any more."""
    for name in [] if mirror is None else [name for name in mirror.names if name not in rows.schema.names]:
        rows = rows.append_column(name, pa.nulls(rows.num_rows))
    return rows


def _with_more(mirror: pa.Schema | None, rows: pa.Schema) -> pa.Schema:
    """The mirror's schema for what *rows* have of it, and their own for the rest."""
    assert mirror is not None  # noqa: S101 planned with the net change
    return pa.schema([mirror.field(f.name) if f.name in mirror.names else f for f in rows])
