"""The same rows by two roads where Debezium's messages have no schema, however it is set: MySQL's binlog, and topics of rows and statements."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.messages.events import Event
from databases.connect import Connect, debezium_settings, start_connect
from databases.kafka import Kafka
from databases.servers import Server
from historian.store import Store
from workload.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATABASE = "plain"
LAST_YEAR = 2262
"""Of nanoseconds in 64 bits."""
MODES = {
    "as_it_is": ("precise", "bytes", "adaptive_time_microseconds"),
    "texts": ("string", "hex", "isostring"),
    "doubles": ("double", "base64", "connect"),
    "microseconds": ("precise", "base64-url-safe", "microseconds"),
    "nanoseconds": ("string", "bytes", "nanoseconds"),
}
"""By the prefix of a connector's topics how it writes decimals, bytes and times. That of MySQL refuses `adaptive` times."""

KINDS = f"""CREATE TABLE {DATABASE}.kinds (id INT PRIMARY KEY, a TINYINT, b BIGINT UNSIGNED, g FLOAT, h DOUBLE, i DECIMAL(12,3),
 i2 DECIMAL(30,10), j BIT(1), k BIT(12), l DATE, m DATETIME, n DATETIME(6), o TIMESTAMP(3) NULL, o0 TIMESTAMP NULL, p TIME(3), p0 TIME,
 q YEAR, r CHAR(3), s VARCHAR(40), t TEXT, u BINARY(4), v VARBINARY(9), w BLOB, x ENUM('a','b,c'), y SET('x','y','z'), z JSON, geo POINT)"""
STATEMENTS = (
    (
        "INSERT INTO plain.kinds VALUES (1, -3, 18446744073709551615, 0.1, 0.1, -123.450, -1.0000000001, 1, b'101010101010', '2024-02-29',"
        " '2024-01-02 03:04:05', '2024-01-02 03:04:05.123456', '2024-01-02 03:04:05.123', '2024-01-02 03:04:05', '12:34:56.789', '01:02:03',"
        " 2024, 'ab', 'h\u00e9\U0001f600', 'txt', x'0102', x'0304fe', x'ff00fbfe', 'b,c', 'x,z', '{\"a\": [1, 2.5, null]}', ST_GeomFromText('POINT(1 2)'))"
    ),
    "INSERT INTO plain.kinds (id) VALUES (2)",
    (
        "INSERT INTO plain.kinds (id, a, b, i, k, l, n, o, p, r, s, u, x, y, z) VALUES (3, 127, 0, 0.001, b'0', '1000-01-01',"
        " '9999-12-31 23:59:59.999000', '1970-01-01 00:00:01', '23:59:59', '', '__debezium_unavailable_value', x'00000000', 'a', '', '\"text\"')"
    ),
    "UPDATE plain.kinds SET s = 'q', i = 7, x = 'a', w = x'' WHERE id = 1",
    "ALTER TABLE plain.kinds RENAME COLUMN s TO s2, ADD COLUMN c DECIMAL(5,1) NOT NULL DEFAULT 2.5 AFTER id",
    "UPDATE plain.kinds SET s2 = 'behind', u = x'01' WHERE id IN (1, 2)",
    "UPDATE plain.kinds SET id = 4 WHERE id = 3",
    "DELETE FROM plain.kinds WHERE id = 2",
    "INSERT INTO plain.kinds (id, c, m, v) VALUES (5, -9999.9, '2024-06-01 00:00:00', x'00')",
)


def settings(server: Server, kafka: Kafka, prefix: str, number: int) -> dict[str, str]:
    decimals, binary, temporal = MODES[prefix]
    found = debezium_settings(
        server, kafka, prefix, DATABASE, database_server_id=str(98800 + number), include_schema_changes="true"
    )
    for part in ("key", "value"):
        found[f"{part}.converter"] = "org.apache.kafka.connect.json.JsonConverter"
        found[f"{part}.converter.schemas.enable"] = "false"
        # Numbers as digits in one of them: both ways are read.
        found[f"{part}.converter.decimal.format"] = "NUMERIC" if prefix == "microseconds" else "BASE64"
    return found | {
        "decimal.handling.mode": decimals,
        "binary.handling.mode": binary,
        "time.precision.mode": temporal,
        "bigint.unsigned.handling.mode": "precise",
    }


def marked(kafka: Kafka, prefix: str) -> set[int]:
    """Rows of the table of marks that a connector's topic has."""
    topic, decoder = f"{prefix}.{DATABASE}.mark", decoder_of("debezium_json_schemaless")
    with contextlib.closing(Client(KafkaSettings(brokers=kafka.brokers, topics=(f"{topic[:-1]}*",)))) as client:
        events = (
            event
            for partition in client.partitions()
            for _, batch in client.batches({partition: client.bounds(partition)})
            for key, value in zip(batch.keys, batch.values, strict=True)
            for event in decoder.events(key, value, topic)
        )
        return {event.after["id"] for event in events if isinstance(event, Event) and event.after}


@pytest.fixture(scope="module")
def source(mysql9: Server, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    mysql9.sql(f"CREATE DATABASE {DATABASE}")
    mysql9.sql(f"CREATE TABLE {DATABASE}.mark (id INT AUTO_INCREMENT PRIMARY KEY)")
    each = [settings(mysql9, kafka, prefix, number) for number, prefix in enumerate(MODES)]
    connect = start_connect(tmp_path_factory.mktemp("connect"), kafka, *each)

    def follow() -> bool:
        mysql9.sql(f"INSERT INTO {DATABASE}.mark VALUES ()")
        return all(marked(kafka, prefix) for prefix in MODES)

    wait_until(follow, 90)
    with contextlib.closing(mysql9.connect()) as connection, connection.cursor() as cursor:
        for statement in (KINDS, *STATEMENTS, f"INSERT INTO {DATABASE}.mark VALUES ()"):
            cursor.execute(statement)
    ((last,),) = mysql9.sql(f"SELECT MAX(id) FROM {DATABASE}.mark")
    wait_until(lambda: all(last in marked(kafka, prefix) for prefix in MODES), 90)
    yield connect
    connect.stop()


def connector(directory: Path, name: str, source: str) -> Path:
    path = directory / f"{name}.yaml"
    path.write_text(
        f"name: {name}\nsource: {{{source}, tables: ['{DATABASE}.kinds']}}\n"
        f"history: {{store: 'sqlite:///{directory}/{name}.db'}}\n"
        f"sinks: [{{type: delta, path: {directory}/{name}, mirror: '{{table}}', changelog: '{{table}}_log'}}]\n",
        encoding="utf-8",
    )
    return path


def rows(spark: SparkSession, path: Path) -> dict[int, list[dict[str, Any]]]:
    """By key the rows of a table of a lake, in order where it is a changelog."""
    table = spark.read.format("delta").load(str(path))
    of_road = {"offset", "system_time", "event_time", "schema_version"}
    ordered = table.orderBy("offset") if "offset" in table.columns else table
    found: dict[int, list[dict[str, Any]]] = {}
    for row in ordered.collect():
        values = {name: plain(row[name]) for name in table.columns if name not in of_road}
        found.setdefault(row["id"], []).append(values)
    return found


def plain(value: Any) -> Any:
    """A value so that both roads can be compared: Debezium writes JSON without spaces."""
    if isinstance(value, str) and value[:1] in ('{"', "{", '"'):
        with contextlib.suppress(json.JSONDecodeError):
            return json.dumps(json.loads(value))
    return bytes(value) if isinstance(value, (bytes, bytearray)) else value


def as_told(prefix: str, found: dict[int, list[dict[str, Any]]]) -> dict[int, list[dict[str, Any]]]:
    """Rows with what a mode of a connector takes of them: Kafka Connect's own times have milliseconds, and of what nanoseconds cannot tell it has NULL."""
    temporal = MODES[prefix][2]
    for row in (row for of_key in found.values() for row in of_key if row["n"] is not None):
        if temporal == "connect":
            row["n"] = row["n"].replace(microsecond=row["n"].microsecond // 1000 * 1000)
        elif temporal == "nanoseconds":
            row["n"] = row["n"] if row["n"].year < LAST_YEAR else None
    return found


def differences(expected: dict[int, list[dict[str, Any]]], found: dict[int, list[dict[str, Any]]]) -> list[object]:
    """Where rows of two roads are not the same: the key, the row's number, the column and both values."""
    counts = [{key: len(each) for key, each in rows.items()} for rows in (expected, found)]
    if counts[0] != counts[1]:
        return [*counts]
    return [
        (key, number, name, value, now.get(name))
        for key, each in expected.items()
        for number, (row, now) in enumerate(zip(each, found[key], strict=True))
        for name, value in row.items()
        if value != now.get(name) or row.keys() != now.keys()
    ]


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("prefix", MODES)
def test_messages_without_schemas_are_the_rows_of_the_log_however_the_connector_is_set(
    prefix: str, source: Connect, mysql9: Server, kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    decimals, binary, temporal = MODES[prefix]
    topics = (
        f"type: kafka, brokers: '{kafka.brokers}', topics: ['{prefix}.{DATABASE}.*'], schema_topic: {prefix}, "
        f"format: debezium_json_schemaless, debezium: {{decimals: {decimals}, binary: {binary}, temporal: {temporal}}}"
    )
    at = f"type: mysql, host: {mysql9.host}, port: {mysql9.port}, user: {mysql9.user}, password: {mysql9.password}"
    for path in (connector(tmp_path, "topics", topics), connector(tmp_path, "log", f"{at}, start: earliest")):
        run(load_config(path), once=True, spark=spark)

    for name in ("topics", "log"):
        with contextlib.closing(Store.open(f"sqlite:///{tmp_path}/{name}.db")) as store:
            assert not [(str(each[1]), each[2].reason) for each in store.stopped()]
    for table in ("kinds_log", "kinds"):
        logged, told = (rows(spark, tmp_path / name / table) for name in ("log", "topics"))
        assert [] == differences(as_told(prefix, logged), told)
