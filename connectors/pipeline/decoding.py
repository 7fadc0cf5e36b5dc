"""A plan's rows, decoded in the driver's process or on executors.

On one machine threads of the driver do it: kernels and Parquet's encoders leave the interpreter to each other. A Python
process of Spark's costs its start and a copy of every chunk through the JVM. On a cluster a plan of little log is the driver's
too; executors take the others. They count rows when they decode them, and keep them until they are written.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from connectors.backfill.forwarding import forwarded_chunks
from connectors.backfill.keys.coverage import KeyQuestions
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.tracking.ranges import SEQUENCE_BITS
from historian.changelog.chunks import Chunk
from historian.plans.plans import Plan, PlannedRange, PlannedTable, has_unread
from sinks.contract.local_chunks import LocalChunks
from sinks.late_session import master_of, tasks_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.readers.base import CachedLog, Reader
    from sinks.contract.chunks import Chunks

__all__ = ["PlannedLog", "decoded", "decoded_ahead", "is_local"]

_DRIVERS_BYTES = 8 << 20
"""On a cluster the driver decodes plans of up to so much log."""

_ENCRYPTED = "spark.io.encryption.enabled"
"""Where it is true, no rows lie on disks of executors as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLog:
    """A plan, and of each of its ranges the log that its scan has cached; see :meth:`connectors.readers.base.Reader.cached`.

    Attributes:
        cached: parts that a range has in memory are gone once they are decoded.
        copied: gives the rows that it copies from the source.
        chunks: all its rows, where they were decoded ahead, in so many seconds; ``close`` frees them.
    """

    plan: Plan
    cached: tuple[Sequence[CachedLog] | None, ...]
    copied: Callable[[], Iterable[Chunk]] | None = None
    chunks: LocalChunks | None = None
    decode_s: float = 0.0

    @classmethod
    def of(cls, plan: Plan, reader: Reader, copied: Callable[[], Iterable[Chunk]] | None = None) -> PlannedLog:
        """*plan*, whose log *reader* scanned last, and forgets."""
        cached = tuple(reader.cached(planned) for planned in plan.ranges)
        reader.forget()
        return cls(plan=plan, cached=cached, copied=copied)

    def close(self) -> None:
        """Frees rows that were decoded ahead."""
        if self.chunks is not None:
            self.chunks.close()

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
    if planned.chunks is not None:
        yield planned.chunks
        return
    if executors is None:
        size = sum(each.size_bytes for each in planned.plan.ranges)
        executors = not is_local(spark) and size > _DRIVERS_BYTES and not planned.copies
    with _on_executors(planned, reader, spark) if executors else closing(_in_driver(planned, reader, spark)) as made:
        yield made


def decoded_ahead(planned: PlannedLog, reader: Reader, spark: SparkSession, gives_up: Callable[[], bool]) -> PlannedLog:
    """*planned* with its chunks, where threads of this process decode the log; its cached log is given up then.

    Without them where that is not so, or it *gives_up*, which is asked between chunks. Raises what :func:`decoded` does.
    """
    if not is_local(spark) or planned.copies or not (planned.plan.tables or has_unread(planned.plan)):
        return planned
    begun_s = time.monotonic()
    chunks = _in_driver(planned, reader, spark, gives_up)
    read = replace(planned, cached=tuple(None for _ in planned.cached))
    if gives_up():
        chunks.close()
        return read
    return replace(read, chunks=chunks, decode_s=time.monotonic() - begun_s)


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


def _ranges(planned: PlannedLog, reader: Reader) -> list[_Range]:
    plan = planned.plan
    return [
        _Range(reader=reader, planned=planned_range, tables=plan.tables, index=index, log=log)
        for index, (planned_range, log) in enumerate(zip(plan.ranges, planned.cached, strict=True))
    ]


def _in_driver(
    planned: PlannedLog, reader: Reader, spark: SparkSession, gives_up: Callable[[], bool] = lambda: False
) -> LocalChunks:
    """All chunks, or some where it *gives_up*. Close them at the end."""
    chunks = LocalChunks(threads=tasks_of(spark) if is_local(spark) else 1)
    copied = [] if planned.copied is None else [planned.copied]
    sources: list[Callable[[], Iterable[Chunk]]] = [*(each.chunks for each in _ranges(planned, reader)), *copied]
    try:
        chunks.fill([partial(_up_to, gives_up, source) for source in sources])
    except BaseException:
        chunks.close()
        raise
    return chunks


def _up_to(gives_up: Callable[[], bool], source: Callable[[], Iterable[Chunk]]) -> Iterator[Chunk]:
    return takewhile(lambda _: not gives_up(), source())


@contextmanager
def _on_executors(planned: PlannedLog, reader: Reader, spark: SparkSession) -> Iterator[Chunks]:
    from sinks.contract.read_chunks import ReadChunks

    # To read the log again costs less than to send it along.
    reads = [replace(each, log=None) for each in _ranges(planned, reader)]
    sizes = [each.planned.size_bytes for each in reads]
    owner, keep = planned.plan.connector, not _is_encrypted(spark)
    with closing(ReadChunks(spark, sizes, partial(_chunks_of, reads), owner=owner, keep=keep)) as chunks:
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
