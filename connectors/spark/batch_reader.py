"""Reads everything between two positions, planned at ``load()``.

The reader objects travel between processes: what they build is made again in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from connectors.spark.finding import stream_table, table_of_range
from connectors.spark.partitions import RangePartition, partitions_of, read_partition
from connectors.spark.pushdown import Predicate, predicates_of
from connectors.spark.quiet import plain_errors
from historian.errors import TableStopped

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.spark.options import SourceOptions
    from connectors.spark.typed_tables import TypedTable

__all__ = ["BatchReader", "Prepared", "prepared_read"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What ``load()`` has found out: the typed table, and of a batch read its partitions, or why there are none."""

    typed: TypedTable
    partitions: list[RangePartition] | None = None
    stopped: TableStopped | None = None


def prepared_read(options: SourceOptions) -> Prepared:
    """Plans a batch read, in memory, or finds the table of a stream."""
    if options.name is not None:
        with closing(options.tracker()) as tracker:
            return Prepared(stream_table(options, tracker))
    with options.batch() as (tracker, begin, plans):
        typed = table_of_range(options, tracker, begin=begin)
        try:
            return Prepared(typed, [part for plan in plans for part in partitions_of(plan, tracker, typed)])
        except TableStopped as error:
            # The schema can be looked at all the same.
            return Prepared(typed, stopped=error)


class _PushFilters:
    """``pushFilters`` of a reader that takes filters where the session pushes them, and is read all the same where it does not.

    Spark refuses to read from a reader with a ``pushFilters`` of its own where ``spark.sql.python.filterPushdown.enabled`` is
    false, as it is by default. It tells by ``__func__``.
    """

    def __init__(self, take: Callable[[list[Filter]], Iterable[Filter]]) -> None:
        self._take = take
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._take(filters)


class BatchReader(DataSourceReader):
    """Everything between two positions. Plans are made in memory and thrown away."""

    def __init__(self, options: SourceOptions, prepared: Prepared | None) -> None:
        self._options = options
        self._prepared = prepared
        self._typed = None if prepared is None else prepared.typed
        self._predicates: tuple[Predicate, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": None}

    @property
    def pushFilters(self) -> _PushFilters:  # noqa: N802 Spark's name
        """Takes all *filters* that it can look at, and leaves all of them to Spark as well."""
        return _PushFilters(self._take)

    @plain_errors()
    def _take(self, filters: list[Filter]) -> Iterable[Filter]:
        self._predicates = predicates_of(filters)
        return filters

    @plain_errors()
    def partitions(self) -> Sequence[InputPartition]:
        """A partition a range, over as many plans as the range takes."""
        prepared = self._prepared
        if self._options.table is not None and prepared is None:
            prepared = prepared_read(self._options)
        if prepared is not None and prepared.stopped is not None:
            raise prepared.stopped
        if prepared is not None and prepared.partitions is not None:
            return prepared.partitions
        with self._options.batch() as (tracker, _, plans):
            return [part for plan in plans for part in partitions_of(plan, tracker, self._typed)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of one range, on an executor."""
        return read_partition(self._options, partition, self._typed, self._predicates)
