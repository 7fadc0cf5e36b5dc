"""Drives ``format("historian")`` as Spark does, in this process and without Spark: what travels between processes is pickled.

For tests of rows and schemas. What Spark itself makes of them, ``tests/integration/test_spark_source.py`` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import CaseInsensitiveDict, Filter
from pyspark.sql.pandas.types import to_arrow_schema

from connectors.spark.data_source import HistorianSource

__all__ = ["DrivenStream", "read_batch"]

_T = TypeVar("_T")


def read_batch(options: dict[str, str], filters: Sequence[Filter] = ()) -> pa.Table:
    """The rows of ``spark.read`` with *options*; with *filters* those that the source leaves for Spark to filter."""
    source, schema = _loaded(options)
    reader = source.reader(schema)
    if filters:
        assert set(reader.pushFilters(list(filters))) == set(filters)  # Spark looks at all of them again
    executor = _sent(reader)
    return _table(schema, (batch for part in reader.partitions() for batch in executor.read(_sent(part))))


@dataclass
class DrivenStream:
    """A stream with its checkpoint: each :meth:`run` loads it and starts it anew, as a restarted job does.

    Attributes:
        options: of ``spark.readStream``; ``end``: the offset up to which batches have been committed.
        batches: the rows of each batch.
        reported: what the query's progress says of the log's end, behind the last run.
    """

    options: dict[str, str]
    end: dict[str, Any] | None = None
    batches: list[pa.Table] = field(default_factory=list)
    reported: dict[str, Any] | None = None

    def run(self) -> None:
        """All batches up to the log's present end."""
        source, schema = _loaded(self.options)
        reader = source.streamReader(schema)
        executor = _sent(reader)
        try:
            reader.prepareForTriggerAvailableNow()
            start = reader.initialOffset() if self.end is None else self.end
            while (end := reader.latestOffset(dict(start), reader.getDefaultReadLimit())) != start:
                parts = [_sent(part) for part in reader.partitions(start, end)]
                self.batches.append(_table(schema, (batch for part in parts for batch in executor.read(part))))
                reader.commit(end)
                self.end = start = end
            self.reported = reader.reportLatestOffset()
        finally:
            reader.stop()

    @property
    def rows(self) -> int:
        """Of all batches."""
        return sum(batch.num_rows for batch in self.batches)


def _loaded(options: dict[str, str]) -> tuple[HistorianSource, Any]:
    source = HistorianSource(CaseInsensitiveDict(options))
    schema = source.schema()
    return _sent(source), schema


def _sent(value: _T) -> _T:
    copied: _T = cloudpickle.loads(cloudpickle.dumps(value))
    return copied


def _table(schema: Any, batches: Iterator[pa.RecordBatch]) -> pa.Table:
    # As Spark compares the first batch, so are all compared here.
    return pa.Table.from_batches(list(batches), to_arrow_schema(schema, timezone="UTC"))
