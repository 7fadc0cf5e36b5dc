"""Rows that are copied, SELECTed by Spark's executors: each takes one of the connections that `source.backfill` allows.

The driver brings the rows back to the plan's end and stores them with the plan. It reads the log for that behind all SELECTs, so one
that an executor had to make again is no later than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from connectors.backfill.selecting import ByThreads, Failures, PieceSelects
from connectors.backfill.snapshots import NotVisible, VisibleLog
from connectors.backfill.splits import Piece, groups
from connectors.backfill.spool import Spool, chunk_of
from connectors.readers.binlog.selected.failures import SelectInterrupted, TableChanged
from connectors.readers.binlog.transport.connection import ConnectionLost
from historian.errors import SourceError
from historian.plans.key_ranges import KeyRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.changelog.chunks import Chunk

__all__ = ["OnExecutors"]

_FOUND = pa.schema([("failure", pa.string()), ("table_id", pa.int64()), ("body", pa.binary())])
"""A chunk, or a failure of that name: of a table, or without an id of all."""
_FAILURES: dict[str, type[SourceError]] = {
    kind.__name__: kind for kind in (TableChanged, SelectInterrupted, NotVisible, ConnectionLost, SourceError)
}


@dataclass(frozen=True, slots=True)
class OnExecutors:
    """Makes SELECTs as :class:`connectors.backfill.selecting.Selects` says, by as many tasks as there may be ``connections``."""

    spark: SparkSession
    connections: int

    def __call__(self, selects: PieceSelects, pieces: Sequence[Piece], add: Callable[[Chunk], None]) -> list[Failures]:
        """See :class:`connectors.backfill.selecting.Selects`.

        Raises:
            ConnectionLost: the source does not answer an executor.
            SourceError: it refuses a SELECT.
        """
        # Of a whole table nobody knows how large it is, and what a task gives goes through the driver's memory at once.
        whole = [piece for piece in pieces if piece.range == KeyRange()]
        failures = list(ByThreads(self.connections)(selects, whole, add))
        dealt = list(groups([piece for piece in pieces if piece.range != KeyRange()], self.connections))
        return [*failures, *self._by_tasks(selects, dealt, add)] if dealt else failures

    def _by_tasks(
        self, selects: PieceSelects, dealt: Sequence[Sequence[Piece]], add: Callable[[Chunk], None]
    ) -> list[Failures]:
        from pyspark.sql.pandas.types import from_arrow_schema

        tasks = self.spark.range(0, len(dealt), 1, len(dealt))
        found = tasks.mapInArrow(partial(_selected, selects.elsewhere(), dealt), from_arrow_schema(_FOUND)).persist()
        try:
            found.count()  # Rows are taken from one task after the other, and all of them are to work at once.
            failures: list[Failures] = []
            for row in found.toLocalIterator():
                if not row.failure:
                    add(chunk_of(row.body))
                    continue
                failure = _FAILURES[row.failure](row.body.decode())
                if row.table_id is None:
                    raise failure
                failures.append({row.table_id: failure})
        finally:
            found.unpersist()
        return failures


def _selected(
    selects: PieceSelects, dealt: Sequence[Sequence[Piece]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for index in batch.column("id").to_pylist():
            with closing(Spool()) as spool:
                try:
                    failures = selects.read(dealt[index], spool.add, VisibleLog())
                except SourceError as error:
                    # Spark would hand on no more than its text, behind some tries.
                    yield _failed(None, error)
                    continue
                for body in spool:
                    yield _row("", None, body)
            for table_id, failure in failures.items():
                yield _failed(table_id, failure)


def _failed(table_id: int | None, failure: SourceError) -> pa.RecordBatch:
    kind = next(name for name, kind in _FAILURES.items() if isinstance(failure, kind))
    return _row(kind, table_id, str(failure).encode())


def _row(failure: str, table_id: int | None, body: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"failure": [failure], "table_id": [table_id], "body": [body]}, schema=_FOUND)
