"""A real Debezium is killed amid changes, again and again: the changelog of its topics is that of the binlog."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.decoders import decoder_of, writers_of
from connectors.readers.kafka.messages.events import Decoder, Event
from connectors.readers.kafka.registry.client import RegistrySettings
from databases.connect import avro_settings, debezium_settings, start_connect
from databases.kafka import Kafka
from databases.registry import Registry, start_registry
from databases.servers import Server
from workload.seeds import seeds
from workload.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

NO_GTIDS = ("gtid_mode=OFF", "enforce_gtid_consistency=OFF")
KILLS = 4
# Rows that no statement of the workload writes.
LAST: dict[str, dict[str, Any]] = {"t": {"id": 99, "v": "last"}, "nokey": {"a": 99}}


def change(numbers: Random, step: int) -> str:
    """A statement that changes some rows, or none."""
    key = numbers.randrange(12)
    return numbers.choice(
        [
            f"REPLACE INTO ends.t VALUES ({key}, 'v{step}')",
            f"UPDATE ends.t SET v = 'u{step}' WHERE id >= {key}",
            f"UPDATE IGNORE ends.t SET id = {key + 20} WHERE id = {key}",
            f"DELETE FROM ends.t WHERE id = {key}",
            f"INSERT INTO ends.nokey VALUES ({key}), ({key})",
            f"DELETE FROM ends.nokey WHERE a = {key}",
        ]
    )


def write(server: Server, numbers: Random, ended: threading.Event) -> None:
    """Changes rows in transactions until it is told to end."""
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        step = 0
        while not ended.is_set():
            cursor.execute("BEGIN")
            for _ in range(numbers.randrange(1, 5)):
                step += 1
                cursor.execute(change(numbers, step))
            cursor.execute("COMMIT")
            ended.wait(0.002)


def streams(server: Server, kafka: Kafka, prefix: str) -> None:
    """Waits until the connector follows the log."""

    def is_there() -> bool:
        server.sql("INSERT INTO ends.mark VALUES ()")
        return bool(client.partitions())

    with contextlib.closing(Client(KafkaSettings(brokers=kafka.brokers, topics=(f"{prefix}.ends.mar*",)))) as client:
        wait_until(is_there, 60)


def sent(server: Server, kafka: Kafka, prefix: str, decoder: Decoder) -> None:
    """Writes a last row to each table and waits until each topic ends with it: then they hold all that the server has logged.

    The row of one topic says nothing of another. A producer that is behind sends one batch of each with a request: a short topic runs ahead.
    """
    for table, row in LAST.items():
        server.sql(f"INSERT INTO ends.{table} VALUES ({', '.join(['%s'] * len(row))})", *row.values())
    for table, row in LAST.items():
        topic = f"{prefix}.ends.{table}"
        with contextlib.closing(Client(KafkaSettings(brokers=kafka.brokers, topics=(topic,)))) as client:
            wait_until(partial(ends_with, client, topic, decoder, row), 90)


def ends_with(client: Client, topic: str, decoder: Decoder, row: dict[str, Any]) -> bool:
    """Whether the last message of *topic*, which has one partition, tells of *row*."""
    _, end = client.bounds((topic, 0))
    return any(
        isinstance(event, Event) and event.after == row
        for _, batch in client.batches({(topic, 0): (max(0, end - 1), end)})
        for key, value in zip(batch.keys, batch.values, strict=True)
        for event in decoder.events(key, value, topic)
    )


def connector(directory: Path, name: str, source: str) -> Path:
    path = directory / f"{name}.yaml"
    path.write_text(
        f"name: {name}\nsource: {{{source}, tables: ['ends.t', 'ends.nokey']}}\n"
        f"history: {{store: 'sqlite:///{directory}/{name}.db'}}\n"
        f"sinks: [{{type: delta, path: {directory}/{name}, mirror: '{{table}}', changelog: '{{table}}_log'}}]\n",
        encoding="utf-8",
    )
    return path


def changes(spark: SparkSession, lake: Path, table: str) -> list[dict[str, Any]]:
    found = spark.read.format("delta").load(str(lake / f"{table}_log")).orderBy("offset")
    names = [name for name in found.columns if name not in ("offset", "system_time", "event_time", "schema_version")]
    return [{name: row[name] for name in names} for row in found.collect()]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    registry = start_registry(tmp_path / "registry")
    yield registry
    registry.stop()


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize(
    "options,form",
    [((), "debezium_json"), (NO_GTIDS, "debezium_json"), ((), "debezium_avro"), (NO_GTIDS, "debezium_avro")],
    ids=["gtids", "no_gtids", "avro", "avro_no_gtids"],
)
@pytest.mark.parametrize("seed", seeds((1,)))
def test_a_producer_that_is_killed_amid_changes_sends_each_once_as_far_as_the_changelog_knows(
    seed: int,
    options: tuple[str, ...],
    form: str,
    request: pytest.FixtureRequest,
    fresh_server: Callable[..., Server],
    kafka: Kafka,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    numbers, prefix = Random(seed), f"ends_{form}{'_no_gtids' if options else ''}_{seed}"
    held: Registry | None = request.getfixturevalue("registry") if form == "debezium_avro" else None
    mysql9 = fresh_server("mysql9", *options)
    mysql9.sql("CREATE DATABASE ends")
    mysql9.sql("CREATE TABLE ends.mark (id INT AUTO_INCREMENT PRIMARY KEY)")
    mysql9.sql("CREATE TABLE ends.t (id INT PRIMARY KEY, v VARCHAR(40))")
    mysql9.sql("CREATE TABLE ends.nokey (a INT)")
    settings = debezium_settings(mysql9, kafka, prefix, "ends", database_server_id="98733")
    settings |= avro_settings(held) if held else {}
    connect = start_connect(tmp_path / "connect", kafka, settings)
    at = f"type: mysql, host: {mysql9.host}, port: {mysql9.port}, user: {mysql9.user}, password: {mysql9.password}"
    source = f"type: kafka, brokers: '{kafka.brokers}', topics: ['{prefix}.ends.*'], format: {form}"
    topics = connector(tmp_path, "topics", source + (f", registry: {{url: '{held.url}'}}" if held else ""))
    decoder = decoder_of(form, writers=writers_of(RegistrySettings(url=held.url) if held else None))
    ended = threading.Event()
    writer = threading.Thread(target=write, args=(mysql9, numbers, ended))
    try:
        streams(mysql9, kafka, prefix)
        writer.start()
        for number in range(KILLS):
            ended.wait(2 + numbers.random())
            connect.stop()
            if number % 2:
                run(load_config(topics), once=True, spark=spark)
            connect.resume()
        ended.set()
        writer.join()
        sent(mysql9, kafka, prefix, decoder)
        run(load_config(topics), once=True, spark=spark)
    finally:
        ended.set()
        connect.stop()
    run(load_config(connector(tmp_path, "log", f"{at}, start: earliest")), once=True, spark=spark)

    status = CliRunner().invoke(app, ["status", str(topics), "--json"])
    met = json.loads(status.stdout)["messages"]
    lakes = tmp_path / "log", tmp_path / "topics"
    assert met.get("repeated", 0) > 0
    more = 0
    for table in ("t", "nokey"):
        logged, found = (Counter(map(repr, changes(spark, lake, table))) for lake in lakes)
        assert not logged - found
        more += (found - logged).total()
    # An update is two rows, and so is one that moves a row.
    assert more <= 2 * met.get("doubtful", 0)
    logged_rows, found_rows = (sorted(spark.read.format("delta").load(str(lake / "t")).collect()) for lake in lakes)
    assert logged_rows == found_rows
