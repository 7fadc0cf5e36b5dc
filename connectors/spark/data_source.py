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

Spark looks at this class in a process that reads nothing, so what reads is imported once it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from connectors.spark.quiet import plain_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from connectors.spark.batch_reader import Prepared

__all__ = ["HistorianSource"]


class HistorianSource(DataSource):
    """Entry point that Spark makes from ``format("historian")``."""

    _prepared: Prepared | None = None

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "historian"

    @plain_errors()
    def schema(self) -> StructType:
        """Columns of the chunk stream, or of the typed table. The object takes what it found along to the processes that read."""
        from connectors.spark.batch_reader import prepared_read
        from connectors.spark.options import source_options
        from connectors.spark.partitions import STREAM_SCHEMA

        options = source_options(self.options)
        if options.table is None:
            return _spark_schema(STREAM_SCHEMA)
        self._prepared = prepared_read(options)
        return _spark_schema(self._prepared.typed.schema)

    @plain_errors()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002 Spark's name and signature
        """A reader for ``spark.readStream``."""
        from connectors.spark.options import source_options
        from connectors.spark.stream_reader import StreamReader

        options = source_options(self.options, streaming=True)
        prepared, self._prepared = self._prepared, None
        return StreamReader(options, None if prepared is None else prepared.typed)

    @plain_errors()
    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 Spark's signature
        """A reader for ``spark.read``."""
        from connectors.spark.batch_reader import BatchReader
        from connectors.spark.options import source_options

        # Spark sends this object to each task, which has no use for the partitions of others.
        prepared, self._prepared = self._prepared, None
        return BatchReader(source_options(self.options, streaming=False), prepared)


def _spark_schema(schema: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
