"""A topic of Debezium's into a Delta changelog, against Spark's own Kafka source, ``from_json``, ``explode`` and Delta's writer.

Both run in one Spark session, in turn, into new tables, from the same topic of two partitions: messages of JSON with their schema inline, from
which our pipeline has its versions. Rows and sums of both tables are compared. Rates in messages a second, from the call to the last commit.
Run: ``python benchmarks/kafka_lake.py [--rounds 3] [--messages 500000]``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from binlog_work import in_turn, report
from kafka_spark import changelog, kafka_session
from kafka_work import PARTITIONS, SHAPES, fill

from connectors.config import load_config
from connectors.pipeline.run import run
from databases.kafka import start_kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.kafka import Kafka

SHAPE = "debezium_json_with_schema"


def ours(spark: SparkSession, kafka: Kafka, work: Path) -> float:
    """Seconds of our pipeline; the changelog lies in ``work``."""
    work.mkdir()
    config = work / "pipeline.yaml"
    config.write_text(
        f"""
name: bench
source: {{type: kafka, brokers: "{kafka.brokers}", topics: ["{SHAPE}"], format: {SHAPES[SHAPE][0]}}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake", changelog: "{{table}}_changes", mirror: null}}]
run: {{trigger: once}}
"""
    )
    begin = time.perf_counter()
    run(load_config(config), once=True, spark=spark)
    return time.perf_counter() - begin


def theirs(spark: SparkSession, kafka: Kafka, work: Path) -> float:
    """Seconds of Spark's own parts."""
    begin = time.perf_counter()
    changelog(spark, kafka, SHAPE).write.format("delta").save(str(work))
    return time.perf_counter() - begin


def check(spark: SparkSession, mine: Path, other: Path) -> None:
    """Raises where the tables differ in count or sums."""
    facts = [
        spark.read.format("delta")
        .load(str(path))
        .selectExpr("count(*)", "sum(id)", "sum(IF(op IN (1, 2), id, 0))", "sum(amount)", "sum(length(note))")
        .first()
        for path in (mine, other)
    ]
    if facts[0] != facts[1]:
        raise SystemExit(f"rows differ: {facts}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--messages", type=int, default=500_000)
    chosen = options.parse_args()
    messages = chosen.messages // PARTITIONS * PARTITIONS
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        directory, numbers = Path(name), count()
        kafka = start_kafka(directory / "kafka")
        spark = kafka_session()
        try:
            size = fill(kafka, SHAPE, messages)
            print(f"{SHAPE}: {messages:,} messages of {size / messages:,.0f} bytes", flush=True)

            def measured(write: str) -> float:
                work = directory / f"{write}-{next(numbers)}"
                spent_s = (ours if write == "ours" else theirs)(spark, kafka, work)
                shutil.rmtree(work)
                return messages / spent_s

            ours(spark, kafka, directory / "mine")
            theirs(spark, kafka, directory / "other")
            check(spark, directory / "mine" / "lake" / "orders_changes", directory / "other")
            result = in_turn(
                "to_delta", "messages/s", chosen.rounds, lambda: measured("ours"), lambda: measured("theirs")
            )
        finally:
            spark.stop()
            kafka.stop()
    report([result])


if __name__ == "__main__":
    main()
