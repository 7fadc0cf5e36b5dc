"""Kill the whole run anywhere, lose the store: the lake is what it would have been."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from databases.servers import Server
from lakes.held_rows import held_table
from lakes.killed_run import run_killed
from replicas.replica import Replica
from sinks.delta.log.kernel import Kernel
from workload.run import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 4


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


@pytest.mark.slow
@pytest.mark.parametrize("kills", [10, pytest.param(20, marks=pytest.mark.soak)])
def test_killed_runs_of_a_random_workload_leave_what_the_source_has(
    mysql9: Server, spark: SparkSession, tmp_path: Path, kills: int
) -> None:
    """Each run has SIGKILL a random number of places behind its start, of a log of many plans."""
    recorded = Workload(mysql9, SEED, changes=1_500, ddls=16).run()
    replica = Replica(mysql9, tmp_path / "killed", history="history_{database}_{table}", max_batch="100 kB")
    random = Random(SEED)
    for _ in range(kills):
        told = run_killed(replica.path, str(random.randrange(5, 60)))
        print(told)
        assert told.startswith("killed at")
    replica.run(spark)
    replica.assert_equals(recorded, spark)


@pytest.mark.slow
def test_lost_state_leaves_the_same_tables(mysql9: Server, database: str, spark: SparkSession, tmp_path: Path) -> None:
    """The store goes, twice, each time with new changes to write, first while the mirrors are behind their changelogs."""
    lost = Replica(mysql9, tmp_path / "lost", [database])
    text = lost.path.read_text()
    lost.path.write_text(text.replace("    evolution:", "    mirror_every: 1 hour\n    evolution:"))
    for turn in range(2):
        _change(mysql9, database, turn)
        lost.run(spark)
    mysql9.sql(f"UPDATE {database}.a SET n = -7")
    with pytest.raises(_EndedError):
        lost.run(spark, report=_end)
    behind = _mirror(spark, lost.lake / f"{database}_a")
    assert -7 not in {row["n"] for row in behind}
    _change(mysql9, database, 10)
    for path in lost.directory.glob("store.db*"):
        path.unlink()
    lost.run(spark)
    _change(mysql9, database, 11)
    lost.run(spark)
    _change(mysql9, database, 12)
    for path in lost.directory.glob("store.db*"):
        path.unlink()
    lost.run(spark)
    _assert_same(lost, Replica(mysql9, tmp_path / "once", [database]), spark)


class _EndedError(BaseException):
    """As the end of a process."""


def _end(_: object) -> None:
    """Ends a run behind its first plan."""
    raise _EndedError


def _assert_same(lost: Replica, once: Replica, spark: SparkSession) -> None:
    once.run(spark)
    expected, found = once.raw_changelogs(spark), lost.raw_changelogs(spark)
    assert expected.keys() == found.keys()
    for name, rows in expected.items():
        assert rows == found[name], name
        assert len(rows) > 100
    for path in once.lake.glob("crashes_*"):
        assert _mirror(spark, path) == _mirror(spark, lost.lake / path.name)


def _mirror(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    return held_table(Kernel(spark, "tests"), str(path)).sort_by("id").to_pylist()
