"""The same rows by two roads: MySQL's binlog, and what Debezium makes of it in topics of a real broker, as JSON and as Avro."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.decoders import decoder_of, writers_of
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.registry.client import RegistrySettings
from connectors.tracking.sources import make_tracker
from databases.connect import Connect, avro_settings, debezium_settings, start_connect
from databases.kafka import Kafka
from databases.registry import Registry, start_registry
from databases.servers import Server
from historian.store import Store
from lakes.held_rows import held_table
from sinks.delta.log.kernel import Kernel
from workload.renamed_tables import RenamedTables, new_rows, understand_nothing_strange
from workload.row_changes import change_some, make_tables
from workload.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWN = ("offset", "op", "system_time", "event_time", "schema_version")
PREFIX, AVRO = "road", "road_of_avro"
EVERY_TYPE = """CREATE TABLE shop.kinds (id INT PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT UNSIGNED,
 d INT UNSIGNED, e BIGINT, g FLOAT, h DOUBLE, i DECIMAL(12,3), i2 DECIMAL(30,10), j BIT(1), k BIT(12), l DATE,
 m DATETIME, n DATETIME(6), o TIMESTAMP(3) NULL, p TIME(3), q YEAR, r CHAR(3), s VARCHAR(20), t TEXT, u BINARY(4),
 v VARBINARY(9), w BLOB, x ENUM('a','b,c'), y SET('x','y','z'), z JSON, geo POINT, geo2 GEOMETRY, bo BOOLEAN,
 ve VECTOR(2))"""


def workload(server: Server, seed: int) -> None:
    """Rows of every type, changed, moved to other keys and deleted, between DDL; a table without a key."""
    numbers = random.Random(seed)
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:

        def sql(statement: str, *values: Any) -> None:
            cursor.execute(statement, values or None)

        sql(EVERY_TYPE)
        sql(
            "INSERT INTO shop.kinds VALUES (1,-3,65535,16777215,4294967295,-5,0.1,0.1,-123.450,-1.0000000001,1,"
            "b'101010101010','2024-02-29','2024-01-02 03:04:05','2024-01-02 03:04:05.123456','2024-01-02 03:04:05.123',"
            "'-12:34:56.789',2024,'ab','h\u00e9\U0001f600','txt',x'0102',x'0304',x'ff00','b,c','x,z','{\"a\": [1, 2.5, null]}',"
            "ST_GeomFromText('POINT(1 2)'),ST_GeomFromText('LINESTRING(0 0, 1 1)',4326),1,STRING_TO_VECTOR('[1,2]'))"
        )
        sql("INSERT INTO shop.kinds (id) VALUES (2)")
        sql(
            "INSERT INTO shop.kinds (id, a, b, e, i, k, l, n, o, p, r, x, y, z) VALUES (3, 127, 0, -9223372036854775808, 0.001,"
            " b'0', '1000-01-01', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:01', '838:59:59', '', 'a', '', '\"text\"')"
        )
        sql("UPDATE shop.kinds SET s = 'q', i = 7, x = 'a' WHERE id = 1")
        make_tables(sql, "shop")
        extra = 0
        for step in range(60):
            change_some(sql, "shop", numbers, step)
            if step % 15 == 7:
                extra += 1
                sql(f"ALTER TABLE shop.t ADD COLUMN c{extra} VARCHAR(9) NOT NULL DEFAULT 'd{extra}' AFTER id")
                sql(f"UPDATE shop.t SET c{extra} = 'new' WHERE id < 6")
            if step == 40:
                sql("ALTER TABLE shop.t DROP COLUMN c1")
            if step == 50:
                sql("ALTER TABLE shop.t MODIFY n BIGINT")
                sql("UPDATE shop.t SET n = n + 3000000000 WHERE id < 6")


def sent(server: Server, kafka: Kafka, registry: Registry) -> None:
    """Waits until the topics hold all that the server has logged so far: a last row tells it."""
    server.sql("CREATE TABLE IF NOT EXISTS shop.mark (id INT AUTO_INCREMENT PRIMARY KEY)")
    server.sql("INSERT INTO shop.mark VALUES ()")
    ((last,),) = server.sql("SELECT MAX(id) FROM shop.mark")
    decoders = {
        f"{PREFIX}.shop.mark": decoder_of("debezium_json"),
        f"{AVRO}.shop.mark": decoder_of("debezium_avro", writers=writers_of(RegistrySettings(url=registry.url))),
    }
    client = Client(KafkaSettings(brokers=kafka.brokers, topics=tuple(decoders)))

    def has_last(topic: str) -> bool:
        return any(
            isinstance(event, Event) and event.after == {"id": last}
            for _, batch in client.batches({(topic, 0): client.bounds((topic, 0))})
            for key, value in zip(batch.keys, batch.values, strict=True)
            for event in decoders[topic].events(key, value, topic)
        )

    with contextlib.closing(client):
        wait_until(lambda: all(map(has_last, decoders)), 60)


def streams(server: Server, kafka: Kafka) -> None:
    """Waits until the connectors follow the log: a table that is made while one looks for its begin would be unknown to it."""
    client = Client(KafkaSettings(brokers=kafka.brokers, topics=("*.shop.mark",)))

    def are_there() -> bool:
        server.sql("INSERT INTO shop.mark VALUES ()")
        return len(client.partitions()) == 2

    with contextlib.closing(client):
        wait_until(are_there, 60)


def compressed(server: Server, *statements: str) -> None:
    """Executes statements in a transaction whose rows stand at one place of the log."""
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute("BEGIN")
        for statement in statements:
            cursor.execute(statement)
        cursor.execute("COMMIT")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    registry = start_registry(tmp_path_factory.mktemp("registry"))
    yield registry
    registry.stop()


@pytest.fixture(scope="module")
def source(
    mysql9: Server, kafka: Kafka, registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connect]:
    mysql9.sql("CREATE DATABASE shop")
    mysql9.sql("CREATE TABLE shop.mark (id INT AUTO_INCREMENT PRIMARY KEY)")
    # The types of one table are told, and those of the others are what Debezium makes of them.
    told = {"column.propagate.source.type": r"shop\.kinds\..*"}
    connect = start_connect(
        tmp_path_factory.mktemp("connect"),
        kafka,
        debezium_settings(mysql9, kafka, PREFIX, "shop", include_schema_changes="true") | told,
        debezium_settings(mysql9, kafka, AVRO, "shop", database_server_id="98712") | told | avro_settings(registry),
    )
    streams(mysql9, kafka)
    workload(mysql9, 11)
    sent(mysql9, kafka, registry)
    yield connect
    connect.stop()


def connector(directory: Path, name: str, source: str, extra: str = "") -> Path:
    path = directory / f"{name}.yaml"
    path.write_text(
        f"name: {name}\nsource: {{{source}}}\nhistory: {{store: 'sqlite:///{directory}/{name}.db'}}\n"
        f"sinks: [{{type: delta, path: {directory}/{name}, mirror: '{{table}}', changelog: '{{table}}_changelog'}}]\n{extra}",
        encoding="utf-8",
    )
    return path


def from_topics(directory: Path, kafka: Kafka, extra: str = "", source: str = "") -> Path:
    topics = f"type: kafka, brokers: '{kafka.brokers}', topics: ['{PREFIX}.shop.*']"
    return connector(directory, "topics", topics + source, extra)


def from_avro(directory: Path, kafka: Kafka, registry: Registry) -> Path:
    topics = f"type: kafka, brokers: '{kafka.brokers}', topics: ['{AVRO}.shop.*'], format: debezium_avro"
    return connector(directory, "avro", f"{topics}, registry: {{url: '{registry.url}'}}")


def from_log(directory: Path, server: Server) -> Path:
    at = f"type: mysql, host: {server.host}, port: {server.port}, user: {server.user}, password: {server.password}"
    return connector(directory, "log", f"{at}, tables: ['shop.*'], start: earliest")


def plain(value: Any) -> Any:
    """A value so that both roads can be compared: what Debezium writes otherwise is in the how-to."""
    if isinstance(value, (bytearray, bytes)):
        return bytes(value)
    if isinstance(value, str) and value[:1] in ('{"', "{", "["):
        with contextlib.suppress(json.JSONDecodeError):
            return json.dumps(json.loads(value))
    return value


def rows(spark: SparkSession, path: Path, *system: str) -> list[dict[str, Any]]:
    """By the files: many tables are compared."""
    table = held_table(Kernel(spark, "tests"), str(path))
    if system:
        table = table.sort_by([(name, "ascending") for name in system])
    names = [*("op" for _ in system[:1]), *(name for name in table.column_names if name not in OWN)]
    return [{name: plain(row[name]) for name in names} for row in table.select(names).to_pylist()]


def rows_by_spark(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    found = spark.read.format("delta").load(str(path)).collect()
    return [{name: plain(value) for name, value in row.asDict().items() if name not in OWN} for row in found]


def in_order(row: dict[str, Any]) -> str:
    """A table without a key has no order of rows."""
    return repr(tuple(row.values()))


def by_key(changes: list[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in changes:
        found.setdefault(row.get("id"), []).append(row)
    return found


def historian(path: Path, *arguments: str) -> str:
    answer = CliRunner().invoke(app, [arguments[0], str(path), *arguments[1:]])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


@pytest.fixture(scope="module")
def followed(source: Connect, kafka: Kafka, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a connector that has read the topics, in several plans."""
    directory = tmp_path_factory.mktemp("followed")
    path = from_topics(directory, kafka, extra="run: {max_batch_bytes: 400000}\n", source=", unreadable: dead_letter")
    run(load_config(path), once=True, spark=spark)
    return path


def test_both_roads_lead_to_the_same_rows(
    followed: Path, mysql9: Server, kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    lakes = tmp_path / "log", followed.parent / "topics"
    run(load_config(from_log(tmp_path, mysql9)), once=True, spark=spark)

    for table in ("kinds", "t", "nokey"):
        logged, sent_rows = (rows(spark, lake / f"{table}_changelog", "offset") for lake in lakes)
        assert by_key(logged) == by_key(sent_rows), table
        if table == "nokey":
            continue  # it has no mirror
        if table == "kinds":
            types = [
                [field.dataType for field in spark.read.format("delta").load(str(lake / table)).schema]
                for lake in lakes
            ]
            assert types[0] == types[1]
        mirrors = [rows_by_spark(spark, lake / table) for lake in lakes]
        assert sorted(mirrors[0], key=in_order) == sorted(mirrors[1], key=in_order), table
    held = {row["id"]: (row["v"], row["n"]) for row in rows(spark, lakes[1] / "t")}
    assert {key: (v, n) for key, v, n in mysql9.sql("SELECT id, v, n FROM shop.t")} == held
    with contextlib.closing(Store.open(f"sqlite:///{followed.parent}/topics.db")) as store:
        assert not store.stopped()
        assert len(store.plans()) > 1


def test_avro_has_the_rows_and_types_of_json_and_a_registry_may_restart(
    followed: Path, mysql9: Server, kafka: Kafka, registry: Registry, spark: SparkSession, tmp_path: Path
) -> None:
    path, lakes = from_avro(tmp_path, kafka, registry), (followed.parent / "topics", tmp_path / "avro")
    run(load_config(path), once=True, spark=spark)

    for table in ("kinds", "t", "nokey"):
        json_rows, avro_rows = (rows(spark, lake / f"{table}_changelog", "offset") for lake in lakes)
        assert json_rows == avro_rows, table
        types = [spark.read.format("delta").load(str(lake / f"{table}_changelog")).dtypes for lake in lakes]
        assert types[0] == types[1]

    mysql9.sql("ALTER TABLE shop.t ADD COLUMN restarted VARCHAR(9) NOT NULL DEFAULT 'yes', DROP COLUMN c2")
    mysql9.sql("INSERT INTO shop.t (id, v) VALUES (600, 'behind a restart')")
    sent(mysql9, kafka, registry)
    registry.stop()
    down = CliRunner().invoke(app, ["check", str(path)])
    registry.resume()
    checked = historian(path, "check")
    run(load_config(path), once=True, spark=spark)

    assert 1 == down.exit_code
    assert f"the schema registry does not answer ({registry.url})" in down.output
    assert registry.url in checked
    ((v, restarted),) = [(row["v"], row["restarted"]) for row in rows(spark, lakes[1] / "t") if row["id"] == 600]
    assert ("behind a restart", "yes") == (v, restarted)
    client = Client(KafkaSettings(brokers=kafka.brokers, topics=(f"{AVRO}.shop.t",)))
    with contextlib.closing(client):
        _, end = client.bounds((f"{AVRO}.shop.t", 0))
    for offset, has_c2 in ((end - 2, True), (end - 1, False)):
        answer = historian(path, "schemas", "at", "shop.t", f"{AVRO}.shop.t:0:{offset}")
        assert ("c2" in answer, "restarted" in answer) == (has_c2, not has_c2), answer


def test_a_connector_goes_on_where_it_stood_and_is_asked_what_it_knows(
    source: Connect, followed: Path, mysql9: Server, kafka: Kafka, registry: Registry, spark: SparkSession
) -> None:
    come, go = "INSERT INTO shop.nokey VALUES (77, 'x')", "DELETE FROM shop.nokey WHERE a = 77"
    compressed(mysql9, come, go, come)
    sent(mysql9, kafka, registry)
    source.stop()
    mysql9.sql("INSERT INTO shop.t (id, v, n) VALUES (500, 'while it was down', 1)")
    source.resume()
    mysql9.sql("ALTER TABLE shop.t ADD COLUMN last_one INT")
    mysql9.sql("UPDATE shop.t SET last_one = 3 WHERE id = 500")
    sent(mysql9, kafka, registry)
    kafka.produce(f"{PREFIX}.shop.kinds", [(None, b"no JSON \xff")])
    waiting = json.loads(historian(followed, "status", "--json"))["lag"]

    run(load_config(followed), once=True, spark=spark)

    lake = followed.parent / "topics"
    ((v, last_one),) = [(row["v"], row["last_one"]) for row in rows(spark, lake / "t") if row["id"] == 500]
    assert ("while it was down", 3) == (v, last_one)
    assert mysql9.sql("SELECT id, v FROM shop.t ORDER BY id") == tuple(
        sorted((row["id"], row["v"]) for row in rows(spark, lake / "t"))
    )
    changes = [row for row in rows(spark, lake / "t_changelog", "offset") if row["id"] == 500]
    assert [0, 2, 3] == [row["op"] for row in changes]
    # What is alike in a compressed transaction is there as often as it was done, whatever the producer sent again.
    toggled = [row["op"] for row in rows(spark, lake / "nokey_changelog", "offset") if row["a"] == 77]
    assert [0, 1, 0] == toggled[:3]
    found = json.loads(historian(followed, "status", "--json"))
    assert max(1, len(toggled) - 3) <= found["messages"]["doubtful"]
    reached = found["lag"]
    behind = {row["partition"]: row for row in waiting["partitions"]}
    assert (3, 1) == (behind[f"{PREFIX}.shop.t:0"]["messages"], behind[f"{PREFIX}.shop.kinds:0"]["messages"])
    assert behind[f"{PREFIX}.shop.t:0"]["seconds"] > 0
    assert {(0, 0)} == {(row["messages"], row["seconds"]) for row in reached["partitions"]}
    assert (waiting["messages"], reached["messages"]) == (sum(row["messages"] for row in behind.values()), 0)
    (letter,) = spark.read.format("delta").load(str(lake / "historian_dead_letters")).collect()
    assert ("a message that cannot be read", b"no JSON \xff") == (letter.reason, bytes(letter.raw))
    assert letter.position.startswith(f"{PREFIX}.shop.kinds:0:")
    for command, expected in (
        (["status"], "0 messages"),
        (["schemas", "list", "shop.t"], "message at"),
        (["check"], "debezium_json"),
        (["schemas", "at", "shop.t", f"{PREFIX}.shop.t:0:0"], "v"),
    ):
        answer = historian(followed, *command)
        assert expected in answer


def test_commands_and_spark_read_topics_as_they_read_logs(followed: Path, mysql9: Server, spark: SparkSession) -> None:
    lake = followed.parent / "topics"
    changes = rows(spark, lake / "t_changelog", "offset")

    tailed = [
        json.loads(line)
        for line in historian(
            followed, "tail", "--from", "earliest", "--table", "shop.t", "--format", "ndjson"
        ).splitlines()
    ]
    typed = spark.read.format("historian").options(config=str(followed), table="shop.t").load()
    chunks = spark.read.format("historian").options(config=str(followed)).load()

    assert [row["id"] for row in changes] == [line["data"]["id"] for line in tailed]
    assert sorted(row["id"] for row in changes) == sorted(row["id"] for row in typed.collect())
    assert chunks.selectExpr("sum(row_count)").first()[0] == sum(
        len(rows(spark, lake / f"{name}_changelog", "offset")) for name in ("kinds", "t", "nokey", "mark")
    )
    said = historian(followed, "replay", "--table", "shop.t", "--from", "earliest")
    run(load_config(followed), once=True, spark=spark)
    (again,) = lake.glob("t__r*")
    assert "fresh targets" in said
    assert sorted(rows(spark, lake / "t"), key=in_order) == sorted(rows(spark, again), key=in_order)


def test_statements_of_debeziums_topic_rename_columns_and_tables_as_those_of_the_log(
    source: Connect, mysql9: Server, kafka: Kafka, registry: Registry, spark: SparkSession, tmp_path: Path
) -> None:
    mysql9.sql("CREATE TABLE shop.named (id INT PRIMARY KEY, a VARCHAR(9) NOT NULL, n TINYINT)")
    mysql9.sql("INSERT INTO shop.named VALUES (1, 'one', 1), (2, 'two', 2)")
    mysql9.sql("ALTER TABLE shop.named RENAME COLUMN a TO b, ADD COLUMN c CHAR(3) DEFAULT 'new' AFTER id")
    mysql9.sql("INSERT INTO shop.named VALUES (3, 'xyz', 'three', 3), (4, NULL, 'four', 4)")
    mysql9.sql("UPDATE shop.named SET c = 'new' WHERE id = 4")
    mysql9.sql("UPDATE shop.named SET c = NULL WHERE id IN (2, 4)")
    mysql9.sql("RENAME TABLE shop.named TO shop.named_now")
    mysql9.sql("UPDATE shop.named_now SET b = 'first' WHERE id = 1")
    sent(mysql9, kafka, registry)
    only = "tables: ['shop.named*']"
    topics = (
        f"type: kafka, brokers: '{kafka.brokers}', topics: ['{PREFIX}.shop.named*'], schema_topic: {PREFIX}, {only}"
    )
    at = f"type: mysql, host: {mysql9.host}, port: {mysql9.port}, user: {mysql9.user}, password: {mysql9.password}"
    roads = connector(tmp_path, "sent", topics), connector(tmp_path, "logged", f"{at}, {only}, start: earliest")
    for path in roads:
        run(load_config(path), once=True, spark=spark)

    columns = []
    for name in ("sent", "logged"):
        with contextlib.closing(Store.open(f"sqlite:///{tmp_path}/{name}.db")) as store:
            assert not store.stopped()
            (table,) = [s for n, s in store.history().catalog.tables.items() if n.table == "named_now"]
            versions = store.history().versions_of(table.table_id)
            first = {column.name: column.id for column in versions[0].snapshot.columns}  # type: ignore[union-attr]
            assert first["a"] == next(column.id for column in table.columns if column.name == "b")
            columns.append([(column.name, str(column.type), column.nullable) for column in table.columns])
    assert columns[1] == columns[0]
    lakes = [sorted((tmp_path / name).glob("named*")) for name in ("sent", "logged")]
    mirrors = [next(path for path in lake if "changelog" not in path.name) for lake in lakes]
    changelogs = [next(path for path in lake if "changelog" in path.name) for lake in lakes]
    for paths in (mirrors, changelogs):
        tables = [spark.read.format("delta").load(str(path)) for path in paths]
        assert tables[1].dtypes == tables[0].dtypes
    changes = [by_key(rows(spark, path, "offset")) for path in changelogs]
    assert changes[1] == changes[0]
    assert "debezium_json" in historian(roads[0], "check")


def test_tables_go_on_beside_a_stopped_one_whose_name_they_get(
    source: Connect,
    mysql9: Server,
    kafka: Kafka,
    registry: Registry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    understand_nothing_strange(monkeypatch)
    a, b, c, d = names = [f"shop.moved_{name}" for name in "abcd"]
    tables = RenamedTables(names)
    statements = [*map(tables.make, (a, b, c)), *map(tables.insert, (a, b, c)), tables.stop(a), tables.insert(a)]
    statements += [tables.rename((a, d), (b, a), (c, b)), *map(tables.insert, (a, b, d))]
    statements += [tables.drop(a, d), tables.rename((b, d)), tables.insert(d)]
    for statement in statements:
        mysql9.sql(statement)
    sent(mysql9, kafka, registry)
    topics = f"type: kafka, brokers: '{kafka.brokers}', topics: ['{PREFIX}.shop.moved*'], schema_topic: {PREFIX}"
    path = connector(tmp_path, "moved", f"{topics}, tables: ['shop.moved*']")

    with contextlib.closing(make_tracker(load_config(path))) as tracker:
        _, rows = new_rows(tracker, 0, limit_bytes=2000)
        stopped = {name.table for _, name, _ in tracker.store.stopped()}
        there = {name.table for name in tracker.history.catalog.tables if name.table.startswith("moved")}

    tables.check(rows)
    assert ({"moved_a", "moved_d"}, {"moved_d"}) == (stopped, there)


def test_json_schemas_of_a_registry_tell_the_types_of_messages(
    kafka: Kafka, registry: Registry, tmp_path: Path
) -> None:
    golden = Path(__file__).parents[1] / "connectors/readers/kafka/formats/goldens/debezium_json_schema_references.json"
    case = json.loads(golden.read_text())
    held = {number: each["schema"] for number, each in case["registry"].items()}
    row = registry.register_json_schema("row", json.dumps(held["3"]))
    key = registry.register_json_schema("key", json.dumps(held["1"]))
    version = {"name": "row.json", "subject": "row", "version": 1}
    value = registry.register_json_schema("value", json.dumps(held["2"]), version)
    (message,) = case["messages"]
    texts = [
        b"\0" + number.to_bytes(4, "big") + json.dumps(message[part]["json"]).encode()
        for part, number in (("key", key), ("value", value))
    ]
    kafka.make_topic("json.schema")
    kafka.produce("json.schema", [(texts[0], texts[1])])
    topics = f"type: kafka, brokers: '{kafka.brokers}', topics: [json.schema], format: debezium_json_schema"
    path = connector(tmp_path, "schemas", f"{topics}, registry: {{url: 'http://127.0.0.1:1,{registry.url}'}}")

    checked = historian(path, "check")
    (line,) = historian(path, "tail", "--from", "earliest", "--format", "ndjson").splitlines()

    assert row > 0
    assert "JSON" in checked
    assert "1 messages of shop.k" in checked
    assert {"id": 1, "v": "x", "w": 0.5} == json.loads(line)["data"]
