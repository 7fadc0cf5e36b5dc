"""Reads ``format("historian")`` and writes what came as Parquet: the typed rows of a table, read at once and as a stream.

``python read_source.py MASTER CONFIG TABLE OUTPUT`` does so in a process of its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from connectors.spark.jvm import delta_jars
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["read_and_write"]


def main() -> None:
    """Reads and writes in a session of its own; its executors have the options of Java that it has."""
    master, config, table, output = sys.argv[1:]
    java = {"spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", "")}
    spark = spark_session(jars=delta_jars(), master=master, name="read", settings=java)
    read_and_write(spark, config, table, output)
    spark.stop()


def read_and_write(spark: SparkSession, config: str, table: str, output: str) -> None:
    """Makes ``OUTPUT-batch.parquet`` and ``OUTPUT-stream.parquet``, and ``OUTPUT-executors.txt``, which says how many processes had tasks."""
    options = {"config": config, "table": table}
    rows = spark.read.format("historian").options(**options).load()
    pq.write_table(rows.toArrow(), f"{output}-batch.parquet")

    stream = (
        spark.readStream.format("historian").options(**options, name="typed", store=f"sqlite:///{output}.db").load()
    )
    query = stream.writeStream.format("parquet").option("checkpointLocation", f"{output}-checkpoint")
    query.trigger(availableNow=True).start(f"{output}-stream").awaitTermination()
    pq.write_table(spark.read.parquet(f"{output}-stream").toArrow(), f"{output}-stream.parquet")

    executors = spark.sparkContext.parallelize(range(2), 2).map(lambda _: __import__("os").getppid()).distinct().count()
    Path(f"{output}-executors.txt").write_text(str(executors))


if __name__ == "__main__":
    main()
