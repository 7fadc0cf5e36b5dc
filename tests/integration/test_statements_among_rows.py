"""The same rows by several roads: a server's binlog, and Debezium's topics of rows and of statements in each format, where the source tells seconds alone, too."""

from __future__ import annotations

import contextlib
import zlib
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.decoders import decoder_of, writers_of
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.registry.client import RegistrySettings
from databases.connect import avro_settings, debezium_settings, start_connect
from databases.json_schema_topics import JsonSchemaTopics
from databases.kafka import Kafka
from databases.registry import Registry, start_registry
from databases.servers import Server
from historian.store import Store
from workload.seeds import seeds
from workload.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

STEPS, RUNS = 90, 3
WITH_REGISTRY = ("debezium_avro", "debezium_json_schema")
NO_GTIDS = ("gtid_mode=OFF", "enforce_gtid_consistency=OFF")
AS_OLD = ("version=5.7.19-MariaDB",)
"""Debezium's connector of MySQL asks a server that calls itself newer for what MySQL alone has."""
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


class Road:
    """Topics of a connector, in the format of this name."""

    def __init__(self, kafka: Kafka, registry: Registry, prefix: str, form: str) -> None:
        self.form, self.prefix = form, prefix
        self._kafka, self._topic = kafka, f"{prefix}.roads.mark"
        self._registry = registry.url if form in WITH_REGISTRY else ""
        settings = RegistrySettings(url=self._registry) if self._registry else None
        self._decoder = decoder_of(form, writers=writers_of(settings))

    @property
    def source(self) -> str:
        """What a configuration says of it."""
        topics = (
            f"type: kafka, brokers: '{self._kafka.brokers}', topics: ['{self.prefix}.roads.*'], format: {self.form}"
        )
        registry = f", registry: {{url: '{self._registry}'}}" if self._registry else ""
        return f"{topics}, schema_topic: {self.prefix}{registry}"

    def marked(self) -> set[int]:
        """Rows of the table of marks that its topic has."""
        settings = KafkaSettings(brokers=self._kafka.brokers, topics=(f"{self._topic[:-1]}*",))
        with contextlib.closing(Client(settings)) as client:
            events = (
                event
                for partition in client.partitions()
                for _, batch in client.batches({partition: client.bounds(partition)})
                for key, value in zip(batch.keys, batch.values, strict=True)
                for event in self._decoder.events(key, value, self._topic)
            )
            return {event.after["id"] for event in events if isinstance(event, Event) and event.after}


def sent(server: Server, *roads: Road) -> None:
    """Waits until the topics hold all that the server has logged so far."""
    server.sql("INSERT INTO roads.mark VALUES ()")
    ((last,),) = server.sql("SELECT MAX(id) FROM roads.mark")
    for road in roads:
        wait_until(lambda road=road: last in road.marked(), 90)


def streams(server: Server, *roads: Road) -> None:
    """Waits until connectors follow the log."""

    def are_there() -> bool:
        server.sql("INSERT INTO roads.mark VALUES ()")
        return all(road.marked() for road in roads)

    wait_until(are_there, 60)


def as_it_is(server: Server) -> None:
    """A MariaDB that called itself older says what it is, in its log too."""
    server.stop()
    for path in server.binlog_files():
        body = bytearray(path.read_bytes())
        event = body[4 : 4 + int.from_bytes(body[13:17], "little")]
        event[21:71] = b"10.5.29-MariaDB-log".ljust(50, b"\0")
        event[-4:] = zlib.crc32(event[:-4]).to_bytes(4, "little")
        body[4 : 4 + len(event)] = event
        path.write_bytes(body)
    server.restart("version=10.5.29-MariaDB")


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


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    registry = start_registry(tmp_path / "registry")
    yield registry
    registry.stop()


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize(
    "build, options",
    [("mysql57", ()), ("mysql57", NO_GTIDS), ("mysql9", ()), ("mysql9", NO_GTIDS), ("mariadb105", AS_OLD)],
    ids=["mysql57", "mysql57_no_gtids", "mysql9", "mysql9_no_gtids", "mariadb105"],
)
@pytest.mark.parametrize("seed", seeds((1,)))
def test_statements_stand_among_rows_where_the_log_has_them_in_each_format(
    seed: int,
    build: str,
    options: tuple[str, ...],
    fresh_server: Callable[..., Server],
    kafka: Kafka,
    registry: Registry,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    server, tables = fresh_server(build, *options), Tables(Random(seed))
    prefix = f"{build}{'_no_gtids' if options == NO_GTIDS else ''}_{seed}"
    server.sql("CREATE DATABASE roads")
    server.sql("CREATE TABLE roads.mark (id INT AUTO_INCREMENT PRIMARY KEY)")
    in_json, in_avro, in_json_schema = (
        Road(kafka, registry, f"{prefix}_{form}", form)
        for form in ("debezium_json", "debezium_avro", "debezium_json_schema")
    )
    told = {"include_schema_changes": "true", "skipped_operations": "none"}
    of_json = debezium_settings(server, kafka, in_json.prefix, "roads", database_server_id="98744", **told)
    of_avro = debezium_settings(server, kafka, in_avro.prefix, "roads", database_server_id="98745", **told)
    written_again = JsonSchemaTopics(kafka, registry, in_json.prefix, in_json_schema.prefix)
    kind = "mariadb" if build.startswith("mariadb") else "mysql"
    at = f"type: {kind}, host: {server.host}, port: {server.port}, user: {server.user}, password: {server.password}"
    roads = {road.form: connector(tmp_path, road.form, road.source) for road in (in_json, in_avro, in_json_schema)}
    connect = start_connect(tmp_path / "connect", kafka, of_json, of_avro | avro_settings(registry))
    try:
        streams(server, in_json, in_avro)
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            for name in "tu":
                cursor.execute(MADE.format(name, "a"))
            for _ in range(RUNS):
                for statement in tables.statements():
                    cursor.execute(statement)
                sent(server, in_json, in_avro)
                written_again.follow()
                for path in roads.values():
                    run(load_config(path), once=True, spark=spark)
    finally:
        connect.stop()
    if options == AS_OLD:
        as_it_is(server)
    run(load_config(connector(tmp_path, "log", f"{at}, start: earliest")), once=True, spark=spark)

    for name in ("log", *roads):
        with contextlib.closing(Store.open(f"sqlite:///{tmp_path}/{name}.db")) as store:
            assert not store.stopped(), name
    logged = rows(spark, tmp_path / "log")
    assert {"t", "t_log", "u", "u_log"} == logged.keys()
    for road in roads:
        found = rows(spark, tmp_path / road)
        assert {name: (each - found[name], found[name] - each) for name, each in logged.items()} == {
            name: (Counter(), Counter()) for name in found
        }, road
