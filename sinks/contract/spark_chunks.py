"""Chunks of a plan on Spark's executors, as rows of a DataFrame."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from historian.changelog.chunks import NO_TABLE, Chunk, chunks_of
from sinks.contract.chunks import ChunkHead, Chunks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkChunks", "keep_loaded"]

_Result = TypeVar("_Result")
_RESULT = "result binary"


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


@cache
def keep_loaded(kind: str) -> None:  # noqa: ARG001 once for each, which loads modules of its own
    """Leaves what this process has loaded out of collections from now on.

    PySpark's workers collect garbage behind each task, before they take the next one. All modules and kernels among it, that takes 0.1 s and more.
    """
    gc.collect()
    gc.freeze()


def _pickled(
    task: Callable[[Iterator[Chunk]], Iterable[_Result]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for result in task(chunk for batch in batches for chunk in chunks_of(batch)):
            yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})
        keep_loaded("kept")

    return run
