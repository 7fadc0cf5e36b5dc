"""Topics whose changes lack the former row, into a lake with whole changelogs."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.messages.events import Decoder, Event
from databases.connect import postgres_settings, start_connect
from databases.kafka import Kafka
from databases.postgres import start_postgres
from historian.errors import HistorianError
from sinks.delta import faults
from workload.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def change(
    op: str, number: int, after: dict[str, Any] | None = None, before: dict[str, Any] | None = None
) -> tuple[bytes, bytes]:
    """A message of Debezium's without its schema, as PostgreSQL with its default replica identity makes it."""
    body = {
        "before": before,
        "after": after,
        "source": {"ts_ms": 1_700_000_000_000 + number, "db": "shop", "schema": "public", "table": "t"},
        "op": op,
    }
    row = after or before or {}
    return json.dumps({"id": row["id"]}).encode(), json.dumps(body).encode()


def row(number: int, a: int | None = None, b: str | None = None) -> dict[str, Any]:
    return {"id": number, "a": a, "b": b}


FIRST = [
    change("r", 1, row(1, 1, "x")),
    change("c", 2, row(2, 2, "y")),
    change("u", 3, row(1, 5, "x")),
    change("u", 4, row(1, 6, None)),
]
SECOND = [
    change("u", 5, row(2, 3, "y")),
    change("d", 6, before=row(1)),
    change("d", 7, before=row(9)),
    change("u", 8, row(7, 7, "new")),
    change("c", 9, row(1, 1, "again")),
]
ROWS = [
    (0, 1, 1, "x"),
    (0, 2, 2, "y"),
    (2, 1, 1, "x"),
    (3, 1, 5, "x"),
    (2, 1, 5, "x"),
    (3, 1, 6, None),
    (2, 2, 2, "y"),
    (3, 2, 3, "y"),
    (1, 1, 6, None),
    (0, 7, 7, "new"),
    (0, 1, 1, "again"),
]
MIRROR = [(1, 1, "again"), (2, 3, "y"), (7, 7, "new")]


def connector(directory: Path, kafka: Kafka, topic: str, extra: str = "normalize: true") -> Path:
    schema = directory / "schema.sql"
    schema.write_text("CREATE TABLE shop.t (id INT PRIMARY KEY, a INT, b VARCHAR(20));")
    path = directory / "c.yaml"
    path.write_text(
        f"name: c\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{topic}], schema: {schema},"
        f" format: debezium_json_schemaless, {extra}}}\n"
        f"history: {{store: 'sqlite:///{directory}/c.db'}}\n"
        f"sinks: [{{type: delta, path: {directory}/lake, mirror: '{{table}}', changelog: '{{table}}_log'}}]\n"
    )
    return path


def held(spark: SparkSession, directory: Path) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    log = spark.read.format("delta").load(f"{directory}/lake/t_log").orderBy("offset").select("op", "id", "a", "b")
    mirror = spark.read.format("delta").load(f"{directory}/lake/t").orderBy("id").select("id", "a", "b")
    return [tuple(each) for each in log.collect()], [tuple(each) for each in mirror.collect()]


def test_changes_without_their_former_rows_make_the_changelog_of_changes_that_have_them(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    kafka.make_topic("bare.changes")
    kafka.produce("bare.changes", FIRST)
    path = connector(tmp_path, kafka, "bare.changes")
    run(load_config(path), once=True, spark=spark)
    kafka.produce("bare.changes", SECOND)
    run(load_config(path), once=True, spark=spark)
    assert (ROWS, MIRROR) == held(spark, tmp_path)


def test_a_plan_that_all_targets_hold_goes_on_to_the_state_in_the_next_run(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    kafka.make_topic("bare.again")
    kafka.produce("bare.again", FIRST)
    path = connector(tmp_path, kafka, "bare.again")

    def ended(place: str, at: str) -> None:
        if place == "commit_begun" and "historian_state" in at and not at.endswith(" 0"):
            raise HistorianError("the run ends here")

    faults.arm_at(ended)
    try:
        with pytest.raises(HistorianError, match="ends here"):
            run(load_config(path), once=True, spark=spark)
    finally:
        faults.disarm()
    kafka.produce("bare.again", SECOND)
    run(load_config(path), once=True, spark=spark)
    assert (ROWS, MIRROR) == held(spark, tmp_path)


def test_a_connector_that_has_run_without_a_state_is_not_normalised(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    kafka.make_topic("bare.late")
    kafka.produce("bare.late", FIRST[:2])
    run(load_config(connector(tmp_path, kafka, "bare.late", "start: earliest")), once=True, spark=spark)
    with pytest.raises(HistorianError, match="only of a connector that begins with it"):
        run(load_config(connector(tmp_path, kafka, "bare.late")), once=True, spark=spark)


def gtid_change(number: int, sent: int = 0) -> tuple[bytes, bytes]:
    """An insert of Debezium's as its MySQL connector makes it, in a transaction of its own."""
    source = {"ts_ms": 1000 * number, "db": "shop", "table": "t", "gtid": f"3e11fa47:{number}", "file": "binlog.000002"}
    body = {
        "before": None,
        "after": row(number, number, "x"),
        "source": {**source, "pos": 100 * number, "row": 0},
        "op": "c",
        "ts_ms": sent,
    }
    return json.dumps({"id": number}).encode(), json.dumps(body).encode()


def test_changes_that_a_producer_sends_again_are_passed_over_but_for_the_last_which_may_be_another(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    kafka.make_topic("sent.again")
    kafka.produce("sent.again", [gtid_change(number) for number in range(1, 9)])
    path = connector(tmp_path, kafka, "sent.again", "start: earliest")
    run(load_config(path), once=True, spark=spark)
    # It begins anew behind the fourth, and once more behind the last one that it has sent by then.
    again = [*range(5, 11), *range(10, 13)]
    kafka.produce("sent.again", [gtid_change(number, sent=1) for number in again])
    run(load_config(path), once=True, spark=spark)
    log, _ = held(spark, tmp_path)
    assert [(0, number, number, "x") for number in (*range(1, 9), 8, 9, 10, 10, 11, 12)] == log


@pytest.mark.soak
def test_a_mirror_of_postgresql_with_its_default_replica_identity_is_the_servers_table(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "pg").mkdir()
    tmp_path.chmod(0o755)
    server = start_postgres(tmp_path / "pg")
    kafka.make_topic("bare.public.t")
    numbers = random.Random(11)
    with psycopg.connect(f"postgresql://{server.address}/postgres", autocommit=True) as connection:

        def sql(*statements: str) -> None:
            for statement in statements:
                connection.execute(statement.encode())

        sql(
            "CREATE TABLE public.t (id INT PRIMARY KEY, a INT, b TEXT)",
            "ALTER TABLE public.t ALTER COLUMN b SET STORAGE EXTERNAL",
            "CREATE TABLE public.mark (id INT PRIMARY KEY)",
        )
        settings = postgres_settings(server, kafka, "bare", "postgres") | {"skipped.operations": "none"}
        connect = start_connect(tmp_path / "connect", kafka, settings)
        path = tmp_path / "c.yaml"
        path.write_text(
            f"name: c\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: ['bare.public.t'], normalize: true}}\n"
            f"history: {{store: 'sqlite:///{tmp_path}/c.db'}}\n"
            f"sinks: [{{type: delta, path: {tmp_path}/lake, mirror: '{{table}}', changelog: '{{table}}_log'}}]\n"
        )
        try:
            sql("INSERT INTO public.t SELECT i, i, repeat(i::TEXT, 3000) FROM generate_series(1, 20) i")
            for turn in range(3):
                for step in range(60):
                    key = numbers.randrange(30)
                    sql(
                        numbers.choice(
                            (
                                f"INSERT INTO public.t VALUES ({key}, {step}, repeat('{step}', 3000)) ON CONFLICT (id) DO UPDATE SET a = {step}",
                                f"UPDATE public.t SET a = {step}, b = 'short' WHERE id = {key}",
                                f"UPDATE public.t SET a = {step} WHERE id = {key}",
                                f"UPDATE public.t SET id = {key + 1000 * (turn + 1) + step} WHERE id = {key}",
                                f"DELETE FROM public.t WHERE id = {key}",
                            )
                        )
                    )
                    if turn == 1 and step == 30:
                        sql("TRUNCATE public.t")
                sql(f"INSERT INTO public.t VALUES ({10_000 + turn}, 0, 'last')")
                decoder = decoder_of("debezium_json")
                client = Client(KafkaSettings(brokers=kafka.brokers, topics=("bare.public.t",)))

                def is_there(last: int = 10_000 + turn, client: Client = client, decoder: Decoder = decoder) -> bool:
                    return any(
                        isinstance(event, Event) and (event.after or {}).get("id") == last
                        for partition in client.partitions()
                        for _, batch in client.batches({partition: client.bounds(partition)})
                        for key, value in zip(batch.keys, batch.values, strict=True)
                        for event in decoder.events(key, value, "")
                    )

                with closing(client):
                    wait_until(is_there, 60)
                run(load_config(path), once=True, spark=spark)
        finally:
            connect.stop()
        wanted = connection.execute(b"SELECT id, a, b FROM public.t ORDER BY id").fetchall()
    server.stop()

    log, mirror = held(spark, tmp_path)
    assert wanted == mirror
    rows: dict[int, tuple[Any, ...]] = {}
    for op, *values in log:
        if op in (1, 2):
            assert rows.pop(values[0]) == tuple(values)
        else:
            assert values[0] not in rows
            rows[values[0]] = tuple(values)
    assert sorted(rows.values()) == wanted
