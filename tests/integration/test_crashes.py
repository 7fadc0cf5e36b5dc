"""Kill the whole run anywhere, lose the store: the lake is what it would have been."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from replica import Replica
from servers import Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPORT = Path(__file__).parent.parent / "support"
PLACES = ("plan_recorded", "files_written", "changelog_committed", "mirror_committed", "plan_written")


@pytest.fixture
def mysql9(fresh_server: Callable[..., Server]) -> Server:
    """A server of this test's own: the log of a shared one holds what other tests write."""
    return fresh_server("mysql9")


@pytest.fixture
def database(mysql9: Server) -> str:
    """A database of this test's own with three tables."""
    name = "crashes"
    mysql9.sql(f"DROP DATABASE IF EXISTS {name}")
    mysql9.sql(f"CREATE DATABASE {name}")
    for table in ("a", "b"):
        mysql9.sql(f"CREATE TABLE {name}.{table} (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
    mysql9.sql(f"CREATE TABLE {name}.nokey (v VARCHAR(20), n INT)")
    return name


def _change(server: Server, database: str, turn: int) -> None:
    """Rows in every table and a DDL, so that a run has edits, appends and merges to be killed in."""
    first = turn * 100
    values = ", ".join(f"({first + at}, 'v{at}', {at})" for at in range(50))
    bag = ", ".join(f"('same', {at % 7})" for at in range(50))
    for table in ("a", "b"):
        server.sql(f"INSERT INTO {database}.{table} (id, v, n) VALUES {values}")
        server.sql(f"UPDATE {database}.{table} SET n = n + 1 WHERE id % 3 = 0")
        server.sql(f"ALTER TABLE {database}.{table} ADD COLUMN c{turn} INT NOT NULL DEFAULT {turn} FIRST")
        server.sql(f"DELETE FROM {database}.{table} WHERE id % 50 = {turn}")
        server.sql(f"UPDATE {database}.{table} SET id = id + 50 WHERE id = {first + 20}")
    server.sql(f"INSERT INTO {database}.nokey VALUES {bag}")


def _run(replica: Replica, place: str) -> str:
    command = [sys.executable, str(SUPPORT / "killed_run.py"), str(replica.path), place]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(SUPPORT), os.environ.get("PYTHONPATH")))),
    }
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=environment)
    expected = 0 if place == "-" else -signal.SIGKILL
    assert done.returncode == expected, done.stderr[-3000:]
    print(done.stdout.strip())
    return done.stdout


@pytest.mark.slow
def test_killed_runs_and_lost_state_leave_the_same_tables(
    mysql9: Server, database: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Five kills, each with new changes to write; then the store goes, twice."""
    killed = Replica(mysql9, tmp_path / "killed", [database])
    for turn, place in enumerate(PLACES):
        _change(mysql9, database, turn)
        assert f"killed at {place}" in _run(killed, place)
    assert "ended" in _run(killed, "-")
    _assert_same(killed, Replica(mysql9, tmp_path / "once", [database]), spark)

    _change(mysql9, database, 10)
    for path in killed.directory.glob("store.db*"):
        path.unlink()
    killed.run(spark)
    _change(mysql9, database, 11)
    killed.run(spark)
    _change(mysql9, database, 12)
    for path in killed.directory.glob("store.db*"):
        path.unlink()
    killed.run(spark)
    _assert_same(killed, Replica(mysql9, tmp_path / "twice", [database]), spark)


def _assert_same(killed: Replica, once: Replica, spark: SparkSession) -> None:
    once.run(spark)
    expected, found = once.raw_changelogs(spark), killed.raw_changelogs(spark)
    assert expected.keys() == found.keys()
    for name, rows in expected.items():
        assert rows == found[name], name
        assert len(rows) > 100
    for path in once.lake.glob("crashes_*"):
        assert _mirror(spark, path) == _mirror(spark, killed.lake / path.name)


def _mirror(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    return sorted(
        (row.asDict() for row in spark.read.format("delta").load(str(path)).collect()), key=lambda row: row["id"]
    )
