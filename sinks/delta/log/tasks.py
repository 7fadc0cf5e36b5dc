"""Calls that Spark's executors make for a sink, which need no rows of Spark's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run_tasks"]

_ANSWER = pa.schema([("answer", pa.binary())])


def run_tasks(spark: SparkSession, calls: Sequence[Callable[[], bytes]]) -> list[bytes]:
    """What *calls* give, in any order, each made by a task of one Spark job; they travel by pickle and may be made twice."""
    if not calls:
        return []

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.record_batch([pa.array([calls[number]()], pa.binary())], schema=_ANSWER)

    numbers = spark.range(0, len(calls), 1, len(calls))
    return [bytes(row.answer) for row in numbers.mapInArrow(answer, "answer binary").collect()]
