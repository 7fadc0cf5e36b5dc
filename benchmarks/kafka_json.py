"""Change events of topics as JSON into changelog rows, against Spark's own Kafka source with ``from_json`` and ``explode``.

Both read the same topic of a real broker, in turn, with a thread for each of its two partitions, and make the same rows: two of an
update, values typed. Ours end as Arrow in memory, Spark's go to its ``noop`` writer. Counts and sums are compared first. librdkafka's
drain of the topic, which looks at no message, is printed beside. Of ten messages eight are updates, one an insert, one a delete.

``debezium_json``: messages of about 1 KB without their schema. ``debezium_json_with_schema``: the same with it, about 4 KB.
``canal_json``: Canal's flat messages. Rates in messages a second.
Run: ``python benchmarks/kafka_json.py [--only NAME ...] [--rounds 3] [--messages 2000000]``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

import pyarrow.compute as pc
from binlog_work import in_turn, report
from kafka_spark import changelog, kafka_session
from kafka_work import PARTITIONS, SHAPES, chunks_of, drained, fill

from connectors.readers.kafka.client import KafkaSettings
from databases.kafka import start_kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.kafka import Kafka

Facts = tuple[int, int, int]
"""Rows, the sum of their ids, and of those that are taken back."""


def ours(kafka: Kafka, shape: str, messages: int, check: Callable[[Facts], None] | None = None) -> float:
    """Messages a second of our reader."""
    settings = KafkaSettings(brokers=kafka.brokers, topics=(shape,), format=SHAPES[shape][0])
    begin = perf_counter()
    with ThreadPoolExecutor(PARTITIONS) as threads:
        every = threads.map(lambda number: chunks_of(settings, number, messages), range(PARTITIONS))
        found = [chunk.rows for chunks in every for chunk in chunks]
    spent_s = perf_counter() - begin
    if check is not None:
        former = [rows.filter(pc.is_in(rows["op"], value_set=pc.cast([1, 2], "uint8"))) for rows in found]
        sums = [sum(pc.sum(rows["h1"]).as_py() or 0 for rows in each) for each in (found, former)]
        check((sum(rows.num_rows for rows in found), sums[0], sums[1]))
    return messages / spent_s


def theirs(spark: SparkSession, kafka: Kafka, shape: str, messages: int) -> float:
    """Messages a second of Spark."""
    begin = perf_counter()
    changelog(spark, kafka, shape).write.format("noop").mode("overwrite").save()
    return messages / (perf_counter() - begin)


def checked(spark: SparkSession, kafka: Kafka, shape: str) -> Callable[[Facts], None]:
    """Compares rows with Spark's."""

    def check(mine: Facts) -> None:
        found = changelog(spark, kafka, shape).selectExpr("count(*)", "sum(id)", "sum(IF(op IN (1, 2), id, 0))").first()
        if found is None or tuple(found) != mine:
            raise SystemExit(f"{shape}: rows differ: {mine} of ours, {found} of Spark's")

    return check


def measured(spark: SparkSession, kafka: Kafka, shape: str, messages: int, rounds: int) -> list[dict[str, Any]]:
    """The results of a shape."""
    size = fill(kafka, shape, messages)
    print(f"{shape}: {messages:,} messages of {size / messages:,.0f} bytes", flush=True)
    ours(kafka, shape, messages, checked(spark, kafka, shape))
    theirs(spark, kafka, shape, messages)
    result = in_turn(
        shape,
        "messages/s",
        rounds,
        lambda: ours(kafka, shape, messages),
        lambda: theirs(spark, kafka, shape, messages),
    )
    drain = round(drained(kafka, shape, messages))
    kafka.delete_topic(shape)
    return [result, {"name": f"{shape}_drain", "value": drain, "unit": "messages/s of librdkafka alone"}]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--messages", type=int, default=2_000_000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        kafka = start_kafka(Path(name) / "kafka")
        spark = kafka_session()
        try:
            messages = chosen.messages // PARTITIONS * PARTITIONS
            results = [
                result for shape in chosen.only for result in measured(spark, kafka, shape, messages, chosen.rounds)
            ]
        finally:
            spark.stop()
            kafka.stop()
    report(results)


if __name__ == "__main__":
    main()
