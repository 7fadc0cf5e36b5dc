"""A run on topics outlives its broker and its schema registry: it tries again, and writes each row once."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connectors.config import load_config
from connectors.monitoring.observer import Observer, WrittenPlan
from connectors.pipeline.run import run
from connectors.readers.kafka import client
from databases.kafka import Kafka, start_kafka
from databases.registry import Registry, start_registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "outlived"
LONGEST_S = 120


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    """A broker of the test's own: it ends with the thread that has started it again."""
    kafka = start_kafka(tmp_path / "kafka")
    yield kafka
    kafka.stop()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    registry = start_registry(tmp_path / "registry")
    yield registry
    registry.stop()


def schema(*texts: str) -> str:
    """Of Debezium's messages with an id and *texts*."""
    text = {"oneOf": [{"type": "null"}, {"type": "string"}]}
    row = {"type": "object", "properties": {"id": {"type": "integer"}, **dict.fromkeys(texts, text)}}
    either = {"oneOf": [{"type": "null"}, row]}
    source = {"type": "object", "properties": {"db": {"type": "string"}, "table": {"type": "string"}}}
    parts = {"before": either, "after": either, "source": source, "op": {"type": "string"}}
    return json.dumps({"type": "object", "title": "d.shop.t.Envelope", "properties": parts})


def inserted(number: int, **row: Any) -> bytes:
    """A row under the schema of that id."""
    source = {"db": "shop", "table": "t", "ts_ms": 1_700_000_000_000 + row["id"]}
    message = {"before": None, "after": row, "source": source, "op": "c"}
    return b"\0" + number.to_bytes(4, "big") + json.dumps(message).encode()


class Watch(Observer):
    """Tells when a plan with rows is written, and when an attempt has failed."""

    def __init__(self) -> None:
        self.has_written, self.has_failed = threading.Event(), threading.Event()
        self.failures: list[str] = []

    def written(self, written: WrittenPlan) -> None:
        if written.rows:
            self.has_written.set()

    def failed(self, failure: str) -> None:
        self.failures.append(failure)
        self.has_failed.set()


@pytest.mark.soak
@pytest.mark.slow
def test_each_row_is_there_once_though_broker_and_registry_were_away(
    kafka: Kafka, registry: Registry, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_ASK_S", 1.0)
    kafka.make_topic(TOPIC, 2)
    before, behind = (registry.register_json_schema(texts, schema(*texts)) for texts in ("v", "vw"))
    path = tmp_path / "shop.yaml"
    path.write_text(
        f"name: shop\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{TOPIC}], format: debezium_json_schema, "
        f"registry: {{url: '{registry.url}'}}}}\nhistory: {{store: 'sqlite:///{tmp_path}/shop.db'}}\n"
        f"sinks: [{{type: delta, path: {tmp_path}/lake, changelog: '{{table}}_log', mirror: null}}]\nrun: {{trigger: 200 ms}}\n",
        encoding="utf-8",
    )
    watch, has_ended = Watch(), threading.Event()

    def away(end: Callable[[], None], sent: bytes | None, begin: Callable[[], None]) -> None:
        """What is *sent* comes once the broker, or the registry, is there again."""
        watch.has_failed.clear()
        watch.has_written.clear()
        end()
        if sent is not None:
            kafka.produce(TOPIC, [(None, sent)], 1)
        assert watch.has_failed.wait(LONGEST_S)
        begin()

    def told() -> None:
        try:
            kafka.produce(TOPIC, [(None, inserted(before, id=1, v="first"))])
            assert watch.has_written.wait(LONGEST_S)
            away(kafka.kill, None, kafka.resume)
            kafka.produce(TOPIC, [(None, inserted(before, id=2, v="behind the broker"))], 1)
            assert watch.has_written.wait(LONGEST_S)
            away(registry.stop, inserted(behind, id=3, v="behind", w="the registry"), registry.resume)
            assert watch.has_written.wait(LONGEST_S)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            has_ended.wait(LONGEST_S)

    thread = threading.Thread(target=told)
    thread.start()
    try:
        stopped = run(load_config(path), spark=spark, observer=watch)
    finally:
        has_ended.set()
        thread.join()

    assert {} == stopped
    assert any("the brokers do not answer" in each for each in watch.failures)
    assert any("the schema registry does not answer" in each for each in watch.failures)
    log = spark.read.format("delta").load(f"{tmp_path}/lake/t_log").orderBy("offset").select("op", "id", "v", "w")
    wanted = [(0, 1, "first", None), (0, 2, "behind the broker", None), (0, 3, "behind", "the registry")]
    assert wanted == [tuple(row) for row in log.collect()]
