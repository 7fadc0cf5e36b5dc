"""Writes an archive of Java's classes, with which Spark starts sooner: ``python -m connectors.java_classes``.

Once for a machine, and again where Java, PySpark or the jars have changed. It takes about half a minute and 110 MB of the cache.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from connectors.cli.terminal.sessions import session
from connectors.config import SinkConfig
from connectors.sink_kinds import make_sink
from connectors.spark.java_options import archive_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["write_archive"]


def write_archive() -> Path:
    """Starts Spark, uses Delta, and keeps the classes that were loaded; gives the archive's path. Others may do the same meanwhile."""
    from pyspark import SparkContext

    path = archive_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    before = os.environ.get("SPARK_SUBMIT_OPTS", "")
    archive = f'"-XX:ArchiveClassesAtExit={unfinished}" -Xlog:cds=off -Xlog:cds+dynamic=off'
    os.environ["SPARK_SUBMIT_OPTS"] = f"{before} {archive}".strip()
    try:
        with tempfile.TemporaryDirectory(prefix="historian-classes-") as directory:
            with session("classes", [directory], None) as spark:
                _use(spark, directory)
            gateway = SparkContext._gateway  # noqa: SLF001 there is no public way to end Java in order
            if gateway is not None:
                gateway.shutdown()
                gateway.proc.stdin.close()
                gateway.proc.wait()
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def _use(spark: SparkSession, directory: str) -> None:
    """What most runs do: a lake is opened, as a new one and again, and a table is written and merged into."""
    lake = SinkConfig(type="delta", settings={"path": f"{directory}/lake"})
    for _ in range(2):
        make_sink(lake, spark).open("classes")
    table = f"delta.`{directory}/table`"
    spark.range(3).write.format("delta").save(f"{directory}/table")
    spark.sql(f"MERGE INTO {table} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    spark.table(table).collect()
    _read_from_python(spark)


def _read_from_python(spark: SparkSession) -> None:
    """As the format ``historian`` is read, which needs a log."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Numbers(DataSource):
        def schema(self) -> str:
            return "op int, at timestamp, name string, price decimal(9,2)"

        def reader(self, schema: object) -> DataSourceReader:  # noqa: ARG002 Spark's signature
            return Rows()

    class Rows(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in range(3)]

        def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
            yield partition.value, None, "one", None

    spark.dataSource.register(Numbers)
    rows = spark.read.format("Numbers").load()
    rows.toArrow()
    rows.where("op > 0").groupBy("name").count().collect()


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    logging.getLogger(__name__).warning("Java's classes are in %s", write_archive())
