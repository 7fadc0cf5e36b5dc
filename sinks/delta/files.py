"""Executors turn chunks into Parquet files that lie in the targets' directories and that no table knows yet.

One pass over a batch writes the files of every table: the changelog's rows, and the net change for the mirror. What a
failed task leaves behind is an orphan, which VACUUM takes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from historian.chunks import Chunk, chunks_of
from historian.schema import Snapshot
from sinks.delta.kernel import DataFile
from sinks.delta.statistics import file_statistics
from sinks.rows import NetRows, changelog_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "CHANGELOG",
    "DELETES",
    "FILES",
    "PARTIAL",
    "UNSEEN",
    "UPSERTS",
    "FileWriter",
    "Work",
    "WrittenFile",
    "file_rows",
    "files_of",
    "write_files",
]

CHANGELOG, UPSERTS, PARTIAL, UNSEEN, DELETES = "changelog", "upserts", "partial", "unseen", "deletes"

_BUFFER_BYTES = 64 << 20
_FILE_BYTES = 512 << 20
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
class Work:
    """What an executor must know to write the files of one part.

    Attributes:
        written: version to the snapshot that rows under it were written with.
        carried: version to the same columns with the types that the changelog has now; empty: no changelog.
        changelog: the schema of changelog files, physical names; None: none are wanted.
        changelog_directory, mirror_directory: absolute.
        offsets: chunk sequence to the changelog offset of its first row.
        system_time_us: of every row.
        target: the snapshot that mirror rows are projected to; None: no mirror rows are wanted.
        partial: whether rows have absent columns.
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
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file that an executor wrote for one part."""

    table_id: int
    segment: int
    kind: str
    file: DataFile


class FileWriter:
    """Writes batches of one schema to Parquet files of a directory; :meth:`close` gives the files."""

    def __init__(self, directory: str, schema: pa.Schema) -> None:
        self._directory = directory
        self._schema = schema
        self._system, self._root = pafs.FileSystem.from_uri(directory)
        self._buffer: list[pa.RecordBatch] = []
        self._buffered_bytes = 0
        self._writer: Any = None
        self._stream: Any = None
        self._name = ""
        self._files: list[DataFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows, in order."""
        if batch.num_rows:
            self._buffer.append(batch)
            self._buffered_bytes += batch.nbytes
            if self._buffered_bytes >= _BUFFER_BYTES:
                self._flush()

    def close(self) -> list[DataFile]:
        """Ends the last file; the files, in order. None were written where there were no rows."""
        self._flush()
        self._finish()
        return self._files

    def _flush(self) -> None:
        if not self._buffer:
            return
        if self._writer is None:
            self._open()
        self._writer.write_table(pa.Table.from_batches(self._buffer, self._schema))
        self._buffer, self._buffered_bytes = [], 0
        if self._stream.tell() >= _FILE_BYTES:
            self._finish()

    def _open(self) -> None:
        self._name = f"part-{uuid.uuid4()}.zstd.parquet"
        self._stream = self._system.open_output_stream(f"{self._root}/{self._name}")
        self._footers: list[pq.FileMetaData] = []
        # Decimals up to 18 digits as integers, as Spark's own files have them.
        self._writer = pq.ParquetWriter(
            self._stream,
            self._schema,
            compression="zstd",
            store_decimal_as_integer=True,
            metadata_collector=self._footers,
        )

    def _finish(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        self._writer = None
        footer = self._footers[0]
        self._files.append(
            DataFile(
                path=f"{self._directory}/{self._name}",
                size_bytes=size,
                rows=footer.num_rows,
                statistics=file_statistics(footer, self._schema),
            )
        )


def write_files(chunks: DataFrame, works: Iterable[Work]) -> list[WrittenFile]:
    """Writes the files of *works* from *chunks* (:data:`historian.chunks.CHUNK_STREAM`) in one Spark job."""
    by_part = {(work.table_id, work.segment): work for work in works}
    if not by_part:
        return []
    return files_of(chunks.mapInArrow(_writer(by_part), FILES).collect())


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


def _writer(works: Mapping[tuple[int, int], Work]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        open_parts: dict[tuple[int, int], _PartWriter] = {}
        for batch in batches:
            for chunk in chunks_of(batch):
                part = chunk.table_id, chunk.segment
                if part in works:
                    open_parts.setdefault(part, _PartWriter(works[part])).write(chunk)
        for part, writer in open_parts.items():
            for kind, files in writer.close():
                yield from file_rows(part, kind, files)

    return write


class _PartWriter:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._changelog = None if work.changelog is None else FileWriter(work.changelog_directory, work.changelog)
        self._net = None if work.target is None else NetRows(work.target, partial=work.partial)

    def write(self, chunk: Chunk) -> None:
        work = self._work
        if self._changelog is not None and work.changelog is not None:
            self._changelog.write(
                changelog_rows(
                    chunk,
                    written=work.written[chunk.version],
                    carried=work.carried[chunk.version],
                    schema=work.changelog,
                    first_offset=work.offsets[chunk.sequence],
                    system_time_us=work.system_time_us,
                )
            )
        if self._net is not None:
            self._net.add(chunk, work.written[chunk.version])

    def close(self) -> Iterator[tuple[str, list[DataFile]]]:
        if self._changelog is not None:
            yield CHANGELOG, self._changelog.close()
        if self._net is not None:
            net = self._net.finish()
            for kind, rows in ((UPSERTS, net.whole), (PARTIAL, net.partial), (UNSEEN, net.unseen), (DELETES, net.gone)):
                schema = _with_more(self._work.mirror, rows.schema)
                writer = FileWriter(self._work.mirror_directory, schema)
                for batch in rows.cast(schema).to_batches():
                    writer.write(batch)
                yield kind, writer.close()


def _with_more(mirror: pa.Schema | None, rows: pa.Schema) -> pa.Schema:
    """The mirror's schema for what *rows* have of it, and their own for the rest."""
    assert mirror is not None  # noqa: S101 planned with the net change
    return pa.schema([mirror.field(f.name) if f.name in mirror.names else f for f in rows])
