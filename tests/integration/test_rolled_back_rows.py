"""MariaDB logs transactions that were rolled back where they touched tables without transactions: their rows do not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from databases.servers import Server
from logs.binlog_lab import run
from models.source_oracle import SourceOracle

TEMPORARY = "CREATE TEMPORARY TABLE tt (x INT)"
CASES = {
    "to a savepoint": (
        "INSERT INTO t VALUES (1)",
        "SAVEPOINT s",
        TEMPORARY,
        "INSERT INTO t VALUES (2)",
        "ROLLBACK TO s",
        "INSERT INTO t VALUES (3)",
        "COMMIT",
    ),
    "whole": ("INSERT INTO t VALUES (1)", TEMPORARY, "INSERT INTO t VALUES (2)", "ROLLBACK"),
    "beside MyISAM": ("INSERT INTO t VALUES (1)", "INSERT INTO m VALUES (1)", "INSERT INTO t VALUES (2)", "ROLLBACK"),
    "MyISAM to a savepoint": (
        "INSERT INTO t VALUES (1)",
        "SAVEPOINT s",
        "INSERT INTO m VALUES (1)",
        "INSERT INTO t VALUES (2)",
        "ROLLBACK TO s",
        "COMMIT",
    ),
}


@pytest.mark.parametrize("name", ["mariadb105", "mariadb1011", "mariadb118"])
def test_rows_that_were_rolled_back_are_not_read(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """From what a scan kept as well as from the log: the oracle reads both ways."""
    server: Server = request.getfixturevalue(name)
    server.clear()
    run(server, "CREATE DATABASE undone", "CREATE TABLE undone.t (a INT PRIMARY KEY)")
    run(server, "CREATE TABLE undone.m (a INT) ENGINE=MyISAM")
    oracle = SourceOracle(server, tmp_path)
    oracle.run()
    for case, statements in CASES.items():
        run(server, "BEGIN", *statements, database="undone")
        oracle.run()

        assert {} == oracle.differences("undone"), case
        assert {} == oracle.stopped, case
        run(server, "DELETE FROM t", "TRUNCATE TABLE m", database="undone")
