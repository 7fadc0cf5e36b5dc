"""Rows that sessions write as statements: tables that the statement does not name are right, or stop."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from databases.servers import Server
from historian.names import TableName
from logs.binlog_lab import run
from models.source_oracle import SourceOracle
from replicas.tracked import Tracked

T, OTHER = TableName("rows_a", "t"), TableName("rows_a", "other")
WRITES = "BEGIN UPDATE rows_a.t SET a = 7; RETURN 1; END"
THROUGH = {
    "a function alone": (f"CREATE FUNCTION f() RETURNS INT DETERMINISTIC {WRITES}", "SELECT f()"),
    "a function in DO": (f"CREATE FUNCTION f() RETURNS INT DETERMINISTIC {WRITES}", "DO f()"),
    "a function in a variable": (f"CREATE FUNCTION f() RETURNS INT DETERMINISTIC {WRITES}", "SET @x = f()"),
    "a function in another statement": (
        f"CREATE FUNCTION F() RETURNS INT DETERMINISTIC {WRITES}",
        "INSERT INTO rows_b.log VALUES (f ())",
    ),
    "a trigger": (
        "CREATE TRIGGER rows_b.g AFTER INSERT ON rows_b.log FOR EACH ROW UPDATE rows_a.t SET a = NEW.id",
        "INSERT INTO rows_b.log VALUES (5)",
    ),
    "a view": ("CREATE VIEW rows_b.v AS SELECT * FROM rows_a.t", "UPDATE rows_b.v SET a = 9 WHERE id = 1"),
    "a view in the database": ("CREATE VIEW v AS SELECT * FROM rows_a.t", "DELETE FROM v WHERE id = 1"),
    "a view that calls a function": (
        f"CREATE FUNCTION f() RETURNS INT DETERMINISTIC {WRITES}",
        "CREATE VIEW w AS SELECT f() AS x",
        "INSERT INTO rows_b.log SELECT x FROM w",
    ),
}


def _oracle(server: Server, tmp_path: Path) -> SourceOracle:
    server.clear()
    run(server, "CREATE DATABASE rows_a", "CREATE DATABASE rows_b", "CREATE TABLE rows_b.log (id INT PRIMARY KEY)")
    for table in (T, OTHER):
        run(server, f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT)", f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    oracle = SourceOracle(server, tmp_path)
    oracle.run()
    return oracle


def _session(server: Server, *statements: str) -> None:
    with contextlib.closing(server.connect(database="rows_a")) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.parametrize("name", ["mysql9", "mariadb118"])
def test_what_a_statement_does_through_what_it_does_not_name_stops_tables(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    for through, statements in THROUGH.items():
        directory = tmp_path / through.replace(" ", "_")
        directory.mkdir()
        oracle = _oracle(server, directory)
        with contextlib.suppress(Exception):
            _session(server, *statements)
        changed = server.sql(f"SELECT SUM(a) FROM {T}") != ((3,),)
        oracle.run()

        assert {} == oracle.differences("rows_a"), through
        assert changed is (T in oracle.stopped), through


def test_views_triggers_and_functions_that_were_there_before_are_known(mysql8: Server, tmp_path: Path) -> None:
    _oracle(mysql8, tmp_path)
    for statements in (THROUGH["a function in another statement"], THROUGH["a trigger"], THROUGH["a view"]):
        run(mysql8, statements[0], database="rows_a")
    for number, (*_, statement) in enumerate((THROUGH["a trigger"], THROUGH["a view"])):
        tracked = Tracked.of(mysql8, tmp_path / str(number), "rows_a", start="latest")
        tracked.begin()
        _session(mysql8, statement)
        with tracked.tracker() as tracker:
            tracker.catch_up()
            assert {"t", "other"} == set(tracked.stopped(tracker)), statement


@pytest.mark.parametrize("name", ["mysql57", "mariadb1011"])
def test_statements_that_only_change_what_they_name_stop_that_alone(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    oracle = _oracle(server, tmp_path)
    run(server, "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1", database="rows_a")
    run(server, "CREATE TABLE mysql.rows_log (id INT)")
    _session(
        server,
        "INSERT INTO rows_b.log SELECT COUNT(*) + LENGTH('x') FROM t",
        "REPLACE INTO rows_b.log (id) VALUES (ABS(8))",
        "INSERT INTO mysql.rows_log VALUES (1)",
        "UPDATE other SET a = 8",
        "CREATE TEMPORARY TABLE w (id INT)",
        "INSERT INTO w VALUES (1)",
    )
    run(server, "DROP TABLE mysql.rows_log")
    oracle.run()

    assert {OTHER, TableName("rows_b", "log")} == set(oracle.stopped)
    assert {} == oracle.differences("rows_a")
