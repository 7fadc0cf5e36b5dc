"""Copies that are gentle to the server: they wait while it is busy, and are as slow as the limits say."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from typer.testing import CliRunner

from connectors.check import run_checks
from connectors.cli import app
from connectors.config import CopyLimits, load_config
from connectors.monitoring.observer import Observer
from connectors.pipeline.pipeline import Pipeline
from connectors.pipeline.run import run
from databases.replication import follow
from databases.servers import Server
from historian.store import Store
from replicas.first_copies import copying_config, fill
from workload.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 60


def _sleep(connection: pymysql.Connection[Any]) -> None:
    """Runs a statement until somebody ends it."""
    with suppress(pymysql.err.MySQLError):
        connection.query("SELECT SLEEP(300)")


def _wait(is_so: Callable[[], bool]) -> None:
    wait_until(is_so, 60)


@pytest.mark.parametrize("kind", ["mysql8", "mariadb118"])
def test_nothing_is_copied_while_the_server_is_busy_and_the_log_is_followed(
    request: pytest.FixtureRequest,
    kind: str,
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server: Server = request.getfixturevalue(kind)
    fill(server, _ROWS)
    limits = "{threads_running: 8, history_list_length: 1000000000}"
    config = load_config(copying_config(server, tmp_path, backfill=f"{{chunk_rows: 10, pause_above: {limits}}}"))
    stopping = threading.Event()
    busy = [server.connect() for _ in range(8)]
    sleepers = [threading.Thread(target=_sleep, args=(one,)) for one in busy]
    with (
        caplog.at_level(logging.WARNING),
        closing(Store.open(config.history.store)) as store,
        Pipeline.opened(config, spark, Observer()) as pipeline,
    ):
        for sleeper in sleepers:
            sleeper.start()
        _wait(lambda: int(server.sql("SHOW GLOBAL STATUS LIKE 'Threads_running'")[0][1]) > 8)
        runner = threading.Thread(target=pipeline.run, kwargs={"once": False, "until": None, "stopping": stopping})
        runner.start()
        try:
            _wait(lambda: bool(store.copies_wait()))
            server.sql("INSERT INTO c.t VALUES (1000, 'new')")
            _wait(lambda: store.last_plan() is not None)
            assert [0] == [progress.rows for progress in store.copies().values()]
            said = json.loads(CliRunner().invoke(app, ["status", str(config.path), "--no-targets", "--json"]).output)
            assert "threads_running is" in said["copies_wait"]
            for one in busy:
                server.sql(f"KILL {one.thread_id()}")
            for sleeper in sleepers:
                sleeper.join()
            _wait(lambda: all(progress.is_done for progress in store.copies().values()))
        finally:
            stopping.set()
            runner.join()
        assert "" == store.copies_wait()
    told = [record.getMessage() for record in caplog.records if "copies" in record.getMessage()]
    assert ["copies wait, at", "copies go on"] == [text[: len("copies wait, at")].strip() for text in told]


@pytest.mark.parametrize("kind", ["mysql8", "mariadb118"])
def test_copies_wait_while_the_history_list_is_long(
    request: pytest.FixtureRequest, kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(kind)
    fill(server, _ROWS)
    path = copying_config(server, tmp_path, backfill="{chunk_rows: 10, pause_above: {history_list_length: 400}}")
    with closing(Store.open(load_config(path).history.store)) as store:
        with closing(server.connect()) as reading, reading.cursor() as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")  # what it may see is kept
            with closing(server.connect()) as writing, writing.cursor() as updates:
                for number in range(1000):
                    updates.execute(f"UPDATE c.t SET v = 'v{number}' WHERE id = 1")
                    writing.commit()
            run(load_config(path), once=True, spark=spark)
            assert "history_list_length is" in store.copies_wait()
            assert 0 == sum(progress.rows for progress in store.copies().values())

        # A server takes its time to make the list shorter.
        path.write_text(path.read_text().replace("history_list_length: 400", "history_list_length: 1000000000"))
        run(load_config(path), once=True, spark=spark)
        assert [True] == [progress.is_done for progress in store.copies().values()]
        assert "" == store.copies_wait()


@pytest.mark.parametrize("kind", ["mysql8", pytest.param("mariadb118", marks=pytest.mark.soak)])
def test_a_copy_waits_amid_its_rows_while_the_replica_that_gives_them_lags(
    kind: str, fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    primary, replica = fresh_server(kind), fresh_server(kind)
    fill(primary, 200)
    primary.sql("CREATE TABLE c.small (id INT PRIMARY KEY, v INT)")
    primary.sql("INSERT INTO c.small VALUES (1, 0)")
    follow(replica, primary)
    _wait(lambda: _rows(replica, "c.small") == ((1, 0),))
    limits = "{chunk_rows: 10, connections: 1, rows_per_second: 20, pause_above: {replica_lag_seconds: 1}}"
    path = copying_config(replica, tmp_path, backfill=limits)
    path.write_text(path.read_text() + "run: {trigger: 200 ms}\n")
    config, stopping = load_config(path), threading.Event()
    with (
        closing(Store.open(config.history.store)) as store,
        Pipeline.opened(config, spark, Observer()) as pipeline,
        closing(replica.connect()) as holding,
    ):

        def copied() -> int:
            return sum(progress.rows for progress in store.copies().values())

        runner = threading.Thread(target=pipeline.run, kwargs={"once": False, "until": None, "stopping": stopping})
        runner.start()
        try:
            _wait(lambda: copied() > 0)
            # What the replica is about to apply waits for a row that is locked there.
            holding.begin()
            with holding.cursor() as cursor:
                cursor.execute("SELECT * FROM c.small WHERE id = 1 FOR UPDATE")
            primary.sql("UPDATE c.small SET v = 7 WHERE id = 1")
            _wait(lambda: "replica_lag_seconds is " in store.copies_wait())
            rows = copied()
            assert 0 < rows < 201
            time.sleep(1.5)
            assert rows == copied()
            assert 0 == CliRunner().invoke(app, ["backfill", str(path), "--limit", "rows_per_second=off"]).exit_code
            holding.rollback()
            _wait(lambda: all(progress.is_done for progress in store.copies().values()))
        finally:
            stopping.set()
            runner.join()
        assert ("", 201) == (store.copies_wait(), copied())
    assert ((1, 7),) == _rows(replica, "c.small")


def _rows(server: Server, table: str) -> object:
    with suppress(pymysql.err.MySQLError):
        return server.sql(f"SELECT * FROM {table}")


def test_a_run_that_ends_with_its_copies_waits_for_what_the_limits_put_off(
    mysql8: Server, spark: SparkSession, tmp_path: Path
) -> None:
    fill(mysql8, _ROWS)
    path = copying_config(mysql8, tmp_path, backfill="{chunk_rows: 20, connections: 1, bytes_per_second: 2 KB}")
    path.write_text(path.read_text().replace("start: initial", "start: initial_only"))
    begun_s = time.monotonic()

    assert {} == run(load_config(path), spark=spark)

    assert time.monotonic() - begun_s > 1
    with closing(Store.open(load_config(path).history.store)) as store:
        assert [(True, _ROWS)] == [(progress.is_done, progress.rows) for progress in store.copies().values()]


@pytest.mark.parametrize(
    "kind, grant", [("mysql8", "PROCESS"), ("mysql57", "PROCESS"), ("mariadb105", "SLAVE MONITOR")]
)
def test_a_check_names_the_grant_that_a_measure_needs(
    request: pytest.FixtureRequest, kind: str, grant: str, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(kind)
    fill(server, _ROWS)
    limits = "{threads_running: 50, history_list_length: 100000, replica_lag_seconds: 10}"
    path = copying_config(server, tmp_path, backfill=f"{{pause_above: {limits}}}")
    monitor = "BINLOG MONITOR" if server.flavor == "mariadb" else "REPLICATION CLIENT"
    server.sql("ANALYZE TABLE c.t")
    server.sql("CREATE USER checked IDENTIFIED BY 'historian'")
    try:
        server.sql(f"GRANT SELECT, REPLICATION SLAVE, {monitor} ON *.* TO checked")
        path.write_text(path.read_text().replace("user: historian", "user: checked"))
        found = {result.name: result for result in run_checks(load_config(path))}
        measure = "replica_lag_seconds" if server.flavor == "mariadb" else "history_list_length"
        assert f"GRANT {grant} ON *.* TO 'checked'@'%'" == found[f"pause_above.{measure}"].mend
        server.sql(f"GRANT {grant} ON *.* TO checked")
        found = {result.name: result for result in run_checks(load_config(path))}
    finally:
        server.sql("DROP USER checked")

    assert "c.t 60" in found["rows to copy"].found
    assert ["ok", "ok", "failed"] == [r.status for name, r in found.items() if name.startswith("pause_above.")]
    assert "the server follows no source" == found["pause_above.replica_lag_seconds"].found


def test_a_check_warns_of_what_is_read_for_longer_than_binlogs_are_kept(
    mysql8: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(mysql8, _ROWS)
    mysql8.sql("CREATE TABLE c.keyless AS SELECT v FROM c.t")
    mysql8.sql("CREATE TABLE c.small (id INT PRIMARY KEY)")
    mysql8.sql("CREATE TABLE c.words (word VARCHAR(20) PRIMARY KEY) AS SELECT v AS word FROM c.t")
    mysql8.sql("ANALYZE TABLE c.t, c.keyless, c.small, c.words")
    config = load_config(copying_config(mysql8, tmp_path))
    results = {result.name: result.found for result in run_checks(config)}
    assert not [name for name in results if name.startswith("time to read")]
    assert "hours at" not in results["rows to copy"]
    slow = replace(config, source=replace(config.source, backfill=CopyLimits(rows_per_s=1)))
    monkeypatch.setattr("connectors.check.sizes._LONG_S", 60)
    results = {result.name: result.found for result in run_checks(slow)}
    assert results["rows to copy"].startswith("about 180, 0.1 hours at 1 a second; binlogs are kept for ")
    monkeypatch.setattr("connectors.check.sizes.ROWS_PER_S", 1e-6)

    found = {r.name: (r.status, r.mend) for r in run_checks(config) if r.name.startswith("time to read")}

    assert {
        "time to read c.keyless": ("warning", "keep binlogs longer, or give the table a key"),
        "time to read c.words": ("warning", "keep binlogs longer"),
    } == found
