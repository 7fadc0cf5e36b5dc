"""Runs on topics are killed, the broker restarts, partitions are added: the changelog has each row once, and the mirror is what was sent."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from connectors.config import load_config
from connectors.pipeline.run import run
from databases.kafka import Kafka, start_kafka
from lakes.killed_run import run_killed
from workload.seeds import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "shop.t"
ROUNDS = 8


class Source:
    """What a producer of Canal's messages sends: ``rows`` are there, ``sent`` is every change of a row; a key has one partition."""

    def __init__(self, kafka: Kafka, random: Random) -> None:
        self._kafka, self._random = kafka, random
        self._home: dict[int, int] = {}
        self.rows: dict[int, str] = {}
        self.sent: list[tuple[int, int, str]] = []
        self.partitions = 2
        self._time_ms = 1_700_000_000_000

    def change(self, count: int) -> None:
        """Sends so many changes."""
        messages: dict[int, list[tuple[bytes | None, bytes | None]]] = {}
        for _ in range(count):
            key = self._random.randrange(40)
            partition = self._home.setdefault(key, self._random.randrange(self.partitions))
            messages.setdefault(partition, []).append((None, json.dumps(self._changed(key)).encode()))
        for partition, of_partition in messages.items():
            self._kafka.produce(TOPIC, of_partition, partition)

    def _changed(self, key: int) -> dict[str, Any]:
        self._time_ms += 1
        held, value = self.rows.get(key), f"v{self._time_ms}"
        old = None
        if held is None:
            kind = "INSERT"
            self.sent.append((0, key, value))
        elif self._random.random() < 0.3:
            kind, value = "DELETE", held
            self.sent.append((1, key, value))
        else:
            kind, old = "UPDATE", [{"v": held}]
            self.sent += [(2, key, held), (3, key, value)]
        if kind == "DELETE":
            del self.rows[key]
        else:
            self.rows[key] = value
        return {
            "database": "shop",
            "table": "t",
            "type": kind,
            "isDdl": False,
            "es": self._time_ms,
            "pkNames": ["id"],
            "mysqlType": {"id": "int", "v": "varchar(20)"},
            "data": [{"id": str(key), "v": value}],
            "old": old,
        }


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds((1,)))
def test_runs_that_are_killed_while_the_broker_restarts_write_each_row_once(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    random, kafka = Random(seed), start_kafka(tmp_path / "kafka")
    try:
        kafka.make_topic(TOPIC, 2)
        source = Source(kafka, random)
        path = tmp_path / "shop.yaml"
        path.write_text(
            f"name: shop\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: ['shop.*'], format: canal_json}}\n"
            f"history: {{store: 'sqlite:///{tmp_path}/shop.db'}}\nrun: {{trigger: once, max_batch_bytes: 4000}}\n"
            f"sinks: [{{type: delta, path: {tmp_path}/lake, mirror: '{{table}}', changelog: '{{table}}_log'}}]\n",
            encoding="utf-8",
        )
        killed = 0
        for step in range(ROUNDS):
            source.change(60)
            if step % 3 == 1:
                kafka.kill()
                kafka.resume()
            if step % 3 == 2:
                source.partitions += 1
                kafka.add_partitions(TOPIC, source.partitions)
            place = random.choice([str(random.randrange(2, 30)), f"{random.uniform(3, 12):.2f} s"])
            killed += run_killed(path, place).startswith("killed at")
        run(load_config(path), once=True, spark=spark)
    finally:
        kafka.stop()

    log = spark.read.format("delta").load(f"{tmp_path}/lake/t_log").orderBy("offset").collect()
    mirror = spark.read.format("delta").load(f"{tmp_path}/lake/t").collect()
    assert source.rows == {row["id"]: row["v"] for row in mirror}
    assert by_key(source.sent) == by_key([(row["op"], row["id"], row["v"]) for row in log])
    assert killed > ROUNDS / 4


def by_key(changes: list[tuple[int, int, str]]) -> dict[int, list[tuple[int, str]]]:
    """The changes of each key, in order: partitions have none between them."""
    found: dict[int, list[tuple[int, str]]] = {}
    for op, key, value in changes:
        found.setdefault(key, []).append((op, value))
    return found
