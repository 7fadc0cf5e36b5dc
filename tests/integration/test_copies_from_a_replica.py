"""Rows are copied from a replica: exact while the source is written to, also where the replica lags or has stopped, and refused where it is none."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from connectors.check import run_checks
from connectors.config import load_config
from connectors.monitoring.observer import Observer, on_written
from connectors.pipeline.pipeline import Pipeline
from databases.replication import follow, wait_for
from databases.servers import Server
from historian.errors import SourceError
from historian.store import Store
from logs.binlog_lab import live_reader, run
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 1000


@dataclass
class _Servers:
    source: Server
    replica: Server

    def catch_up(self) -> None:
        """Waits until the replica holds all of the source's log."""
        with closing(live_reader(self.source)) as reader:
            wait_for(self.replica, str(reader.end()))


@pytest.fixture(params=["mysql8", "mariadb118"])
def servers(request: pytest.FixtureRequest, fresh_server: Callable[..., Server]) -> _Servers:
    found = _Servers(source=fresh_server(request.param), replica=fresh_server(request.param))
    follow(found.replica, found.source)
    found.source.sql("CREATE DATABASE c")
    found.source.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v INT)")
    found.source.sql("CREATE TABLE c.keyless (v INT)")
    with found.source.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO c.t VALUES (%s, 0)", [(i * 10,) for i in range(_ROWS)])
        cursor.execute("INSERT INTO c.keyless VALUES (1), (1), (2)")
        connection.commit()
    found.catch_up()
    return found


def _config(servers: _Servers, directory: Path) -> Path:
    server = f"{{host: {servers.replica.host}, port: {servers.replica.port}}}"
    return copying_config(servers.source, directory, backfill=f"{{chunk_rows: 100, connections: 2, server: {server}}}")


def _word(server: Server) -> str:
    return "SLAVE" if server.flavor == "mariadb" else "REPLICA"


class _Writer:
    """Writes to the source until it is told to end: keys come, change, go and move."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        with self._server.connect() as connection, connection.cursor() as cursor:
            number = 0
            while not self._ended.wait(0.01):
                number += 1
                at = number * 7919 % _ROWS * 10
                cursor.execute("UPDATE c.t SET v = v + 1 WHERE id = %s", (at,))
                cursor.execute("INSERT IGNORE INTO c.t VALUES (%s, -1)", (at + number % 9 + 1,))
                cursor.execute("DELETE FROM c.t WHERE id = %s", ((at + 500) % (_ROWS * 10),))
                cursor.execute("UPDATE IGNORE c.t SET id = id + 9991 WHERE id = %s", (at // 2 * 10,))
                cursor.execute("INSERT INTO c.keyless VALUES (%s)", (number % 5,))


def test_rows_come_from_the_replica_while_it_lags_and_stops(
    servers: _Servers,
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("connectors.backfill.replica._WAIT_S", 1.0)
    monkeypatch.setattr("connectors.backfill.pace._LAG_S", 0.5)
    source, replica = servers.source, servers.replica
    config = load_config(_config(servers, tmp_path))
    assert "failed" not in {result.status for result in run_checks(config)}
    for server in (source, replica):
        server.sql("SET GLOBAL log_output = 'TABLE'")
        server.sql("SET GLOBAL general_log = ON")
    stopping, is_stopped = threading.Event(), False

    def report(_: object, stopped: object) -> None:
        nonlocal is_stopped
        assert not stopped
        with closing(Store.open(config.history.store)) as store:
            keyed = max((progress.rows for progress in store.copies().values()), default=0)
            if keyed > 200 and not is_stopped:
                is_stopped = True
                run(replica, f"STOP {_word(replica)} SQL_THREAD")
            elif is_stopped and store.copies_wait():
                run(replica, f"START {_word(replica)} SQL_THREAD")
            if all(progress.is_done for progress in store.copies().values()):
                stopping.set()

    with (
        caplog.at_level(logging.WARNING),
        _Writer(source),
        Pipeline.opened(config, spark, on_written(report)) as pipeline,
    ):
        pipeline.run(once=False, until=None, stopping=stopping)
    with Pipeline.opened(config, spark, on_written(report)) as pipeline:
        pipeline.run(once=True, until=None, stopping=threading.Event())

    rows = spark.read.format("delta").load(f"{tmp_path}/lake/c_t").collect()
    assert sorted(source.sql("SELECT id, v FROM c.t")) == sorted((row.id, row.v) for row in rows)
    counted = spark.sql(
        f"SELECT v, SUM(CASE WHEN op IN (0, 3) THEN 1 ELSE -1 END) AS n FROM delta.`{tmp_path}/lake/c_keyless_changes` GROUP BY v"
    )
    expected = source.sql("SELECT v, COUNT(*) FROM c.keyless GROUP BY v")
    assert sorted(expected) == sorted((row.v, row.n) for row in counted.collect())
    asked = "SELECT COUNT(*) > 0 FROM mysql.general_log WHERE argument REGEXP '^SELECT.*FROM .c.[.].t.' AND argument NOT LIKE '%general_log%'"
    assert [((0,),), ((1,),)] == [source.sql(asked), replica.sql(asked)]
    assert "the replica lacks" in caplog.text
    assert "copies go on" in caplog.text


def test_a_replica_with_a_filter_or_transactions_of_its_own_is_refused(
    servers: _Servers, spark: SparkSession, tmp_path: Path
) -> None:
    config, replica = load_config(_config(servers, tmp_path)), servers.replica
    is_mariadb = replica.flavor == "mariadb"
    ignored = (
        "SET GLOBAL replicate_ignore_db = '{}'"
        if is_mariadb
        else "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = ({})"
    )
    run(replica, f"STOP {_word(replica)}", ignored.format("x"))
    assert ["backfill.server.filters"] == [r.name for r in run_checks(config) if r.status == "failed"]
    run(replica, ignored.format(""), f"START {_word(replica)}")
    replica.sql("INSERT INTO c.t VALUES (-1, -1)")
    found = {result.name: result for result in run_checks(config) if result.status == "failed"}

    assert ["backfill.server.transactions"] == list(found)
    with (
        Pipeline.opened(config, spark, Observer()) as pipeline,
        pytest.raises(SourceError, match="a replica that has transactions of its own"),
    ):
        pipeline.run(once=True, until=None, stopping=threading.Event())
