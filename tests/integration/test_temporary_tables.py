"""Temporary tables that hide real ones, in every format of the log: what is done to them is not done to the real ones."""

from __future__ import annotations

import contextlib
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


ROWS_IN_MIXED = ("mysql8", "mysql9")
"""With binlog_format=MIXED they log rows where a temporary table is open, and nothing of it."""


@pytest.fixture(params=["STATEMENT", "MIXED", "ROW"])
def oracle(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> SourceOracle:
    oracle = _hidden(server, tmp_path)
    oracle.binlog_format = request.param  # type: ignore[attr-defined]
    return oracle


def _hidden(server: Server, tmp_path: Path) -> SourceOracle:
    server.clear()
    run(server, "CREATE DATABASE hidden")
    for table in ("t", "u"):
        run(server, f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT)", database="hidden")
        run(server, f"INSERT INTO {table} VALUES (1, 10), (2, 20)", database="hidden")
    oracle = SourceOracle(server, tmp_path)
    oracle.run()
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


PROCEDURE = (
    "CREATE PROCEDURE p() BEGIN CREATE TEMPORARY TABLE s (i INT); INSERT INTO s SELECT id FROM t; TRUNCATE TABLE t; "
    "ALTER TABLE u ADD COLUMN b INT DEFAULT 4; CREATE INDEX i ON u (a); CREATE TABLE v LIKE u; RENAME TABLE v TO w; "
    "DROP TABLE w; DROP TEMPORARY TABLE s; END"
)


def test_a_procedure_that_has_used_a_temporary_table_changes_real_ones(oracle: SourceOracle) -> None:
    """Each statement behind that in the procedure has the mark of one on a temporary table, in every format."""
    _session(oracle, PROCEDURE, "CALL p()")
    run(oracle.server, "INSERT INTO u (id, a) VALUES (3, 30)", database="hidden")
    oracle.run()

    assert {} == oracle.stopped
    assert {} == oracle.differences("hidden")


def test_rows_that_a_procedure_writes_as_statements_stop_their_tables(oracle: SourceOracle) -> None:
    used = "CREATE TEMPORARY TABLE s (i INT); INSERT INTO s VALUES (1)"
    written = "INSERT INTO t (id, a) VALUES (5, 50); UPDATE u SET a = 1 WHERE id = 1"
    _session(oracle, f"CREATE PROCEDURE p() BEGIN {used}; {written}; END", "CALL p()")
    oracle.run()

    by_rows = oracle.binlog_format == "ROW" or (oracle.binlog_format == "MIXED" and oracle.server.name in ROWS_IN_MIXED)  # type: ignore[attr-defined]
    assert ({"t", "u"} if not by_rows else set()) == {name.table for name in oracle.stopped}
    assert {} == oracle.differences("hidden")


@pytest.mark.parametrize("name", ["mysql9", "mariadb118"])
def test_what_a_session_has_open_is_known_to_later_plans_and_starts(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    oracle = _hidden(server, tmp_path)
    with contextlib.closing(server.connect(database="hidden")) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        for statement in HIDDEN:
            cursor.execute(statement)
            oracle.run()
            assert {} == oracle.differences("hidden"), statement
    run(server, "INSERT INTO t VALUES (3, 30)", "ALTER TABLE u ADD COLUMN b INT DEFAULT 1", database="hidden")
    oracle.run()

    assert {} == oracle.stopped
    assert {} == oracle.differences("hidden")


@pytest.mark.parametrize("name", ["mysql9", "mariadb118"])
def test_a_temporary_table_that_the_log_does_not_begin_stops_the_real_one_when_it_ends(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    oracle = _hidden(server, tmp_path)
    oracle.binlog_format = "STATEMENT"  # type: ignore[attr-defined]
    unlogged = ("SET sql_log_bin = 0", "CREATE TEMPORARY TABLE t (x INT)", "SET sql_log_bin = 1")
    _session(oracle, *unlogged, "TRUNCATE TABLE t", "DROP TABLE t")
    oracle.run()

    assert "whose CREATE is not in the log" in oracle.stopped[TableName("hidden", "t")]
    assert {} == oracle.differences("hidden")


def test_a_table_whose_name_a_temporary_one_has_given_up_is_right_or_stops(oracle: SourceOracle) -> None:
    """MariaDB renames the temporary table, and logs no CREATE of it with ROW; MySQL renames the real one."""
    _session(oracle, "CREATE TEMPORARY TABLE t (x INT)", "RENAME TABLE t TO t3")
    oracle.run()
    present = {str(row[0]) for row in oracle.server.sql("SHOW TABLES FROM hidden")}
    run(oracle.server, f"INSERT INTO {'t' if 't' in present else 't3'} (id, a) VALUES (3, 30)", database="hidden")
    oracle.run()

    unlogged = "t" in present and oracle.binlog_format == "ROW"  # type: ignore[attr-defined]
    not_told = oracle.server.name in (
        "mariadb105",
        "mariadb1011",
    )  # behind an ALTER that failed they rename the real one
    assert set(oracle.differences("hidden")) <= ({"t3"} if unlogged else set())
    assert bool(oracle.stopped) is (unlogged or (not_told and oracle.binlog_format != "ROW"))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "failed", ["ALTER TABLE t CHANGE c d BIGINT", "ALTER TABLE t DROP COLUMN c", "ALTER TABLE t ADD x INT"]
)
def test_a_rename_behind_an_alter_of_a_temporary_table_that_failed_is_right_or_stops(
    oracle: SourceOracle, failed: str
) -> None:
    """MariaDB 10.5 and 10.11 rename the real table then, and the log has neither the ALTER nor a mark."""
    _session(oracle, "CREATE TEMPORARY TABLE t (x INT)", failed, "RENAME TABLE t TO t3")
    oracle.run()
    present = {str(row[0]) for row in oracle.server.sql("SHOW TABLES FROM hidden")}
    run(oracle.server, f"INSERT INTO {'t' if 't' in present else 't3'} (id, a) VALUES (3, 30)", database="hidden")
    oracle.run()

    unlogged = "t" in present and oracle.binlog_format == "ROW"  # type: ignore[attr-defined]
    assert set(oracle.differences("hidden")) <= ({"t3"} if unlogged else set())
    assert {name.table for name in oracle.stopped} <= {"t", "t3"}


def test_a_renamed_temporary_table_does_not_stop_the_real_one_of_its_new_name(oracle: SourceOracle) -> None:
    _session(oracle, "CREATE TEMPORARY TABLE t5 (i INT)", "RENAME TABLE t5 TO u")
    run(oracle.server, "INSERT INTO u VALUES (3, 30)", database="hidden")
    oracle.run()

    assert {} == oracle.stopped
    assert {} == oracle.differences("hidden")
