"""An upsert topic normalised, against the same topic without a state: what the last row of each key costs.

Messages are Canal's of about 800 bytes, each the row of one of ``--keys`` keys, chosen by chance. Without a state each is a +A in a Delta changelog. With one,
which holds a row of every key from before, each is a -C and a +C. The state is filled first, by the product's own files. Both runs take
the same topic of two partitions in plans of about 200,000 messages. Seconds of a plan, from its first message to its last
commit, are compared by their median; the first plan, with which the state is read into memory, is told apart.
Run: ``python benchmarks/kafka_state.py [--keys 10000000] [--plans 8] [--rounds 1]``.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

import numpy as np
import pyarrow as pa
from binlog_work import report
from confluent_kafka import Producer
from kafka_spark import kafka_session
from kafka_work import PARTITIONS, TABLE, canal_insert, row_of

from connectors.config import load_config
from connectors.monitoring.observer import Observer, WrittenPlan
from connectors.pipeline.run import run
from connectors.readers.kafka.formats.values import json_column
from connectors.readers.kafka.messages.events import Conventions
from databases.kafka import start_kafka
from historian.encoding import encode_rows, row_schema
from historian.normalizing.keys import KeyHashes, key_form, keys_of, layout_of
from sinks.delta.keyed.stored import LEAST, MOST, written
from sinks.delta.keyed.table import DOMAIN
from sinks.delta.log.commits import Commit
from sinks.delta.log.kernel import Kernel
from sinks.delta.log.target import signature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.kafka import Kafka
    from historian.plans.plans import Plan

PLAN = 200_000
RANGE = 1 << 18
TOPIC, BEGIN = "upserts", "begin"
WRITTEN = Conventions(shapes="wkb", documents="text", debezium=True, decimal="base64")


class Plans(Observer):
    """Notes how long plans take."""

    def __init__(self) -> None:
        self.spent_s: list[float] = []
        self.rows: list[int] = []
        self._begun_s = 0.0

    def planned(self, plan: Plan) -> None:  # noqa: ARG002 as of an observer
        """As of an observer."""
        self._begun_s = time.perf_counter() if not self._begun_s else self._begun_s

    def written(self, written: WrittenPlan) -> None:
        """As of an observer."""
        now_s = time.perf_counter()
        if written.rows:
            self.spent_s.append(now_s - self._begun_s)
            self.rows.append(sum(written.rows.values()))
        self._begun_s = now_s  # the scan of the next one counts for it


def fill(kafka: Kafka, keys: int, messages: int) -> int:
    """Fills the topic; its bytes."""
    kafka.make_topic(BEGIN, 1)
    kafka.produce(BEGIN, [(None, canal_insert(keys, 0))])
    kafka.make_topic(TOPIC, PARTITIONS)
    numbers = random.Random(7)
    producer = Producer({"bootstrap.servers": kafka.brokers, "linger.ms": 50, "batch.size": 1_000_000})
    size = 0
    for change in range(1, messages + 1):
        number = numbers.randrange(keys)
        body = canal_insert(number, change % 100 + 1)
        size += len(body)
        while True:
            try:
                producer.produce(TOPIC, key=b'{"id":%d}' % number, value=body, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise SystemExit("the broker did not take all messages")
    return size


def held_rows(numbers: list[int], snapshot: Any) -> pa.RecordBatch:
    """Rows of those keys as they were before, columns by physical name."""
    rows = [row_of(number, 0) for number in numbers]
    schema = row_schema(snapshot)
    columns = [
        json_column([row[column.name] for row in rows], column.type, WRITTEN).cast(field.type)
        for column, field in zip(snapshot.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def seed(spark: SparkSession, lake: Path, snapshot: Any, keys: int) -> None:
    """Fills the state of the table with a row of each key, in files as those that a state writes whole ranges to.

    Rows repeat from one million on but for their ids, so that this takes minutes rather than an hour.
    """
    (path,) = (each for each in (lake / "historian_state").iterdir() if each.is_dir())
    kernel = Kernel(spark, signature(""))
    view = kernel.view(str(path))
    assert view is not None
    block = min(keys, 1_000_000)
    base = held_rows(list(range(block)), snapshot)
    every, cells = list[KeyHashes](), list[pa.Array]()
    for begin in range(0, keys, block):
        rows = base.slice(0, min(block, keys - begin))
        ids = pa.array(np.arange(begin, begin + rows.num_rows), rows.schema.field(0).type)
        rows = pa.RecordBatch.from_arrays([ids, *rows.columns[1:]], schema=rows.schema)
        every.append(keys_of(rows, snapshot, snapshot))
        cells.append(encode_rows(rows))
    joined = KeyHashes.joined(every)
    order = np.lexsort((joined.low, joined.high))
    joined = joined.take(order)
    block_of, row_of_block = np.divmod(order, block)
    files, first = [], LEAST
    for begin in range(0, keys, RANGE):
        end = min(keys, begin + RANGE)
        last = MOST if end == keys else int(joined.high[end]) - 1
        chosen = block_of[begin:end]
        by_block = np.argsort(chosen, kind="stable")
        parts = [
            cells[number].take(pa.array(row_of_block[begin:end][by_block][chosen[by_block] == number]))
            for number in range(len(cells))
        ]
        back = np.empty(end - begin, np.int64)
        back[by_block] = np.arange(end - begin)
        rows_of_range = pa.concat_arrays(parts).take(pa.array(back))
        files += written(str(path), joined.take(np.arange(begin, end)), rows_of_range, 0, (first, last))
        first = last + 1 if last < MOST else LEAST
    domain = json.dumps({"key": key_form(snapshot), "layout": layout_of(snapshot)})
    kernel.commit(view, "", 0, Commit(files=files, domains={DOMAIN: domain}))
    print(f"state of {keys:,} keys in {len(files)} files, {sum(f.size_bytes for f in files) / 1e6:,.0f} MB", flush=True)


def carried(spark: SparkSession, kafka: Kafka, work: Path, keys: int, message_bytes: float, *, normal: bool) -> Plans:
    """A run over the topic; how long its plans took."""
    work.mkdir()
    config = work / "pipeline.yaml"

    def configured(topics: list[str]) -> Any:
        config.write_text(
            f"""
name: bench
source: {{type: kafka, brokers: "{kafka.brokers}", topics: {topics}, format: canal_json,
          normalize: {str(normal).lower()}}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake", changelog: "{{table}}_changes", mirror: null}}]
run: {{trigger: once, max_batch_bytes: {round(PLAN * message_bytes)}}}
"""
        )
        return load_config(config)

    run(configured([BEGIN]), once=True, spark=spark)
    if normal:
        seed(spark, work / "lake", TABLE, keys)
    plans = Plans()
    run(configured([BEGIN, TOPIC]), once=True, spark=spark, observer=plans)
    return plans


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--keys", type=int, default=10_000_000)
    options.add_argument("--plans", type=int, default=8)
    options.add_argument("--rounds", type=int, default=1)
    chosen = options.parse_args()
    messages = chosen.plans * PLAN
    results: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        directory, numbers = Path(name), count()
        kafka = start_kafka(directory / "kafka")
        spark = kafka_session()
        try:
            size = fill(kafka, chosen.keys, messages) / messages
            print(f"{messages:,} upserts of {size:,.0f} bytes, of {chosen.keys:,} keys", flush=True)
            ratios = list[float]()
            for _ in range(chosen.rounds):
                medians = list[float]()
                for normal in (False, True):
                    plans = carried(spark, kafka, directory / str(next(numbers)), chosen.keys, size + 12, normal=normal)
                    kind = "with a state" if normal else "without"
                    spent = " ".join(f"{each:.2f}" for each in plans.spent_s)
                    print(f"{kind}: plans of {plans.rows} rows took {spent} s", flush=True)
                    if normal and sum(plans.rows) < 1.9 * messages:
                        raise SystemExit(f"{sum(plans.rows)} rows, expected about {2 * messages}")
                    medians.append(statistics.median(plans.spent_s[1:] or plans.spent_s))
                    if normal:
                        print(f"reading the state into memory took {plans.spent_s[0] - medians[1]:.1f} s", flush=True)
                ratios.append(medians[1] / medians[0])
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"largest size of the process: {peak:,.0f} MB", flush=True)
            results.append(
                {"name": "normalised", "value": round(statistics.median(ratios), 2), "unit": "times as long"}
            )
        finally:
            spark.stop()
            kafka.stop()
    report(results)


if __name__ == "__main__":
    main()
