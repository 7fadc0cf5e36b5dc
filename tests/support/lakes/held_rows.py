"""Tables of lakes read from their files in this process, as the sink itself reads them: for comparisons of many tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakes.lake import Lake
from sinks.delta.log.kernel import Kernel
from sinks.delta.rewrite.held_rows import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HeldLake", "held_table", "spark_table"]


def spark_table(spark: SparkSession, path: str) -> pa.Table:
    """A table's rows as Spark reads them; through Arrow, which keeps time zones apart from their absence."""
    return spark.read.format("delta").load(path).toArrow()


def held_table(spark: SparkSession, kernel: Kernel, path: str) -> pa.Table:
    """A table's rows, columns in order; by Spark where rows of its files are marked as deleted."""
    view = kernel.view(path)
    assert view is not None
    fields, files = view.schema().fields, view.held_files()
    if any(file.has_deletions for file in files):
        return spark_table(spark, path)
    schema = pa.schema([(field.physical, field.arrow) for field in fields])
    rows = pa.concat_tables([schema.empty_table(), *(read(file.path, schema) for file in files)])
    return rows.rename_columns([field.name for field in fields])


class HeldLake(Lake):
    """The same lake, and the same comparisons, by files; :meth:`read_by_spark` is for what is to be read by Spark."""

    def mirror(self, directory: str) -> list[dict[str, Any]]:
        return held_table(self.spark, self.kernel, str(self.path / directory)).to_pylist()

    def raw_log(self, directory: str) -> list[dict[str, Any]]:
        return sorted(self.mirror(directory), key=lambda row: row["offset"])

    def read_all_by_spark(self) -> None:
        """Checks that of every target."""
        locations = self.locations().values()
        self.read_by_spark(*sorted({name for h in locations for name in (h.changelog, h.mirror, h.history) if name}))

    def read_by_spark(self, *directories: str) -> None:
        """Checks that Spark reads of those tables what their files hold."""
        for directory in directories:
            assert sorted(map(repr, Lake.mirror(self, directory))) == sorted(map(repr, self.mirror(directory)))
