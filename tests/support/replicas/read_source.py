"""Reads ``format("historian")`` in a process of its own and writes what came as Parquet.

``python read_source.py MASTER CONFIG TABLE OUTPUT``: the typed rows of TABLE, read at once and as a stream.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq

from connectors.spark.jvm import delta_jars
from sinks.session import spark_session


def main() -> None:
    """Reads and writes."""
    master, config, table, output = sys.argv[1:]
    spark = spark_session(jars=delta_jars(), master=master, name="read")
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
    spark.stop()


if __name__ == "__main__":
    main()
