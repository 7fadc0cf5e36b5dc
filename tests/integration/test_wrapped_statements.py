"""Statements inside other statements: what they do to tables is followed, or stops the tables; the server's rows tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from databases.servers import Server
from historian.names import TableName
from logs.binlog_lab import run
from models.source_oracle import SourceOracle

MARIADB = (
    "SET STATEMENT lock_wait_timeout=5 FOR ALTER TABLE prices DROP COLUMN net, ADD COLUMN net INT DEFAULT 0",
    "SET STATEMENT max_statement_time=(1+1), lock_wait_timeout=5 FOR TRUNCATE TABLE prices",
    "SET STATEMENT lock_wait_timeout=5 FOR RENAME TABLE prices TO costs",
    "SET STATEMENT lock_wait_timeout=5 FOR CREATE TABLE more (id INT PRIMARY KEY)",
    "set statement lock_wait_timeout=5 for drop table prices",
    "EXECUTE IMMEDIATE 'ALTER TABLE prices DROP COLUMN net, ADD COLUMN net INT DEFAULT 0'",
    "BEGIN NOT ATOMIC ALTER TABLE prices DROP COLUMN net, ADD COLUMN net INT DEFAULT 0; END",
    "ANALYZE UPDATE prices SET net = 7",
    "ANALYZE FORMAT=JSON INSERT INTO prices VALUES (4, 5, 6)",
    "DROP TABLE /*!50000 wrapped.prices CASCADE */",
    "CREATE OR REPLACE SEQUENCE prices",
)
BOTH = (
    "/*!50000 ALTER TABLE prices DROP COLUMN net, ADD COLUMN net INT DEFAULT 0 */",
    "/*!50000 ALTER */ TABLE prices /*!50000 DROP COLUMN net, */ ADD COLUMN more INT DEFAULT 3",
    "/*!50000 TRUNCATE TABLE */ prices",
    "PREPARE p FROM 'TRUNCATE TABLE prices'",
)


@pytest.fixture
def oracle(server: Server, tmp_path: Path) -> Iterator[SourceOracle]:
    server.clear()
    run(server, "CREATE DATABASE wrapped")
    run(server, "CREATE TABLE prices (id INT PRIMARY KEY, net INT, gross INT)", database="wrapped")
    run(server, "INSERT INTO prices VALUES (1, 100, 119)", database="wrapped")
    oracle = SourceOracle(server, tmp_path)
    oracle.run()
    return oracle


def test_a_statement_in_another_one_does_what_it_does_alone(oracle: SourceOracle) -> None:
    server = oracle.server
    for wrapped in (*BOTH, *(MARIADB if server.flavor == "mariadb" else ())):
        run(server, "DROP TABLE IF EXISTS costs, more", database="wrapped")
        if server.flavor == "mariadb":
            run(server, "DROP SEQUENCE IF EXISTS prices", database="wrapped")
        run(server, "DROP TABLE IF EXISTS prices", database="wrapped")
        run(server, "CREATE TABLE prices (id INT PRIMARY KEY, net INT, gross INT)", database="wrapped")
        executed = ["EXECUTE p"] if wrapped.startswith("PREPARE") else []
        run(server, "INSERT INTO prices VALUES (1, 100, 119)", wrapped, *executed, database="wrapped")
        names = {row[0] for row in server.sql("SHOW FULL TABLES FROM wrapped") if row[1] == "BASE TABLE"}
        if "prices" in names:
            run(server, "INSERT INTO prices (id, gross) VALUES (2, 238)", database="wrapped")
        oracle.run()

        assert {} == oracle.differences("wrapped"), wrapped
        assert {} == oracle.stopped, wrapped


@pytest.mark.parametrize("inner", ['ALTER TABLE wrapped.t ADD b VARCHAR(9) DEFAULT "a"', "TRUNCATE TABLE wrapped.t"])
def test_a_statement_whose_mode_the_log_does_not_tell_stops_its_table(
    inner: str, mariadb118: Server, tmp_path: Path
) -> None:
    """The text is read under the session's own sql_mode, and its event has the one of the statement."""
    run(mariadb118, "DROP DATABASE IF EXISTS wrapped", "CREATE DATABASE wrapped", "CREATE TABLE wrapped.t (a INT)")
    oracle = SourceOracle(mariadb118, tmp_path)
    oracle.run()
    run(mariadb118, f"SET STATEMENT sql_mode='ANSI_QUOTES' FOR {inner}")
    oracle.run()
    run(mariadb118, "DROP DATABASE wrapped")

    assert [TableName("wrapped", "t")] == list(oracle.stopped)
    assert "sql_mode" in oracle.stopped[TableName("wrapped", "t")]
