"""System-versioned tables of MariaDB: what is read of them is what ``SELECT`` shows, the rows that are current."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pymysql
import pytest

from databases.servers import Server
from historian.names import TableName
from logs.binlog_lab import run
from models.source_oracle import SourceOracle

BOUNDS = "r TIMESTAMP(6) GENERATED ALWAYS AS ROW START{0}, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END{0}, PERIOD FOR SYSTEM_TIME (r, e)"
KINDS = {
    "hidden": "(id INT PRIMARY KEY, v INT, s VARCHAR(9)) WITH SYSTEM VERSIONING",
    "hidden, unique": "(id INT NOT NULL, v INT, s VARCHAR(9), UNIQUE (id)) WITH SYSTEM VERSIONING",
    "hidden, no key": "(id INT, v INT, s VARCHAR(9)) WITH SYSTEM VERSIONING",
    "hidden, long key": "(id INT PRIMARY KEY, v INT, s TEXT, UNIQUE (s)) WITH SYSTEM VERSIONING",
    "of a column": "(id INT PRIMARY KEY, v INT WITH SYSTEM VERSIONING, s VARCHAR(9))",
    "but a column": "(id INT PRIMARY KEY, v INT WITHOUT SYSTEM VERSIONING, s VARCHAR(9)) WITH SYSTEM VERSIONING",
    "partitions": (
        "(id INT PRIMARY KEY, v INT, s VARCHAR(9)) WITH SYSTEM VERSIONING "
        "PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION p1 CURRENT)"
    ),
    "declared": f"(id INT PRIMARY KEY, v INT, s VARCHAR(9), UNIQUE KEY w (v), {BOUNDS.format('')}) WITH SYSTEM VERSIONING",
    "declared, invisible": f"(id INT, v INT, {BOUNDS.format(' INVISIBLE')}, s VARCHAR(9), PRIMARY KEY (id)) WITH SYSTEM VERSIONING",
    "declared, first": f"({BOUNDS.format('')}, id INT, v INT, s VARCHAR(9), PRIMARY KEY (id)) WITH SYSTEM VERSIONING",
    "copied": "LIKE z.declared_source",
    "of a query": "WITH SYSTEM VERSIONING AS SELECT 1 AS id, 1 AS v, 'a' AS s",
}
INSIDE = ("declared, invisible", "declared, first")
"""Kinds whose columns of a row's start and end do not stand last."""
BEFORE = {"a": "hidden", "b": "declared", "c": "hidden, no key"}
HIDE = "DROP COLUMN r, DROP COLUMN e"
ALTERS = (
    "ADD COLUMN IF NOT EXISTS w INT DEFAULT 4",
    "ADD COLUMN IF NOT EXISTS x VARCHAR(5) DEFAULT 'x' FIRST",
    "DROP COLUMN IF EXISTS w",
    "DROP COLUMN IF EXISTS x",
    "MODIFY s VARCHAR(20)",
    "ADD INDEX IF NOT EXISTS k (v)",
    "DROP SYSTEM VERSIONING",
    "ADD SYSTEM VERSIONING",
    HIDE,
)
FIRST = "SET system_versioning_alter_history = KEEP"


def _statements(seed: int, *, hides: bool) -> list[str]:
    """Random changes of t, some in one transaction, some at a moment that stands still."""
    alters = ALTERS if hides else tuple(alter for alter in ALTERS if alter != HIDE)
    drawn = random.Random(seed)
    result = []
    for _ in range(60):
        key, value = drawn.randrange(8), drawn.randrange(100)
        result.append(
            drawn.choice(
                (
                    f"INSERT INTO z.t (id, v, s) VALUES ({key}, {value}, 's{value}')",
                    f"INSERT INTO z.t (id, v, s) VALUES ({key}, {value}, 's{value}')",
                    f"UPDATE z.t SET v = {value} WHERE id = {key}",
                    f"UPDATE z.t SET s = 's{value}' WHERE id = {key}",
                    f"UPDATE z.t SET id = {value % 8} WHERE id = {key}",
                    f"DELETE FROM z.t WHERE id = {key}",
                    f"REPLACE INTO z.t (id, v, s) VALUES ({key}, {value}, 's{value}')",
                    f"INSERT INTO z.t (id, v, s) VALUES ({key}, {value}, 'd') ON DUPLICATE KEY UPDATE v = v + 1",
                    "DELETE HISTORY FROM z.t",
                    "BEGIN",
                    "COMMIT",
                    "ROLLBACK",
                    "SET timestamp = 1000000000",
                    "SET timestamp = DEFAULT",
                    f"ALTER TABLE z.t {drawn.choice(alters)}",
                )
            )
        )
    return [*result, "COMMIT", "SET timestamp = DEFAULT"]


def _server(name: str, request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(name)
    server.clear()
    run(server, "CREATE DATABASE z")
    return server


def test_a_table_stops_whose_row_end_is_hidden_between_other_columns(mariadb118: Server, tmp_path: Path) -> None:
    mariadb118.clear()
    run(
        mariadb118,
        "CREATE DATABASE z",
        f"CREATE TABLE z.t {KINDS['declared, first']}",
        FIRST,
        f"ALTER TABLE z.t {HIDE}",
    )
    run(mariadb118, "INSERT INTO z.t VALUES (1, 2, 'a')", "UPDATE z.t SET v = 3")
    oracle = SourceOracle(mariadb118, tmp_path)
    oracle.run()
    assert "at their place, between others" in oracle.stopped[TableName("z", "t")]


def test_a_table_that_was_there_before_is_known_to_be_versioned(mariadb118: Server, tmp_path: Path) -> None:
    server = mariadb118
    server.clear()
    run(server, "CREATE DATABASE z", *(f"CREATE TABLE z.{name} {KINDS[kind]}" for name, kind in BEFORE.items()))
    run(server, "FLUSH BINARY LOGS")
    *_, (newest, *_) = server.sql("SHOW BINARY LOGS")
    run(server, f"PURGE BINARY LOGS TO '{newest}'")
    oracle = SourceOracle(server, tmp_path)
    for name in BEFORE:
        run(server, f"INSERT INTO z.{name} (id, v) VALUES (1, 2), (2, 4)", f"UPDATE z.{name} SET v = 3 WHERE id = 1")
        run(server, f"DELETE FROM z.{name} WHERE id = 2")
    oracle.run()
    assert (oracle.stopped, oracle.differences("z")) == ({}, {})
    assert all(oracle.mirror.rows(TableName("z", name)).num_rows == 1 for name in BEFORE)


def _try(server: Server, *statements: str) -> None:
    """Runs *statements* on one connection; the server may refuse any."""
    with contextlib.closing(server.connect()) as opened, opened.cursor() as cursor:
        for statement in statements:
            with contextlib.suppress(pymysql.Error):
                cursor.execute(statement)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", ["mariadb105", "mariadb1011", "mariadb118"])
def test_rows_are_those_that_are_current(name: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server = _server(name, request)
    run(server, f"CREATE TABLE z.declared_source {KINDS['declared']}", f"CREATE TABLE z.t {KINDS[kind]}")
    oracle = SourceOracle(server, tmp_path)
    for seed in range(4):
        _try(server, FIRST, *_statements(seed, hides=kind not in INSIDE))
        oracle.run()
        assert (oracle.stopped, oracle.differences("z")) == ({}, {})
