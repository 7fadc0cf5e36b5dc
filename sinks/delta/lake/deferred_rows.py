"""Rows of a changelog read back as the chunks that they came in: by offset, wherever compaction may have put them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS, physical_name
from historian.errors import ChainBroken
from historian.plans.plans import PlannedVersion
from historian.values.arrow_types import arrow_type
from sinks.contract.chunks import ChunkHead, Chunks
from sinks.contract.decisions import Decisions
from sinks.contract.locations import TableLocation
from sinks.contract.storage import located
from sinks.delta.lake.deferral import DEFERRED_SEGMENT
from sinks.delta.log.commits import HeldFile
from sinks.delta.log.table_view import TableView
from sinks.delta.log.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CHUNK_ROWS", "DeferredChunks", "DeferredRows", "rows_between"]

_Result = TypeVar("_Result")

CHUNK_ROWS = 1 << 20
"""Rows of one chunk; a file is read once for each chunk that it has rows of, and of it only the row groups that have some."""

_IN_MEMORY = 4
"""So many times larger than in a file rows may be in memory."""

_SYSTEM = {
    "offset": pa.int64(),
    "schema_version": pa.int64(),
    **{field.name: field.type for field in CHUNK_COLUMNS if field.name in ("op", "event_time")},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredRows:
    """Consecutive rows of a changelog, all under one version, that make one chunk.

    Attributes:
        first, last: offsets.
        paths: files that can hold some of them.
        size_bytes: about as much as they take in memory.
        columns: names in the chunk, names in files ("" for none) and types of the version's columns.
    """

    table_id: int
    version: int
    sequence: int
    first: int
    last: int
    paths: tuple[str, ...]
    size_bytes: int
    columns: tuple[tuple[str, str, pa.DataType], ...]

    @property
    def rows(self) -> int:
        """How many."""
        return self.last - self.first + 1

    def head(self) -> ChunkHead:
        """The chunk's head."""
        return ChunkHead(
            table_id=self.table_id,
            version=self.version,
            segment=DEFERRED_SEGMENT,
            sequence=self.sequence,
            row_count=self.rows,
            operations="[]",
            size_bytes=self.size_bytes,
            nulled="",
            stopped="",
            missing=(),
            dead_letters="",
        )

    def chunk(self) -> Chunk:
        """The rows in order of offset.

        Raises:
            ChainBroken: the changelog does not have every one of them, once, under the version.
        """
        names = {*_SYSTEM, *(file for _, file, _ in self.columns if file)}
        found = [rows for path in self.paths for rows in self._read(path, names)]
        table = (
            pa.concat_tables(found, promote_options="default")
            if found
            else pa.table({"offset": pa.array([], pa.int64())})
        )
        offsets = table.column("offset").to_numpy()
        if len(offsets) and (np.diff(offsets) < 0).any():
            table = table.sort_by("offset")
            offsets = table.column("offset").to_numpy()
        if not np.array_equal(offsets, np.arange(self.first, self.last + 1)):
            raise self._broken(f"{len(offsets)} rows, {len(np.unique(offsets))} offsets")
        versions = pc.unique(table.column("schema_version")).to_pylist()
        if versions != [self.version]:
            raise self._broken(f"rows of versions {versions}")
        arrays = [table.column(name).combine_chunks() for name in ("op", "event_time")]
        for _, file, kind in self.columns:
            lacks = file not in table.schema.names
            arrays.append(pa.nulls(self.rows, kind) if lacks else table.column(file).combine_chunks())
        names_there = ["op", "event_time", *(name for name, _, _ in self.columns)]
        return Chunk(
            table_id=self.table_id,
            version=self.version,
            segment=DEFERRED_SEGMENT,
            sequence=self.sequence,
            file="",
            first_position="",
            last_position="",
            sources=(),
            rows=pa.RecordBatch.from_arrays(arrays, names_there),
        )

    def _read(self, path: str, names: set[str]) -> Iterator[pa.Table]:
        system, place = located(path)
        with system.open_input_file(place) as stream:
            file = pq.ParquetFile(stream)
            held = [name for name in file.schema_arrow.names if name in names]
            groups = [number for number in range(file.num_row_groups) if self._meets(file.metadata.row_group(number))]
            if groups:
                rows = file.read_row_groups(groups, held)
                offset = rows.column("offset")
                mine = pc.and_(pc.greater_equal(offset, self.first), pc.less_equal(offset, self.last))
                yield self._typed(rows.filter(mine))

    def _typed(self, rows: pa.Table) -> pa.Table:
        """The chunk's *rows* in a file with the types that they had in the log; one written anew has those that came later."""
        kinds = _SYSTEM | {file: kind for _, file, kind in self.columns}
        return rows.cast(pa.schema([(name, kinds[name]) for name in rows.schema.names]))

    def _meets(self, group: Any) -> bool:
        for at in range(group.num_columns):
            column = group.column(at)
            if column.path_in_schema == "offset":
                told = column.statistics
                return told is None or not told.has_min_max or (told.min <= self.last and self.first <= told.max)
        return True

    def _broken(self, found: str) -> ChainBroken:
        return ChainBroken(
            "a changelog does not have the rows that other targets of its table are to apply",
            where=self.paths[0].rpartition("/")[0] if self.paths else f"table id {self.table_id}",
            expected=f"the offsets {self.first} to {self.last} of version {self.version}, each once",
            found=found,
            next_step="restore the changelog as it was, or replicate the table into another lake, from the start",
        )


def rows_between(
    view: TableView, location: TableLocation, version: PlannedVersion, offsets: range, *, sequence: int
) -> tuple[DeferredRows, ...]:
    """The rows of a changelog with *offsets*, in order, cut into chunks.

    Args:
        view: of the changelog.
        location: of the table.
        version: of all the rows.
        sequence: of the first chunk; the others follow.
    """
    held = set(view.schema().arrow().names)
    files = [(file, _bounds(file)) for file in view.files_from("offset", offsets.start)]
    columns = _columns(location, version, held)
    found: list[DeferredRows] = []
    for first in range(offsets.start, offsets.stop, CHUNK_ROWS):
        last = min(first + CHUNK_ROWS, offsets.stop) - 1
        mine = [(file, rows) for file, (low, high, rows) in files if low <= last and first <= high]
        size_bytes = sum(file.size_bytes * min(last - first + 1, rows) // rows for file, rows in mine)
        found.append(
            DeferredRows(
                table_id=location.table_id,
                version=version.version,
                sequence=sequence + len(found),
                first=first,
                last=last,
                paths=tuple(file.path for file, _ in mine),
                size_bytes=size_bytes * _IN_MEMORY,
                columns=columns,
            )
        )
    return tuple(found)


def _columns(
    location: TableLocation, version: PlannedVersion, held: set[str]
) -> tuple[tuple[str, str, pa.DataType], ...]:
    """Targets may have a column under another id, or not at all; chunks have it under its own."""
    snapshot = version.snapshot
    assert snapshot is not None  # noqa: S101 rows were written under it
    shown = Decisions.parse(location.evolved).shown(snapshot, version.version, whole=True)
    pairs = [
        (physical_name(own.id), physical_name(there.id), arrow_type(own.type))
        for own, there in zip(snapshot.columns, shown.columns, strict=True)
    ]
    return tuple((name, file if file in held else "", kind) for name, file, kind in pairs)


def _bounds(file: HeldFile) -> tuple[int, int, int]:
    """Least and greatest offset that a file can have, and how many rows it has, at least one."""
    statistics = json.loads(file.statistics)
    low, high = (statistics.get(side, {}).get("offset") for side in ("minValues", "maxValues"))
    rows = max(1, int(statistics.get("numRecords", 1)))
    return (0 if low is None else int(low), np.iinfo(np.int64).max if high is None else int(high), rows)


class DeferredChunks(Chunks):
    """Chunks that are read when they are asked for."""

    def __init__(self, spark: SparkSession, rows: Sequence[DeferredRows]) -> None:
        self._spark = spark
        self._rows = tuple(sorted(rows, key=lambda one: one.sequence))

    @property
    def heads(self) -> tuple[ChunkHead, ...]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        return tuple(rows.head() for rows in self._rows)

    def map(self, task: Callable[[Iterator[Chunk]], Iterable[_Result]], *, by_table: bool = False) -> list[_Result]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        if self.is_small:
            return list(task(rows.chunk() for rows in self._rows))
        tables: dict[int, list[DeferredRows]] = {}
        for rows in self._rows:
            tables.setdefault(rows.table_id if by_table else rows.sequence, []).append(rows)
        answers = run_tasks(self._spark, [partial(_answered, task, group) for group in tables.values()])
        return [result for answer in answers for result in pickle.loads(answer)]  # noqa: S301 made here


def _answered(task: Callable[[Iterator[Chunk]], Iterable[_Result]], group: Sequence[DeferredRows]) -> bytes:
    return pickle.dumps(list(task(rows.chunk() for rows in group)))
