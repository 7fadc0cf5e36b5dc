"""Chunks of a plan that Spark's executors decode, and keep where they did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from historian.changelog.chunks import CHUNK_STREAM, NO_TABLE, Chunk, chunk_row
from historian.errors import LogCutOtherwise
from sinks.contract.chunks import ChunkHead, head_of
from sinks.contract.kept_chunks import Keeper, KeptChunks
from sinks.contract.spark_chunks import SparkChunks, keep_loaded

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["READ_CHUNKS", "ReadChunks"]

READ_CHUNKS = "chunks of a plan"
"""The name that Spark's pages and logs have for what executors decode."""

_TASK_BYTES = 64 << 20
_Result = TypeVar("_Result")
_Seen = dict[int, tuple[int, int, int, int, str]]
"""Of chunks of a part, by sequence: table, version, segment, rows, why the table stopped."""
_Look = tuple[int, tuple[ChunkHead, ...], KeptChunks | None]
"""The number of a part, the heads of its chunks, and where they are kept."""


class ReadChunks(SparkChunks):
    """Chunks that executors decode, and keep where they did: to send rows through Java and back costs several times as much.

    A later look at them is on the same executor, which has what it kept. Where that is gone, or it is another one, the part is read anew.
    Only where a table's rows have to come together, or rows are made others, they are rows of a DataFrame. Close it at the end.

    Args:
        spark: on whose executors.
        sizes: how much log each part is. A task takes parts that follow one another.
        read: the chunks of a part, by its number from 0. It pickles. Rows are numbered by what its first look tells, so each later one
            raises :class:`historian.errors.LogCutOtherwise` where it meets other chunks, as behind a failover.
        owner: whose parts they are. What executors keep of the last ones of the same is given up.
        keep: whether rows may lie on disks of executors.
    """

    def __init__(
        self,
        spark: SparkSession,
        sizes: Sequence[int],
        read: Callable[[int], Iterable[Chunk]],
        *,
        owner: str = "",
        keep: bool = True,
    ) -> None:
        self._spark = spark
        self._sizes = sizes
        self._read = read
        self._keeping = (owner, uuid4().bytes) if keep else None
        self._kept: DataFrame | None = None
        self._heads = None
        self._looks: RDD[_Look] | None = None
        self._parts = _Parts(read=read, seen={}, kept={})

    @property
    def frame(self) -> DataFrame:
        """The rows, which are kept until :meth:`close`."""
        if self._kept is None:
            from pyspark.sql.pandas.types import from_arrow_schema

            parts = self._looked_at()
            numbers = self._spark.range(0, len(self._sizes), 1, max(1, len(self._sizes)))
            self._kept = numbers.mapInArrow(_rows(parts), from_arrow_schema(CHUNK_STREAM)).persist()
        return self._kept

    @property
    def heads(self) -> tuple[ChunkHead, ...]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        if self._heads is None:
            looks = self._first_looks()
            found = [] if looks is None else _collected(looks)
            seen = {number: {head.sequence: _seen(head) for head in heads} for number, heads, _ in found}
            kept = {number: kept for number, _, kept in found if kept is not None}
            self._parts = _Parts(read=self._read, seen=seen, kept=kept)
            all_heads = (head for _, heads, _ in found for head in heads)
            self._heads = tuple(sorted(all_heads, key=lambda head: head.sequence))
        return self._heads

    def map(self, task: Callable[[Iterator[Chunk]], Iterable[_Result]], *, by_table: bool = False) -> list[_Result]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        if self._kept is not None or (by_table and not self.is_small):
            return super().map(task, by_table=by_table)
        parts, looks = self._looked_at(), self._first_looks()
        if looks is None:
            return list(task(iter(())))
        if self.is_small:
            looks = looks.coalesce(1)
            task = _by_table(task) if by_table else task
        parts = replace(parts, kept={})  # Each look brings its own.
        return _collected(looks.mapPartitions(partial(_looked_again, parts, task)))

    def close(self) -> None:
        """Frees the memory of executors."""
        held = [each for each in (self._kept, self._looks) if each is not None]
        self._kept = self._looks = None
        for each in held:
            # Where Spark has gone its memory has, too, and why it went is what the caller is to hear.
            with suppress(Exception):
                each.unpersist()

    def _first_looks(self) -> RDD[_Look] | None:
        """What the first look at each part told. Spark has later ones where it is, as long as it is there."""
        if self._looks is None and self._sizes:
            context = self._spark.sparkContext
            groups = _groups(self._sizes, context.defaultParallelism)
            look = partial(_looked, groups, self._read, self._keeping)
            looks = context.parallelize(range(len(groups)), len(groups)).mapPartitionsWithIndex(look)
            self._looks = looks.setName(READ_CHUNKS).persist()
        return self._looks

    def _looked_at(self) -> _Parts:
        """What reads a part as it was when its heads were told."""
        _ = self.heads
        return self._parts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Parts as the first look at them saw them, and where what it read is kept."""

    read: Callable[[int], Iterable[Chunk]]
    seen: Mapping[int, _Seen]
    kept: Mapping[int, KeptChunks]

    def chunks(self, number: int, kept: KeptChunks | None) -> Iterator[Chunk]:
        """Those of a part, which are *kept*, or are read."""
        opened = None if kept is None else kept.opened()
        return _checked(self.read(number) if opened is None else opened, self.seen, number)


def _groups(sizes: Sequence[int], slots: int) -> list[list[int]]:
    """Numbers of parts that each task takes: as few tasks as are busy at once, of up to so much log, one behind the other.

    >>> _groups([1, 1, 1, 1], 2)
    [[0, 1], [2, 3]]
    """
    total = sum(sizes)
    rounds = max(1, -(-total // (slots * _TASK_BYTES)))
    count = min(len(sizes), slots * rounds)
    groups: list[list[int]] = [[] for _ in range(count)]
    before = 0
    for number, size in enumerate(sizes):
        groups[min(count - 1, (2 * before + size) * count // max(1, 2 * total))].append(number)
        before += size
    return [group for group in groups if group]


def _collected(rows: RDD[_Result]) -> list[_Result]:
    """All rows. What a task raised in Python is raised with its text alone, without Java's."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PythonException
    from pyspark.errors.exceptions.captured import convert_exception

    try:
        return rows.collect()
    except Py4JJavaError as error:
        cause = error.java_exception.getCause()
        converted = None if cause is None else convert_exception(cause)
        if not isinstance(converted, PythonException):
            raise  # Its whole text says whether it may pass.
        raise converted from None


def _seen(chunk: ChunkHead) -> tuple[int, int, int, int, str]:
    return chunk.table_id, chunk.version, chunk.segment, chunk.row_count, chunk.stopped


def _checked(chunks: Iterable[Chunk], seen: Mapping[int, _Seen], number: int) -> Iterator[Chunk]:
    left = dict(seen.get(number, {}))
    for chunk in chunks:
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


def _looked(
    groups: Sequence[Sequence[int]],
    read: Callable[[int], Iterable[Chunk]],
    keeping: tuple[str, bytes] | None,
    task: int,
    _: Iterable[object],
) -> Iterator[_Look]:
    for number in groups[task]:
        keeper = None if keeping is None else Keeper(*keeping)
        heads = []
        for chunk in read(number):
            heads.append(head_of(chunk))
            if keeper is not None:
                keeper.add(chunk)
        yield number, tuple(heads), None if keeper is None else keeper.kept()
    keep_loaded("heads")


def _looked_again(
    parts: _Parts, task: Callable[[Iterator[Chunk]], Iterable[_Result]], looks: Iterable[_Look]
) -> Iterator[_Result]:
    chunks = (chunk for number, _, kept in looks for chunk in parts.chunks(number, kept))
    yield from task(chunk for chunk in chunks if not (chunk.stopped or chunk.table_id == NO_TABLE))
    keep_loaded("read")


def _rows(parts: _Parts) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    return lambda batches: (
        chunk_row(chunk)
        for batch in batches
        for number in batch.column("id").to_pylist()
        for chunk in parts.chunks(number, parts.kept.get(number))
    )


def _by_table(task: Callable[[Iterator[Chunk]], Iterable[_Result]]) -> Callable[[Iterator[Chunk]], Iterable[_Result]]:
    """Called with chunks of a plan that is small, a table's behind another's."""
    return lambda chunks: task(iter(sorted(chunks, key=lambda chunk: (chunk.table_id, chunk.sequence))))
