"""Spark data source ``format("historian")``: the chunk stream of all captured tables, or one table as typed rows.

Options, of which docs/how-to/use-from-spark.md says more:
    config: path of the pipeline's YAML; or config_text: the YAML itself; or its keys: source.type, source.host and the like.
    table: ``database.table``; typed rows of that table instead of chunks.
    name: of a typed stream; its schema is remembered under it in the store. Required for a typed stream.
    store: URL of the history store instead of the configuration's.
    schema_at: ``latest``, ``earliest``, or the position at which the typed schema is taken.
    on_schema_change: ``restart``, ``fail`` or ``rescue``: what becomes of an edit that the typed rows do not fit.
    columns: of the typed rows, with commas between.
    dropped: "true": typed rows have the columns, too, that the schema has no more.
    from, to: positions a batch read lies between; by default the configured start, and the log's end at ``load()``.
    until: position a stream ends at.
    absent: "true": typed rows have columns ``absent`` and ``unseen``, which name the columns that a row's images lack.
    after_plan: number of the plan a new stream begins behind.

The reader objects travel between processes: what they build is made again in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from connectors.spark.finding import stream_table, table_of_range
from connectors.spark.options import SourceOptions, source_options
from connectors.spark.partitions import STREAM_SCHEMA, RangePartition, partitions_of, read_partition
from connectors.spark.pushdown import Predicate, predicates_of
from connectors.spark.quiet import plain_errors
from connectors.spark.stream_reader import StreamReader
from historian.errors import TableStopped

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from connectors.spark.typed_tables import TypedTable

__all__ = ["HistorianSource"]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What ``load()`` has found out: the typed table, and of a batch read its partitions, or why there are none."""

    typed: TypedTable
    partitions: list[RangePartition] | None = None
    stopped: TableStopped | None = None


class HistorianSource(DataSource):
    """Entry point that Spark makes from ``format("historian")``."""

    _prepared: _Prepared | None = None

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "historian"

    @plain_errors()
    def schema(self) -> StructType:
        """Columns of the chunk stream, or of the typed table. The object takes what it found along to the processes that read."""
        options = source_options(self.options)
        if options.table is None:
            return _spark_schema(STREAM_SCHEMA)
        self._prepared = _prepared(options)
        return _spark_schema(self._prepared.typed.schema)

    @plain_errors()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002 Spark's name and signature
        """A reader for ``spark.readStream``."""
        options = source_options(self.options, streaming=True)
        prepared, self._prepared = self._prepared, None
        return StreamReader(options, None if prepared is None else prepared.typed)

    @plain_errors()
    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 Spark's signature
        """A reader for ``spark.read``."""
        # Spark sends this object to each task, which has no use for the partitions of others.
        prepared, self._prepared = self._prepared, None
        return _BatchReader(source_options(self.options), prepared)


def _prepared(options: SourceOptions) -> _Prepared:
    if options.name is not None:
        with closing(options.tracker()) as tracker:
            return _Prepared(stream_table(options, tracker))
    with closing(options.tracker(ephemeral=True)) as tracker:
        begin, plans = options.plans(tracker)
        typed = table_of_range(options, tracker, begin=begin)
        try:
            return _Prepared(typed, [part for plan in plans for part in partitions_of(plan, tracker, typed)])
        except TableStopped as error:
            # The schema can be looked at all the same.
            return _Prepared(typed, stopped=error)


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


class _BatchReader(DataSourceReader):
    """Everything between two positions. Plans are made in memory and thrown away."""

    def __init__(self, options: SourceOptions, prepared: _Prepared | None) -> None:
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
            prepared = _prepared(self._options)
        if prepared is not None and prepared.stopped is not None:
            raise prepared.stopped
        if prepared is not None and prepared.partitions is not None:
            return prepared.partitions
        with closing(self._options.tracker(ephemeral=True)) as tracker:
            _, plans = self._options.plans(tracker)
            return [part for plan in plans for part in partitions_of(plan, tracker, self._typed)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of one range, on an executor."""
        return read_partition(self._options, partition, self._typed, self._predicates)


def _spark_schema(schema: pa.Schema) -> StructType:
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
