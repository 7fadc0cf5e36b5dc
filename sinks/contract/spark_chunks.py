"""Chunks of a plan on Spark's executors, as rows of a DataFrame."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from historian.changelog.chunks import CHUNK_STREAM, NO_TABLE, Chunk, chunk_row, chunks_of
from historian.errors import LogCutOtherwise
from sinks.contract.chunks import ChunkHead, Chunks, head_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ReadChunks", "SparkChunks"]

_Result = TypeVar("_Result")
_RESULT = "result binary"
_Seen = dict[int, tuple[int, int, int, int, str]]
"""Of chunks of a part, by sequence: table, version, segment, rows, why the table stopped."""


class SparkChunks(Chunks):
    """Chunks as :data:`historian.changelog.chunks.CHUNK_STREAM`.

    Args:
        frame: persisted by the caller, since it is gone through more than once.
    """

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self._heads: tuple[ChunkHead, ...] | None = None

    @property
    def frame(self) -> DataFrame:
        """The rows."""
        return self._frame

    @property
    def heads(self) -> tuple[ChunkHead, ...]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        if self._heads is None:
            from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

            names = [name for name in ChunkHead.__dataclass_fields__ if name != "size_bytes"]
            told = self._frame.select(*names, F.length("rows").alias("size_bytes")).collect()
            heads = (ChunkHead(**{**row.asDict(), "missing": tuple(row.missing)}) for row in told)
            self._heads = tuple(sorted(heads, key=lambda head: head.sequence))
        return self._heads

    def map(self, task: Callable[[Iterator[Chunk]], Iterable[_Result]], *, by_table: bool = False) -> list[_Result]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        frame = self.frame.where(f"stopped = '' AND table_id != {NO_TABLE}")
        if self.is_small:
            frame = frame.coalesce(1)
        elif by_table:
            frame = frame.repartition("table_id")
        if by_table:
            frame = frame.sortWithinPartitions("table_id", "sequence")
        return [pickle.loads(row.result) for row in frame.mapInArrow(_pickled(task), _RESULT).collect()]  # noqa: S301 made here


class ReadChunks(SparkChunks):
    """Chunks that executors read, anew for each look at them: to send rows through Java and back costs several times as much.

    Only where a table's rows have to come together, or rows are made others, they are rows of a DataFrame, read once and kept. Close it at the end.

    Args:
        spark: on whose executors.
        parts: how many parts there are, each one task's.
        read: the chunks of a part, by its number from 0. It pickles. Rows are numbered by what its first look tells, so each later one
            raises :class:`historian.errors.LogCutOtherwise` where it meets other chunks, as behind a failover.
    """

    def __init__(self, spark: SparkSession, parts: int, read: Callable[[int], Iterable[Chunk]]) -> None:
        self._spark = spark
        self._parts = parts
        self._read = read
        self._kept: DataFrame | None = None
        self._heads = None
        self._seen: dict[int, _Seen] = {}

    @property
    def frame(self) -> DataFrame:
        """The rows, which are kept until :meth:`close`."""
        if self._kept is None:
            from pyspark.sql.pandas.types import from_arrow_schema

            rows = self._numbers(self._parts).mapInArrow(_rows(self._again()), from_arrow_schema(CHUNK_STREAM))
            self._kept = rows.persist()
        return self._kept

    @property
    def heads(self) -> tuple[ChunkHead, ...]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        if self._heads is None:
            found = self._numbers(self._parts).mapInArrow(_numbered_heads(self._read), _RESULT).collect()
            numbered: list[tuple[int, ChunkHead]] = [pickle.loads(row.result) for row in found]  # noqa: S301 made here
            for number, head in numbered:
                self._seen.setdefault(number, {})[head.sequence] = _seen(head)
            self._heads = tuple(sorted((head for _, head in numbered), key=lambda head: head.sequence))
        return self._heads

    def map(self, task: Callable[[Iterator[Chunk]], Iterable[_Result]], *, by_table: bool = False) -> list[_Result]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        if self._kept is not None or (by_table and not self.is_small):
            return super().map(task, by_table=by_table)
        if not self.is_small:
            return self._called(self._parts, task)
        return self._called(1, _by_table(task) if by_table else task)

    def close(self) -> None:
        """Frees the memory of executors."""
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None

    def _numbers(self, tasks: int) -> DataFrame:
        return self._spark.range(0, self._parts, 1, max(1, tasks))

    def _again(self) -> Callable[[int], Iterable[Chunk]]:
        """What reads a part as it was when its heads were told."""
        _ = self.heads
        return partial(_checked, self._read, self._seen)

    def _called(self, tasks: int, task: Callable[[Iterator[Chunk]], Iterable[_Result]]) -> list[_Result]:
        """What *task* gives, called in so many tasks."""
        found = self._numbers(tasks).mapInArrow(_reading(self._again(), task), _RESULT).collect()
        return [pickle.loads(row.result) for row in found]  # noqa: S301 made here


def _seen(chunk: ChunkHead) -> tuple[int, int, int, int, str]:
    return chunk.table_id, chunk.version, chunk.segment, chunk.row_count, chunk.stopped


def _checked(read: Callable[[int], Iterable[Chunk]], seen: Mapping[int, _Seen], number: int) -> Iterator[Chunk]:
    left = dict(seen.get(number, {}))
    for chunk in read(number):
        found = chunk.table_id, chunk.version, chunk.segment, chunk.rows.num_rows, chunk.stopped
        expected = left.pop(chunk.sequence, None)
        if found != expected:
            raise _cut_otherwise(number, expected, found)
        yield chunk
    if left:
        raise _cut_otherwise(number, next(iter(left.values())), None)


def _cut_otherwise(number: int, expected: object, found: object) -> LogCutOtherwise:
    return LogCutOtherwise(
        "the log was cut otherwise when rows were written than when they were counted",
        where=f"range {number} of the plan",
        expected=f"table, version, segment, rows, stop {expected}",
        found=found,
    )


def _numbered_heads(
    read: Callable[[int], Iterable[Chunk]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    return lambda batches: _results(
        ((number, head_of(chunk)) for number in _listed(batches) for chunk in read(number)), "heads"
    )


def _reading(
    read: Callable[[int], Iterable[Chunk]], task: Callable[[Iterator[Chunk]], Iterable[_Result]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chunks = (chunk for number in _listed(batches) for chunk in read(number))
        wanted = (chunk for chunk in chunks if not (chunk.stopped or chunk.table_id == NO_TABLE))
        yield from _results(task(wanted), "read")

    return run


def _rows(
    read: Callable[[int], Iterable[Chunk]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    return lambda batches: (chunk_row(chunk) for number in _listed(batches) for chunk in read(number))


def _by_table(task: Callable[[Iterator[Chunk]], Iterable[_Result]]) -> Callable[[Iterator[Chunk]], Iterable[_Result]]:
    """Called with chunks of a plan that is small, a table's behind another's."""
    return lambda chunks: task(iter(sorted(chunks, key=lambda chunk: (chunk.table_id, chunk.sequence))))


def _listed(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column("id").to_pylist()


def _results(results: Iterable[object], kind: str) -> Iterator[pa.RecordBatch]:
    for result in results:
        yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})
    _keep_loaded(kind)


@cache
def _keep_loaded(kind: str) -> None:  # noqa: ARG001 once for each, which loads modules of its own
    """Leaves what this process has loaded out of collections from now on.

    PySpark's workers collect garbage behind each task, before they take the next one. All modules and kernels among it, that takes 0.1 s and more.
    """
    gc.collect()
    gc.freeze()


def _pickled(
    task: Callable[[Iterator[Chunk]], Iterable[_Result]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _results(task(chunk for batch in batches for chunk in chunks_of(batch)), "kept")

    return run
