"""A plan's rows, decoded in the driver's process or on executors.

On one machine threads of the driver do it: kernels and Parquet's encoders leave the interpreter to each other. A Python
process of Spark's costs its start and a copy of every chunk through the JVM. On a cluster a plan of little log is the driver's
too; executors take the others. They count rows when they decode them, and keep them until they are written.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from connectors.backfill.forwarding import forwarded_chunks
from connectors.backfill.keys.coverage import KeyQuestions
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.tracking.ranges import SEQUENCE_BITS
from historian.changelog.chunks import Chunk
from historian.plans.plans import Plan, PlannedRange, PlannedTable
from sinks.contract.local_chunks import LocalChunks
from sinks.late_session import master_of, tasks_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.readers.base import CachedLog, Reader
    from sinks.contract.chunks import Chunks

__all__ = ["PlannedLog", "decoded", "is_local"]

_DRIVERS_BYTES = 8 << 20
"""On a cluster the driver decodes plans of up to so much log."""

_ENCRYPTED = "spark.io.encryption.enabled"
"""Where it is true, no rows lie on disks of executors as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLog:
    """A plan, and of each of its ranges the log that its scan has cached; see :meth:`connectors.readers.base.Reader.cached`."""

    plan: Plan
    cached: tuple[Sequence[CachedLog] | None, ...]
    copied: Callable[[], Iterable[Chunk]] | None = None

    @classmethod
    def of(cls, plan: Plan, reader: Reader, copied: Callable[[], Iterable[Chunk]] | None = None) -> PlannedLog:
        """*plan*, whose log *reader* scanned last; *copied* gives the rows that it copies from the source."""
        return cls(plan=plan, cached=tuple(reader.cached(planned) for planned in plan.ranges), copied=copied)

    @property
    def copies(self) -> bool:
        """Whether tables are copied with it, or will be."""
        return any(table.copy is not None for table in self.plan.tables)


@contextmanager
def decoded(
    planned: PlannedLog, reader: Reader, spark: SparkSession, *, executors: bool | None = None
) -> Iterator[Chunks]:
    """The chunks of a plan, to be used inside the ``with``.

    Args:
        planned: the plan with the cached parts of its log.
        reader: of the log; each thread and executor has one of its own.
        executors: whether they decode; by default where there are some on other machines and the log is long.

    Raises:
        HistorianError: the log cannot be read as planned; on executors within Spark's error.
    """
    reads = [
        _Range(reader=reader, planned=planned_range, tables=planned.plan.tables, index=index, log=log)
        for index, (planned_range, log) in enumerate(zip(planned.plan.ranges, planned.cached, strict=True))
    ]
    if executors is None:
        size = sum(each.planned.size_bytes for each in reads)
        executors = not is_local(spark) and size > _DRIVERS_BYTES and not planned.copies
    if executors:
        reads = [replace(each, log=None) for each in reads]  # To read it again costs less than to send it along.
    connector = planned.plan.connector
    with _on_executors(reads, spark, connector) if executors else _in_driver(reads, spark, planned.copied) as chunks:
        yield chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """One range of a plan with all that reads it."""

    reader: Reader
    planned: PlannedRange
    tables: tuple[PlannedTable, ...]
    index: int
    log: Sequence[CachedLog] | None

    def chunks(self) -> Iterator[Chunk]:
        """Its chunks, read by a reader of their own."""
        # Copied as it pickles: without its connections.
        with closing(copy.copy(self.reader)) as reader:
            chunks = reader.read(
                self.planned, self.tables, sequence=self.index << SEQUENCE_BITS, stops=True, log=self.log
            )
            if any(table.copy is not None for table in self.tables) and isinstance(reader, BinlogServerReader):
                with closing(KeyQuestions(reader.address)) as ask:
                    yield from forwarded_chunks(chunks, self.tables, reader.flavor, ask)
            else:
                yield from chunks


@contextmanager
def _in_driver(
    reads: Sequence[_Range], spark: SparkSession, copied: Callable[[], Iterable[Chunk]] | None
) -> Iterator[Chunks]:
    with closing(LocalChunks(threads=tasks_of(spark) if is_local(spark) else 1)) as chunks:
        chunks.fill([*(each.chunks for each in reads), *([] if copied is None else [copied])])
        yield chunks


@contextmanager
def _on_executors(reads: Sequence[_Range], spark: SparkSession, connector: str) -> Iterator[Chunks]:
    from sinks.contract.read_chunks import ReadChunks

    sizes = [each.planned.size_bytes for each in reads]
    keep = not _is_encrypted(spark)
    with closing(ReadChunks(spark, sizes, partial(_chunks_of, reads), owner=connector, keep=keep)) as chunks:
        yield chunks


def _is_encrypted(spark: SparkSession) -> bool:
    """Spark, too, takes the word in any case."""
    return str(spark.sparkContext.getConf().get(_ENCRYPTED, "false")).strip().lower() == "true"


def _chunks_of(reads: Sequence[_Range], index: int) -> Iterator[Chunk]:
    return reads[index].chunks()


def is_local(spark: SparkSession) -> bool:
    """Whether Spark's tasks run in the driver's own process."""
    master = master_of(spark)
    return master == "local" or master.startswith("local[")
