"""``historian backfill``: tables are copied again, copies rest, go on and end, and what cannot be is told with a next step."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.monitoring.observer import Observer, on_written
from connectors.pipeline.pipeline import Pipeline
from connectors.pipeline.run import run
from databases.servers import Server
from historian.plans.plans import Plan
from historian.store import Store
from replicas.first_copies import copying_config
from replicas.tracked import unlogged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 60
_SLOW = "{chunk_rows: 10, rows_per_second: 10}"


@pytest.fixture
def filled(mysql9: Server) -> Server:
    mysql9.clear()
    mysql9.sql("CREATE DATABASE c")
    for table in ("t", "u"):
        mysql9.sql(f"CREATE TABLE c.{table} (id INT PRIMARY KEY, v VARCHAR(20))")
        with mysql9.connect() as connection, connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO c.{table} VALUES (%s, %s)", [(i, f"v{i}") for i in range(_ROWS)])
            connection.commit()
    return mysql9


def test_targets_get_what_differs_of_each_table_that_is_copied_again(
    filled: Server, spark: SparkSession, tmp_path: Path
) -> None:
    path = copying_config(filled, tmp_path)
    assert {} == run(load_config(path), once=True, spark=spark)
    for table in ("t", "u"):
        unlogged(filled, f"UPDATE c.{table} SET v = 'unseen' WHERE id = 5", f"DELETE FROM c.{table} WHERE id = 6")

    code, said = _backfill(path, "--table", "c.t", "--table", "c.u")
    assert (0, 2) == (code, said.count("59 rows read at")), said
    # What the first of the two reads is not asked for again, when the table is another one.
    filled.sql("ALTER TABLE c.t ADD COLUMN later INT DEFAULT 7")
    assert {} == run(load_config(path), once=True, spark=spark)

    assert _differing(filled, spark, tmp_path) == []
    repairs = spark.read.format("delta").load(f"{tmp_path}/lake/historian_repairs").collect()
    assert [("c.t", 2), ("c.u", 2)] == sorted((row.table, row.rows_changed) for row in repairs)


def test_a_cancelled_copy_stops_its_table_alone_until_it_is_copied_again(
    filled: Server, spark: SparkSession, tmp_path: Path
) -> None:
    path = copying_config(filled, tmp_path, backfill=_SLOW)
    run(load_config(path), once=True, spark=spark)
    begun, other = _by_progress(path)
    code, said = _backfill(path, "--table", begun)
    assert (True, True) == (code != 0, "the table's copy is under way" in said and f"--cancel --table {begun}" in said)

    assert 0 == _backfill(path, "--cancel", "--table", begun)[0]
    assert {begun: "ends with the next plan"}.items() <= _copies(path).items()
    _quicken(path)
    filled.sql(f"UPDATE {begun} SET v = 'behind' WHERE id = 1")
    filled.sql(f"UPDATE {other} SET v = 'behind' WHERE id = 59")
    run(load_config(path), once=True, spark=spark)
    assert {begun: "stopped", other: "done"} == _copies(path)
    assert [begun] == _differing(filled, spark, tmp_path)
    (stop,) = _stops(path)
    assert stop.startswith("its copy was cancelled with 20 rows copied\n")
    run(load_config(path), once=True, spark=spark)
    assert [stop] == _stops(path), "it came back by itself"
    code, said = _backfill(path, "--cancel", "--table", begun)
    assert (True, True) == (code != 0, "no copy of the table is under way" in said)

    assert 0 == _backfill(path, "--table", begun)[0]
    filled.sql(f"INSERT INTO {begun} VALUES (1000, 'later')")
    assert {} == run(load_config(path), once=True, spark=spark)
    assert _differing(filled, spark, tmp_path) == []
    assert {begun: "done", other: "done"} == _copies(path)


def test_copies_rest_and_go_on_while_a_run_follows_changes(filled: Server, spark: SparkSession, tmp_path: Path) -> None:
    path = copying_config(filled, tmp_path, backfill=_SLOW)
    run(load_config(path), once=True, spark=spark)
    begun, other = _by_progress(path)
    assert 0 == _backfill(path, "--pause")[0]
    _quicken(path)
    path.write_text(path.read_text() + "run: {trigger: 200 ms}\n")
    filled.sql(f"UPDATE {begun} SET v = 'meanwhile' WHERE id = 1")

    with closing(_Running(path, spark)) as running:
        running.wait(lambda: _value(spark, tmp_path, begun) == "meanwhile")
        assert {begun: "copying", other: "waiting"} == _copies(path)
        status = CliRunner().invoke(app, ["status", str(path), "--no-targets"]).output
        assert "paused; `historian backfill CONFIG --resume`" in status
        assert 0 == _backfill(path, "--resume")[0]
        running.wait(lambda: set(_copies(path).values()) == {"done"})

    assert _differing(filled, spark, tmp_path) == []


def test_limits_change_while_a_run_copies(filled: Server, spark: SparkSession, tmp_path: Path) -> None:
    path = copying_config(filled, tmp_path, backfill="{chunk_rows: 10, connections: 1, bytes_per_second: 1}")
    path.write_text(path.read_text() + "run: {trigger: 200 ms}\n")

    with closing(_Running(path, spark)) as running:
        running.wait(lambda: "copying" in _copies(path).values())
        # As it is configured, the rest would take an hour.
        code, said = _backfill(path, "--limit", "bytes_per_second=off", "--limit", "pause_above.threads_running=500")
        expected = "copies go on with these limits: connections 1, pause_above.threads_running 500\n"
        assert (0, expected) == (code, said)
        assert 0 == _backfill(path, "--limit", "connections=2")[0]
        running.wait(lambda: set(_copies(path).values()) == {"done"})

    assert _differing(filled, spark, tmp_path) == []
    told = {name: (each["value"], each["is_configured"]) for name, each in _status(path)["copy_limits"].items()}
    assert {
        "connections": (2, False),
        "rows_per_second": (0, True),
        "bytes_per_second": (0, False),
        "pause_above.threads_running": (500, False),
        "pause_above.history_list_length": (None, True),
        "pause_above.replica_lag_seconds": (None, True),
    } == told
    text = CliRunner().invoke(app, ["status", str(path), "--no-targets"]).output
    assert "bytes_per_second 0 (by `historian backfill --limit`)" in " ".join(text.split())
    assert 0 == _backfill(path, "--limit", "connections=")[0]
    assert {"value": 1, "is_configured": True} == _status(path)["copy_limits"]["connections"]


def test_a_table_that_is_healed_meanwhile_leaves_copies_of_others_whole(
    filled: Server, spark: SparkSession, tmp_path: Path
) -> None:
    path = copying_config(filled, tmp_path, backfill=_SLOW)
    filled.sql("CREATE TABLE c.w (id INT PRIMARY KEY)")
    run(load_config(path), once=True, spark=spark)
    unlogged(filled, "ALTER TABLE c.w ADD COLUMN x INT FIRST")
    filled.sql("INSERT INTO c.w VALUES (1, 2)")
    run(load_config(path), once=True, spark=spark)
    filled.sql("UPDATE c.t SET v = 'beyond' WHERE id = 55")
    filled.sql("DELETE FROM c.u WHERE id = 56")

    healed = CliRunner().invoke(app, ["heal", str(path), "--table", "c.w", "--repair"])
    assert 0 == healed.exit_code, healed.output
    _quicken(path)
    assert {} == run(load_config(path), once=True, spark=spark)

    assert _differing(filled, spark, tmp_path) == []
    changes = spark.read.format("delta").load(f"{tmp_path}/lake/c_t_changes").where("id = 55").orderBy("offset")
    assert [(0, "beyond")] == [(row.op, row.v) for row in changes.collect()]


def test_tables_that_cannot_be_copied_again_are_told_with_a_next_step(
    filled: Server, spark: SparkSession, tmp_path: Path
) -> None:
    path = copying_config(filled, tmp_path)
    code, said = _backfill(path, "--table", "c.t")
    assert (True, True) == (code != 0, "there is no history yet" in said)
    run(load_config(path), once=True, spark=spark)
    unlogged(filled, "ALTER TABLE c.u ADD COLUMN x INT FIRST")
    filled.sql("INSERT INTO c.u VALUES (1, 2000, 'x')")
    run(load_config(path), once=True, spark=spark)

    for table, reason in {
        "d.t": "expected a pattern that matches d.t @ $.source.tables",
        "c.none": "check the name; a table that is new at the source comes with `historian run --once`",
        "c.u": "`historian heal CONFIG --table c.u --repair` captures it again and copies it",
    }.items():
        code, said = _backfill(path, "--table", table)
        assert (True, True) == (code != 0, reason in " ".join(said.split())), said
    for wrong in ((), ("--pause", "--resume"), ("--pause", "--table", "c.t"), ("--cancel",)):
        assert 2 == _backfill(path, *wrong)[0]


def test_small_tables_do_not_wait_for_a_large_one(mysql9: Server, spark: SparkSession, tmp_path: Path) -> None:
    """Of 150 tables with a row, and a first one of which a plan takes a fortieth at most."""
    mysql9.clear()
    mysql9.sql("CREATE DATABASE c")
    with mysql9.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE c.a_large (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO c.a_large VALUES " + ", ".join(f"({i})" for i in range(400)))
        for number in range(150):
            cursor.execute(f"CREATE TABLE c.t{number} (id INT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO c.t{number} VALUES (1)")
        connection.commit()
    mysql9.sql("ANALYZE TABLE c.a_large")
    path = copying_config(mysql9, tmp_path, backfill="{chunk_rows: 10, connections: 1}")
    plans: list[Plan] = []

    run(load_config(path), once=True, spark=spark, observer=on_written(lambda plan, _: plans.append(plan)))

    begun = [plan.number for plan in plans for table in plan.tables if table.copy is not None and table.copy.rows == 1]
    assert (150, True) == (len(begun), len(set(begun)) <= 5)
    others = [
        plan.number for plan in plans for table in plan.tables if table.copy is not None and table.copy.rows == 10
    ]
    assert (40, True) == (len(others), max(begun) <= min(others) + 1)


class _Running:
    """A run in a thread, which ends with :meth:`close`."""

    def __init__(self, path: Path, spark: SparkSession) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(path, spark))
        self._thread.start()

    def _run(self, path: Path, spark: SparkSession) -> None:
        with Pipeline.opened(load_config(path), spark, Observer()) as pipeline:
            pipeline.run(once=False, until=None, stopping=self._stopping)

    def wait(self, is_so: Callable[[], bool]) -> None:
        end_s = time.monotonic() + 60
        while not is_so():
            assert self._thread.is_alive()
            assert time.monotonic() < end_s
            time.sleep(0.3)

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()


def _backfill(path: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["backfill", str(path), *arguments])
    return done.exit_code, done.output


def _quicken(path: Path) -> None:
    path.write_text(path.read_text().replace(", rows_per_second: 10", ""))


def _status(path: Path) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["status", str(path), "--json", "--no-targets"])
    if "the connector has not run yet" in done.output:
        return {"copies": []}  # a run beside the test may be about to
    assert done.stdout, (done.stderr, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _copies(path: Path) -> dict[str, str]:
    return {copy["table"]: copy["state"] for copy in _status(path)["copies"]}


def _stops(path: Path) -> list[str]:
    with closing(Store.open(load_config(path).history.store)) as store:
        return [stop.reason for _, _, stop in store.stopped()]


def _by_progress(path: Path) -> list[str]:
    """The table of which some rows are copied, and the one of which none are."""
    return sorted(copies := _copies(path), key=lambda table: ["copying", "waiting"].index(copies[table]))


def _value(spark: SparkSession, directory: Path, table: str) -> str:
    """What the mirror holds in the first row."""
    row = spark.read.format("delta").load(f"{directory}/lake/{table.replace('.', '_')}").where("id = 1").first()
    return "" if row is None else str(row.v)


def _differing(server: Server, spark: SparkSession, directory: Path) -> list[str]:
    """The tables whose mirror is not what the server holds."""
    found = []
    for table in ("t", "u"):
        columns = [name for name, *_ in server.sql(f"SHOW COLUMNS FROM c.{table}")]
        rows = spark.read.format("delta").load(f"{directory}/lake/c_{table}").collect()
        ours = sorted(tuple(row[name] for name in columns) for row in rows)
        if sorted(server.sql(f"SELECT {', '.join(columns)} FROM c.{table}")) != ours:
            found.append(f"c.{table}")
    return found
