"""The same rows by two roads where the source tells seconds alone: its binlog, and Debezium's topics of rows and of statements."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.messages.events import Event
from databases.connect import debezium_settings, start_connect
from databases.kafka import Kafka
from databases.servers import Server
from historian.store import Store
from workload.seeds import seeds
from workload.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

STEPS, RUNS = 90, 3
MADE = "CREATE TABLE roads.{} (id INT PRIMARY KEY, {} VARCHAR(20), n INT NOT NULL DEFAULT 0)"


class Tables:
    """Two tables whose names, columns and rows change, many times within a second."""

    def __init__(self, numbers: Random) -> None:
        self._numbers = numbers
        self._column = {"t": "a", "u": "a"}
        self._step = 0

    def statements(self) -> Iterator[str]:
        """The next ones."""
        numbers, column = self._numbers, self._column
        for _ in range(STEPS):
            self._step += 1
            name, kind, key = numbers.choice("tu"), numbers.random(), numbers.randrange(12)
            if kind < 0.06:
                old, column[name] = column[name], "b" if column[name] == "a" else "a"
                yield f"ALTER TABLE roads.{name} CHANGE {old} {column[name]} VARCHAR(20)"
            elif kind < 0.12:
                yield "RENAME TABLE roads.t TO roads.x, roads.u TO roads.t, roads.x TO roads.u"
                column["t"], column["u"] = column["u"], column["t"]
            elif kind < 0.17:
                yield f"DROP TABLE roads.{name}"
                column[name] = numbers.choice("ab")
                yield MADE.format(name, column[name])
            elif kind < 0.23:
                yield f"TRUNCATE TABLE roads.{name}"
            elif kind < 0.75:
                yield f"REPLACE INTO roads.{name} ({column[name]}, id) VALUES ('v{self._step}', {key})"
            elif kind < 0.9:
                yield f"UPDATE roads.{name} SET {column[name]} = 'u{self._step}', n = n + 1 WHERE id >= {key}"
            else:
                yield f"DELETE FROM roads.{name} WHERE id = {key}"


def marked(kafka: Kafka, prefix: str) -> set[int]:
    """Rows of the table of marks that its topic has."""
    topic, decoder = f"{prefix}.roads.mark", decoder_of("debezium_json")
    with contextlib.closing(Client(KafkaSettings(brokers=kafka.brokers, topics=(f"{prefix}.roads.mar*",)))) as client:
        events = (
            event
            for partition in client.partitions()
            for _, batch in client.batches({partition: client.bounds(partition)})
            for key, value in zip(batch.keys, batch.values, strict=True)
            for event in decoder.events(key, value, topic)
        )
        return {event.after["id"] for event in events if isinstance(event, Event) and event.after}


def sent(server: Server, kafka: Kafka, prefix: str) -> None:
    """Waits until the topics hold all that the server has logged so far."""
    server.sql("INSERT INTO roads.mark VALUES ()")
    ((last,),) = server.sql("SELECT MAX(id) FROM roads.mark")
    wait_until(lambda: last in marked(kafka, prefix), 90)


def streams(server: Server, kafka: Kafka, prefix: str) -> None:
    """Waits until the connector follows the log."""

    def is_there() -> bool:
        server.sql("INSERT INTO roads.mark VALUES ()")
        return bool(marked(kafka, prefix))

    wait_until(is_there, 60)


def connector(directory: Path, name: str, source: str) -> Path:
    path = directory / f"{name}.yaml"
    path.write_text(
        f"name: {name}\nsource: {{{source}, tables: ['roads.t', 'roads.u', 'roads.x']}}\n"
        f"history: {{store: 'sqlite:///{directory}/{name}.db'}}\n"
        f"sinks: [{{type: delta, path: {directory}/{name}, mirror: '{{table}}', changelog: '{{table}}_log'}}]\n",
        encoding="utf-8",
    )
    return path


def rows(spark: SparkSession, lake: Path) -> dict[str, Counter[str]]:
    """Of each mirror and changelog the rows, but for what is of the road."""
    of_road = {"offset", "system_time", "event_time", "schema_version"}
    found = {}
    for path in (each for each in sorted(lake.iterdir()) if not each.name.startswith("historian_")):
        table = spark.read.format("delta").load(str(path))
        names = [name for name in table.columns if name not in of_road]
        found[path.name] = Counter(str([(name, row[name]) for name in names]) for row in table.collect())
    return found


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("build", ["mysql57", "mariadb105"])
@pytest.mark.parametrize("seed", seeds((1,)))
def test_statements_stand_among_rows_where_the_log_has_them_though_seconds_are_told(
    seed: int,
    build: str,
    fresh_server: Callable[..., Server],
    kafka: Kafka,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    server, prefix, tables = fresh_server(build), f"roads_{build}", Tables(Random(seed))
    server.sql("CREATE DATABASE roads")
    server.sql("CREATE TABLE roads.mark (id INT AUTO_INCREMENT PRIMARY KEY)")
    settings = debezium_settings(
        server,
        kafka,
        prefix,
        "roads",
        database_server_id="98744",
        include_schema_changes="true",
        skipped_operations="none",
    )
    at = f"type: mysql, host: {server.host}, port: {server.port}, user: {server.user}, password: {server.password}"
    of_topics = f"type: kafka, brokers: '{kafka.brokers}', topics: ['{prefix}.roads.*'], schema_topic: {prefix}"
    topics = connector(tmp_path, "topics", of_topics)
    connect = start_connect(tmp_path / "connect", kafka, settings)
    try:
        streams(server, kafka, prefix)
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            for name in "tu":
                cursor.execute(MADE.format(name, "a"))
            for _ in range(RUNS):
                for statement in tables.statements():
                    cursor.execute(statement)
                sent(server, kafka, prefix)
                run(load_config(topics), once=True, spark=spark)
    finally:
        connect.stop()
    run(load_config(connector(tmp_path, "log", f"{at}, start: earliest")), once=True, spark=spark)

    for name in ("topics", "log"):
        with contextlib.closing(Store.open(f"sqlite:///{tmp_path}/{name}.db")) as store:
            assert not store.stopped()
    logged, told = (rows(spark, tmp_path / name) for name in ("log", "topics"))
    assert {"t", "t_log", "u", "u_log"} == logged.keys() == told.keys()
    for name, found in logged.items():
        assert (Counter(), Counter()) == (found - told[name], told[name] - found)
