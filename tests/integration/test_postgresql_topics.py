"""A real PostgreSQL and a real Debezium: tables of two schemas, types that MySQL does not have, former rows whole and by key."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.config import load_config
from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.tracking.sources import make_tracker
from databases.connect import postgres_settings, start_connect
from databases.kafka import Kafka
from databases.postgres import start_postgres
from historian.changelog.operations import Op, physical_name
from historian.errors import UnsupportedEvent
from historian.normalizing.changes import normalized
from models.keyed_changes import MemoryState
from workload.waiting import wait_until

PREFIX = "pg"
KINDS = """CREATE TABLE {schema}.kinds (id INT PRIMARY KEY, s SMALLINT, b BIGINT, r REAL, d DOUBLE PRECISION, n NUMERIC(12,3), v NUMERIC,
 t TEXT, c VARCHAR(20), bo BOOLEAN, da DATE, ti TIME, ts TIMESTAMP, tz TIMESTAMPTZ, u UUID, j JSON, jb JSONB, a INT[], by BYTEA, bi BIT(5),
 iv INTERVAL, ip INET)"""
VALUES = """INSERT INTO {schema}.kinds VALUES (1, -3, 9223372036854775807, 0.5, 0.1, -123.45, 12345.678901234567890123, 'h\u00e9', 'abc', true,
 '2024-02-29', '12:34:56.789', '2024-01-02 03:04:05.123456', '2024-01-02 03:04:05.123456+02', '5bc0b8c6-1d1c-4f7a-8f1b-0d6b7e7b2a11',
 '{{"a": 1}}', '{{"b": [1, 2]}}', '{{1,NULL,3}}', '\\x0102', B'10101', '1 day', '10.0.0.1')"""
SHOWN = {
    "id": 1,
    "s": -3,
    "b": 9223372036854775807,
    "r": 0.5,
    "d": 0.1,
    "n": "-123.450",
    "v": "12345.678901234567890123",
    "t": "h\u00e9",
    "c": "abc",
    "bo": "True",
    "da": "2024-02-29",
    "ti": 45296789000,
    "ts": "2024-01-02 03:04:05.123456",
    "tz": "2024-01-02 01:04:05.123456+00:00",
    "u": "5bc0b8c6-1d1c-4f7a-8f1b-0d6b7e7b2a11",
    "j": '{"a": 1}',
    "jb": '{"b": [1, 2]}',
    "a": "[1, null, 3]",
    "by": "b'\\x01\\x02'",
    "bi": "b'\\x15'",
    "iv": 86400000000,
    "ip": "10.0.0.1",
}


def shown(value: Any) -> Any:
    return value if isinstance(value, int | float | str | None) and not isinstance(value, bool) else str(value)


def rows(path: Path) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """What a connector reads of its topics, normalised as it says: by table, each an operation and the row."""
    wanted = load_config(path).source.normalize  # type: ignore[union-attr]
    states: dict[int, MemoryState] = {}
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    tracker, number = make_tracker(load_config(path)), 0
    with closing(tracker.store):
        while (plan := tracker.plan_after(number)) is not None:
            number = plan.number
            read = [chunk for planned in plan.ranges for chunk in tracker.reader.read(planned, plan.tables)]
            for table in plan.tables:
                chunks = [chunk for chunk in read if chunk.table_id == table.table_id]
                if wanted is not None:
                    chunks = list(normalized(table, chunks, states.setdefault(table.table_id, MemoryState()))[0])
                for chunk in chunks:
                    snapshot = next(each for each in table.versions if each.version == chunk.version).snapshot
                    assert snapshot is not None
                    names = {column.name: physical_name(column.id) for column in snapshot.columns}
                    for row in chunk.rows.to_pylist():
                        values = {name: shown(row[column]) for name, column in names.items()}
                        found.setdefault(str(snapshot.name), []).append((Op(row["op"]).sign, values))
    return found


def configured(directory: Path, kafka: Kafka, name: str, more: str = "") -> Path:
    path = directory / f"{name}.yaml"
    path.write_text(
        f"name: {name}\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: ['{PREFIX}.*.{name}']{more}}}\n"
        f"history: {{store: 'sqlite:///{directory}/{name}.db'}}\nsinks: [{{type: console}}]\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.soak
def test_rows_of_postgresql_are_those_of_the_server(kafka: Kafka, tmp_path: Path) -> None:
    (tmp_path / "pg").mkdir()
    tmp_path.chmod(0o755)
    server = start_postgres(tmp_path / "pg")
    with psycopg.connect(f"postgresql://{server.address}/postgres", autocommit=True) as connection:

        def sql(*statements: str) -> None:
            for statement in statements:
                connection.execute(statement.encode())

        sql("CREATE SCHEMA other", *(KINDS.format(schema=schema) for schema in ("public", "other")))
        sql(
            "CREATE TABLE public.bykey (id INT PRIMARY KEY, v TEXT NOT NULL, n INT)",
            "CREATE TABLE public.mark (id INT PRIMARY KEY)",
            "CREATE TABLE public.toasted (id INT PRIMARY KEY, big TEXT, n INT)",
            "ALTER TABLE public.toasted ALTER COLUMN big SET STORAGE EXTERNAL",
        )
        sql(*(f"ALTER TABLE {schema}.kinds REPLICA IDENTITY FULL" for schema in ("public", "other")))
        connect = start_connect(tmp_path / "connect", kafka, postgres_settings(server, kafka, PREFIX, "postgres"))
        try:
            sql(*(VALUES.format(schema=schema) for schema in ("public", "other")))
            sql("UPDATE public.kinds SET t = NULL, n = 7 WHERE id = 1", "DELETE FROM other.kinds")
            sql(
                "INSERT INTO public.bykey VALUES (1, 'a', 1)",
                "UPDATE public.bykey SET v = 'b'",
                "DELETE FROM public.bykey",
            )
            sql(
                "INSERT INTO public.toasted VALUES (1, repeat('x', 9000), 1), (2, repeat('y', 9000), 1)",
                "UPDATE public.toasted SET n = 2",
                "UPDATE public.toasted SET n = 3 WHERE id = 2",
                "DELETE FROM public.toasted WHERE id = 1",
            )
            sql("INSERT INTO public.mark VALUES (1)")
            client = Client(KafkaSettings(brokers=kafka.brokers, topics=(f"{PREFIX}.public.mark*",)))
            with closing(client):
                wait_until(lambda: any(client.bounds(each)[1] for each in client.partitions()), 60)
        finally:
            connect.stop()
    server.stop()

    found = rows(configured(tmp_path, kafka, "kinds", ", debezium: {replica_identity: full}"))

    changed = {**SHOWN, "t": None, "n": "7.000"}
    assert {
        "public.kinds": [("+A", SHOWN), ("-C", SHOWN), ("+C", changed)],
        "other.kinds": [("+A", SHOWN), ("-R", SHOWN)],
    } == found
    with pytest.raises(UnsupportedEvent, match="op u with before null"):
        rows(configured(tmp_path, kafka, "bykey"))
    with pytest.raises(UnsupportedEvent, match="op u with no value of big"):
        rows(configured(tmp_path, kafka, "toasted"))
    (tmp_path / "whole").mkdir()
    toasted = rows(configured(tmp_path / "whole", kafka, "toasted", f", normalize: true, state: '{tmp_path}/state'"))

    def row(number: int, n: int) -> dict[str, Any]:
        return {"id": number, "big": "xy"[number - 1] * 9000, "n": n}

    assert [
        *(("+A", row(number, 1)) for number in (1, 2)),
        *((sign, row(number, n)) for number in (1, 2) for sign, n in (("-C", 1), ("+C", 2))),
        ("-C", row(2, 2)),
        ("+C", row(2, 3)),
        ("-R", row(1, 2)),
    ] == toasted["public.toasted"]
