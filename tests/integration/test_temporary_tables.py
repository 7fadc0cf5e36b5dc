"""Temporary tables that hide real ones, in every format of the log: what is done to them is not done to the real ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from databases.servers import Server
from historian.names import TableName
from logs.binlog_lab import run
from models.source_oracle import SourceOracle

HIDDEN = (
    "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, a INT)",
    "INSERT INTO t VALUES (7, 7), (8, 8)",
    "INSERT INTO t (id, a) VALUES (9, 9)",
    "UPDATE t SET a = a + 1 WHERE id = 7",
    "ALTER TABLE t CHANGE a c INT, ADD COLUMN d INT DEFAULT 5",
    "CREATE INDEX i ON t (c)",
    "DROP INDEX i ON t",
    "DELETE FROM t WHERE id IN (7, 8)",
    "TRUNCATE TABLE t",
    "ALTER TABLE t RENAME TO t2",
    "DROP TABLE t2",
    "CREATE TEMPORARY TABLE u (id INT PRIMARY KEY)",
    "DROP TABLE u",
    "CREATE TEMPORARY TABLE t (x INT)",
)


@pytest.fixture(params=["STATEMENT", "MIXED", "ROW"])
def oracle(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Iterator[SourceOracle]:
    server.clear()
    run(server, "CREATE DATABASE hidden")
    for table in ("t", "u"):
        run(server, f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT)", database="hidden")
        run(server, f"INSERT INTO {table} VALUES (1, 10), (2, 20)", database="hidden")
    oracle = SourceOracle(server, tmp_path)
    oracle.run()
    oracle.binlog_format = request.param  # type: ignore[attr-defined]
    return oracle


def _session(oracle: SourceOracle, *statements: str) -> None:
    """One session of the format; what a server refuses is passed by."""
    with contextlib.closing(oracle.server.connect(database="hidden")) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET SESSION binlog_format = {oracle.binlog_format}")  # type: ignore[attr-defined]
        for statement in statements:
            with contextlib.suppress(pymysql.err.MySQLError):
                cursor.execute(statement)


def test_what_is_done_to_a_temporary_table_leaves_the_real_one_alone(oracle: SourceOracle) -> None:
    _session(oracle, *HIDDEN)
    run(oracle.server, "INSERT INTO t (id, a) VALUES (3, 30)", "DELETE FROM u WHERE id = 1", database="hidden")
    oracle.run()

    assert {} == oracle.stopped
    assert {} == oracle.differences("hidden")


def test_a_real_table_that_is_filled_or_made_from_a_temporary_one_is_followed_or_stops(oracle: SourceOracle) -> None:
    _session(
        oracle,
        "CREATE TEMPORARY TABLE s (id INT PRIMARY KEY, a INT)",
        "INSERT INTO s VALUES (5, 50)",
        "INSERT INTO t SELECT * FROM s",
        "CREATE TABLE made LIKE s",
        "CREATE TABLE filled AS SELECT * FROM s",
        "ALTER TABLE u ADD COLUMN b INT DEFAULT 4",
        "DROP TABLE s",
    )
    run(oracle.server, "INSERT INTO u (id, a) VALUES (3, 30)", "INSERT INTO made VALUES (6, 60)", database="hidden")
    oracle.run()

    assert {} == oracle.differences("hidden")
    assert TableName("hidden", "u") not in oracle.stopped


def test_a_table_whose_name_a_temporary_one_has_given_up_is_right_or_stops(oracle: SourceOracle) -> None:
    """MariaDB logs RENAME TABLE of a temporary table like that of a real one; MySQL renames the real one."""
    _session(oracle, "CREATE TEMPORARY TABLE t (x INT)", "RENAME TABLE t TO t3")
    oracle.run()
    present = {str(row[0]) for row in oracle.server.sql("SHOW TABLES FROM hidden")}
    run(oracle.server, f"INSERT INTO {'t' if 't' in present else 't3'} (id, a) VALUES (3, 30)", database="hidden")
    oracle.run()

    differing = set(oracle.differences("hidden"))
    assert differing <= ({"t3"} if "t" in present else set()), differing
    assert bool(oracle.stopped) is ("t" in present)


def test_a_renamed_temporary_table_does_not_stop_the_real_one_of_its_new_name(oracle: SourceOracle) -> None:
    _session(oracle, "CREATE TEMPORARY TABLE t5 (i INT)", "RENAME TABLE t5 TO u")
    run(oracle.server, "INSERT INTO u VALUES (3, 30)", database="hidden")
    oracle.run()

    assert {} == oracle.stopped
    assert {} == oracle.differences("hidden")
