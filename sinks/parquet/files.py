"""Files of one table: named after the offset of their first row, one a schema version and plan.

A file carries the snapshot that its rows were written under (metadata ``historian.snapshot``), columns have the names of
that version and the column's id as field id. Rows with absent columns stand in files of their own, which name them in
the columns of :mod:`historian.changelog.missing_columns` behind ``schema_version``. Encodings are Open Data Fabric's: ``offset`` delta-packed, ``op`` an INT32
in a dictionary. Times are in microseconds, as the source says them: files are of the binlog profile. :mod:`sinks.parquet.odf`
writes strict ones, in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from historian import codec
from historian.changelog.chunks import Chunk
from historian.changelog.folding import BAG_COUNT, fold_bag, net_changes, summed_bags
from historian.changelog.missing_columns import ABSENT, MISSING_COLUMNS, NAMES_TYPE, WHOLE_IMAGES
from historian.changelog.operations import SYSTEM_COLUMNS, Op, physical_name
from historian.changelog.projection import project
from historian.errors import TableStopped
from historian.schema.snapshots import Snapshot
from historian.values.arrow_types import arrow_type
from sinks.contract.chunks import Chunks
from sinks.contract.storage import located, reading, writing
from sinks.rows.shapes import changelog_rows

__all__ = ["Retraction", "Work", "changelog_writer", "write_chunks", "write_retractions"]

_SNAPSHOT = b"historian.snapshot"
_UTC_US = pa.timestamp("us", tz="UTC")
_SYSTEM_TYPES = (pa.int64(), pa.int32(), _UTC_US, _UTC_US, pa.int64())
_LACKS = "lacks"
"""Column that tells whether a row has absent columns, while it is folded."""
_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Where an executor writes the rows of one part.

    Attributes:
        directory: of the table, absolute.
        written: version to the snapshot that its rows were written under.
        offsets: chunk sequence to the offset of its first row.
        system_time_us: of every row.
    """

    directory: str
    written: Mapping[int, Snapshot]
    offsets: Mapping[int, int]
    system_time_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """Rows that a statement takes back.

    Attributes:
        directory: of the table, absolute.
        live_from, upto: offsets of the rows that decide what is there: from the one, before the other.
        base: the schema in force before the statement.
        version: its number.
        system_time_us, event_time_us: of every row.
    """

    directory: str
    live_from: int
    upto: int
    base: Snapshot
    version: int
    system_time_us: int
    event_time_us: int


def write_chunks(chunks: Chunks, works: Mapping[tuple[int, int], Work]) -> int:
    """Writes the rows of *works*, by (table id, segment); says how many rows were written.

    A file that an earlier try left is replaced by the same rows.
    """
    return sum(chunks.map(_writer(works), by_table=True))


def write_retractions(work: Retraction) -> int:
    """Writes a -R for every row that is there, ordered as it came; says how many."""
    live = _live_rows(work)
    if not live.num_rows:
        return 0
    schema = _schema(work.base)
    count: int = live.num_rows
    system = (
        pa.array(range(work.upto, work.upto + count), pa.int64()),
        pa.repeat(pa.scalar(int(Op.RETRACT), pa.int32()), count),
        pa.repeat(pa.scalar(work.system_time_us, _UTC_US), count),
        pa.repeat(pa.scalar(work.event_time_us, _UTC_US), count),
        pa.repeat(pa.scalar(work.version, pa.int64()), count),
    )
    file = _File(work.directory, work.upto, work.version, schema)
    file.write(pa.table([*system, *live.columns], schema=schema))
    file.close()
    return count


def _writer(works: Mapping[tuple[int, int], Work]) -> Callable[[Iterable[Chunk]], Iterator[int]]:
    def write(chunks: Iterable[Chunk]) -> Iterator[int]:
        current: tuple[int, int, int, tuple[str, ...]] | None = None
        file: _File | None = None
        for chunk in chunks:
            work = works.get((chunk.table_id, chunk.segment))
            if work is None:
                continue
            first, snapshot = work.offsets[chunk.sequence], work.written[chunk.version]
            missing = tuple(name for name in MISSING_COLUMNS if name in chunk.rows.schema.names)
            if file is None or current != (chunk.table_id, chunk.segment, chunk.version, missing):
                if file is not None:
                    yield file.close()
                current = (chunk.table_id, chunk.segment, chunk.version, missing)
                file = _File(work.directory, first, chunk.version, _schema(snapshot, missing))
            rows = changelog_rows(
                chunk,
                written=snapshot,
                carried=snapshot,
                schema=_physical(snapshot, missing),
                first_offset=first,
                system_time_us=work.system_time_us,
            )
            file.write(pa.table(rows.columns, schema=_schema(snapshot, missing)))
        if file is not None:
            yield file.close()

    return write


class _File:
    """One Parquet file, written beside its name and moved there when it is whole."""

    def __init__(self, directory: str, first_offset: int, version: int, schema: pa.Schema) -> None:
        self._system, root = located(directory)
        name = f"{first_offset:016d}-v{version}.parquet"
        self._path = f"{directory}/{name}"
        self._draft, self._final = f"{root}/_{name}", f"{root}/{name}"
        self._rows = 0
        with writing(self._path):
            self._system.create_dir(root, recursive=True)
            self._stream = self._system.open_output_stream(self._draft)
            self._writer = changelog_writer(self._stream, schema)

    def write(self, rows: pa.Table) -> None:
        """Adds rows, in order."""
        self._rows += rows.num_rows
        with writing(self._path):
            self._writer.write_table(rows)

    def close(self) -> int:
        """Puts the file in place; says how many rows it has."""
        with writing(self._path):
            self._writer.close()
            self._stream.close()
            self._system.move(self._draft, self._final)
        return self._rows


def _live_rows(work: Retraction) -> pa.Table:
    """The rows that the table's files amount to, as columns of the base schema by physical name."""
    names = [physical_name(column.id) for column in work.base.columns]
    files = [_open(system, path) for system, path in _paths(work)]
    key = work.base.primary_key
    if key and all(snapshot.primary_key == key for _, snapshot in files):
        fold: _Fold = _LastRows([physical_name(column_id) for column_id in key])
    else:
        fold = _Bag(names)
    for file, snapshot in files:
        missing = [name for name in MISSING_COLUMNS if name in file.schema_arrow.names]
        physical = _physical(snapshot, missing).names
        for batch in file.iter_batches(_BATCH_ROWS):
            lists = batch.column(ABSENT) if missing else pa.nulls(batch.num_rows)
            rows = batch.rename_columns(physical).drop_columns(missing)
            fold.add(project(rows, snapshot, work.base).append_column(_LACKS, lists.is_valid()))
    return fold.rows(names, _physical(work.base))


def _paths(work: Retraction) -> Iterator[tuple[pafs.FileSystem, str]]:
    system, root = located(work.directory)
    for info in sorted(
        system.get_file_info(pafs.FileSelector(root, allow_not_found=True)), key=lambda info: str(info.base_name)
    ):
        first = info.base_name.partition("-")[0]
        if first.isdigit() and work.live_from <= int(first) < work.upto:
            yield system, info.path


def _open(system: pafs.FileSystem, path: str) -> tuple[pq.ParquetFile, Snapshot]:
    with reading(path):
        file = pq.ParquetFile(system.open_input_file(path))
    return file, codec.load(Snapshot, file.schema_arrow.metadata[_SNAPSHOT])


class _Fold(Protocol):
    def add(self, rows: pa.RecordBatch) -> None: ...

    def rows(self, names: list[str], schema: pa.Schema) -> pa.Table: ...


class _LastRows:
    """The last row of each key. Of a correction +C says it all, so that -C may end a batch."""

    def __init__(self, key: Sequence[str]) -> None:
        self._key = key
        self._last: pa.Table | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        news = pa.Table.from_batches([rows])
        news = news.filter(pc.not_equal(news.column("op"), int(Op.CORRECT_FROM)))
        self._last = net_changes(news if self._last is None else pa.concat_tables([self._last, news]), self._key)

    def rows(self, names: list[str], schema: pa.Schema) -> pa.Table:
        if self._last is None:
            return schema.empty_table().select(names)
        live = self._last.filter(pc.not_equal(self._last.column("op"), int(Op.RETRACT)))
        _refuse_absent(live)
        return live.select(names)


class _Bag:
    """Each distinct row as often as it is there."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._counts: pa.Table | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        _refuse_absent(rows)
        news = fold_bag(rows, self._names)
        self._counts = news if self._counts is None else summed_bags(pa.concat_tables([self._counts, news]))

    def rows(self, names: list[str], schema: pa.Schema) -> pa.Table:
        if self._counts is None:
            return schema.empty_table().select(names)
        counts = np.maximum(self._counts.column(BAG_COUNT).to_numpy(), 0)
        return self._counts.select(names).take(pa.array(np.repeat(np.arange(len(counts)), counts)))


def _refuse_absent(rows: pa.RecordBatch | pa.Table) -> None:
    if pc.any(rows.column(_LACKS)).as_py():
        raise TableStopped(
            "a statement takes back rows that the changelog does not tell whole: columns of theirs are absent",
            expected=WHOLE_IMAGES,
            next_step="replicate the table into another directory, from the start",
        )


def _schema(snapshot: Snapshot, missing: Sequence[str] = ()) -> pa.Schema:
    """The schema of files: the version's own names, the columns' ids as field ids; *missing*: what tells of absent columns."""
    system = [pa.field(name, kind, False) for name, kind in zip(SYSTEM_COLUMNS, _SYSTEM_TYPES, strict=True)]
    system += [pa.field(name, NAMES_TYPE) for name in missing]
    data = [
        pa.field(column.name, arrow_type(column.type), True, {"PARQUET:field_id": str(column.id)})
        for column in snapshot.columns
    ]
    return pa.schema([*system, *data], metadata={_SNAPSHOT: codec.dump(Snapshot, snapshot).encode()})


def _physical(snapshot: Snapshot, missing: Sequence[str] = ()) -> pa.Schema:
    """The same by physical names."""
    schema = _schema(snapshot, missing)
    names = [*SYSTEM_COLUMNS, *missing, *(physical_name(column.id) for column in snapshot.columns)]
    return pa.schema([pa.field(name, field.type) for name, field in zip(names, schema, strict=True)])


def changelog_writer(stream: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of changelog rows: ``offset`` delta-packed, all else in dictionaries."""
    return pq.ParquetWriter(
        stream,
        schema,
        compression="zstd",
        use_dictionary=[field.name for field in schema if field.name != "offset"],
        column_encoding={"offset": "DELTA_BINARY_PACKED"},
        store_decimal_as_integer=True,
    )
