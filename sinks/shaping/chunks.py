"""The chunks of a plan as a lake with rules sees them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from historian.changelog.chunks import Chunk
from historian.changelog.missing_columns import lacking
from historian.errors import TableStopped
from sinks.contract.chunks import ChunkHead, Chunks
from sinks.contract.local_chunks import LocalChunks
from sinks.contract.spark_chunks import SparkChunks
from sinks.shaping.evaluation import Written, evaluated_chunks, evaluated_frame
from sinks.shaping.rows import WHOLE_ROWS, shaped_chunk, shaped_dead_letters
from sinks.shaping.tables import NEXT, TableShape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Evaluation", "ShapedChunks"]

_Result = TypeVar("_Result")


class Evaluation:
    """The shaped chunks of tables with expressions, and the tables whose expressions have no value for some row.

    Attributes:
        chunks: None: there are none.
        stops: by table id, why.
    """

    def __init__(self, spark: SparkSession, chunks: Chunks, shapes: Mapping[int, TableShape], written: Written) -> None:
        self.chunks: Chunks | None = None
        self.stops: dict[int, str] = {}
        self.close: Callable[[], Any] = lambda: None
        if shapes and isinstance(chunks, SparkChunks):
            self._on_executors(chunks.frame, shapes, written)
        elif shapes:
            self._here(spark, chunks, shapes, written)

    def _here(self, spark: SparkSession, chunks: Chunks, shapes: Mapping[int, TableShape], written: Written) -> None:
        taken = [chunk for chunk in chunks.map(_whole(shapes)) if chunk.rows.num_rows]
        found: list[Chunk] = []
        for table_id, shape in shapes.items():
            mine = [chunk for chunk in taken if chunk.table_id == table_id]
            with _Stopping(self.stops, table_id):
                found += list(evaluated_chunks(spark, mine, written, shape))
        local = LocalChunks()
        local.fill([lambda: found])
        self.chunks, self.close = local, local.close

    def _on_executors(self, chunks: DataFrame, shapes: Mapping[int, TableShape], written: Written) -> None:
        rows = chunks.where("stopped = '' and row_count > 0")
        frames = {
            number: evaluated_frame(rows.where(_is_whole(shape)), number, written, shape)
            for number, shape in shapes.items()
        }
        whole = reduce(_union, frames.values()).persist()
        failed: dict[int, str] = {}
        with _Stopping(failed, 0):
            whole.count()
        if failed:
            whole.unpersist()
            for number, frame in frames.items():
                with _Stopping(self.stops, number):
                    frame.count()
            frames = {number: frame for number, frame in frames.items() if number not in self.stops}
            if not frames:
                return
            whole = reduce(_union, frames.values()).persist()
        self.chunks, self.close = SparkChunks(whole), whole.unpersist


class ShapedChunks:
    """Chunks in the shape of the lake; implements :class:`sinks.contract.chunks.Chunks`.

    Args:
        chunks: the source's.
        shapes: of tables, by id.
        written: the schemas of their rows.
        hidden: ids of tables of which nothing is to be seen.
        evaluated: the chunks of tables with expressions, shaped.
    """

    def __init__(
        self,
        chunks: Chunks,
        shapes: Mapping[int, TableShape],
        written: Written,
        hidden: Collection[int],
        evaluated: Chunks | None,
    ) -> None:
        self._chunks = chunks
        self._shapes = shapes
        self._written = written
        self._hidden = frozenset(hidden)
        self._evaluated = evaluated

    @property
    def heads(self) -> tuple[ChunkHead, ...]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        heads = [*self._heads(), *(() if self._evaluated is None else self._evaluated.heads)]
        return tuple(sorted(heads, key=lambda head: head.sequence))

    @property
    def is_small(self) -> bool:
        """See :class:`sinks.contract.chunks.Chunks`."""
        return self._chunks.is_small and (self._evaluated is None or self._evaluated.is_small)

    def map(self, task: Callable[[Iterator[Chunk]], Iterable[_Result]], *, by_table: bool = False) -> list[_Result]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        found = self._chunks.map(_shaping(task, self._shapes, self._written, self._hidden), by_table=by_table)
        return found if self._evaluated is None else [*found, *self._evaluated.map(task, by_table=by_table)]

    def _heads(self) -> Iterator[ChunkHead]:
        for head in self._chunks.heads:
            shape = self._shapes.get(head.table_id)
            if head.table_id in self._hidden:
                continue
            if shape is None or head.stopped:
                yield head
            elif not shape.bindings.rules.has_expressions:
                lacks = tuple(number for number in head.missing if number not in shape.spared)
                yield replace(head, missing=lacks, dead_letters=shaped_dead_letters(head.dead_letters, shape))
            elif not shape.spared.issuperset(head.missing):
                yield replace(head, stopped=WHOLE_ROWS, row_count=0, operations="[]", dead_letters="")


class _Stopping:
    """Notes why a table stops where an expression of its has no value for a row."""

    def __init__(self, stops: dict[int, str], table_id: int) -> None:
        self._stops = stops
        self._table_id = table_id

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        from pyspark.errors import (
            ArithmeticException,
            ArrayIndexOutOfBoundsException,
            DateTimeException,
            NumberFormatException,
            SparkRuntimeException,
        )

        no_value = (
            ArithmeticException,
            ArrayIndexOutOfBoundsException,
            DateTimeException,
            NumberFormatException,
            SparkRuntimeException,
        )
        if not isinstance(error, no_value):
            return False
        stop = TableStopped(
            "an expression has no value for a row",
            expected="expressions with a value for every row, such as try_divide and try_cast give",
            # Spark's own message shows the value.
            found=error.getCondition(),
            next_step=NEXT,
        )
        self._stops[self._table_id] = str(stop)
        return True


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other)


def _whole(shapes: Mapping[int, TableShape]) -> Callable[[Iterator[Chunk]], Iterator[Chunk]]:
    spared = {number: shape.spared for number, shape in shapes.items()}
    return lambda chunks: (
        chunk for chunk in chunks if chunk.table_id in spared and spared[chunk.table_id].issuperset(lacking(chunk.rows))
    )


def _is_whole(shape: TableShape) -> str:
    spared = ", ".join(map(str, sorted(shape.spared)))
    return f"cardinality(array_except(missing, cast(array({spared}) as array<int>))) = 0"


def _shaping(
    task: Callable[[Iterator[Chunk]], Iterable[_Result]],
    shapes: Mapping[int, TableShape],
    written: Written,
    hidden: frozenset[int],
) -> Callable[[Iterator[Chunk]], Iterable[_Result]]:
    def shaped(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            shape = shapes.get(chunk.table_id)
            if shape is None and chunk.table_id not in hidden:
                yield chunk
            elif shape is not None and not shape.bindings.rules.has_expressions:
                yield shaped_chunk(chunk, written[chunk.table_id, chunk.version], shape)

    return lambda chunks: task(shaped(chunks))
