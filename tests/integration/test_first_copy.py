"""The first copy of tables that hold rows: exact at every plan, under load and statements, on each kind of server."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql
import pytest

from connectors.backfill import selecting
from connectors.backfill.snapshots import snapshot_behind
from connectors.config import CopyLimits
from connectors.readers.binlog.selected.reading import select_rows
from connectors.readers.binlog.transport.connection import ServerAddress
from databases.server_builds import BUILDS
from databases.servers import Server
from historian.errors import SourceError
from historian.positions import LogPosition
from logs.binlog_lab import address
from models.source_oracle import SourceOracle
from replicas.copying_oracle import CopyingOracle
from workload.seeds import seeds

_LIMITS = CopyLimits(chunk_rows=60, connections=2)
_ROWS = 700
_PAUSE_S = 0.005
"""Between a writer's statements: each plan is to have some, and what compares them is to read no more than that."""
_BETWEEN = ("mysql8", "mariadb1011")
"""Servers between the oldest and the newest one of their flavor."""


@pytest.fixture
def copied(server: Server) -> Server:
    """A server of each kind, with tables."""
    server.clear()
    return _filled(server)


@pytest.fixture(params=["mysql57", "mysql8"])
def without_gtids(request: pytest.FixtureRequest, fresh_server: Callable[..., Server]) -> Server:
    """A MySQL server without GTIDs whose transactions stand in the log for a while before they are visible."""
    options = ("gtid_mode=OFF", "enforce_gtid_consistency=OFF", "sync_binlog=0")
    server = _filled(fresh_server(request.param, *options))
    server.sql("SET GLOBAL binlog_group_commit_sync_delay = 10000")
    return server


def _filled(server: Server) -> Server:
    """Tables with every kind of key, with rows."""
    for statement in (
        "CREATE DATABASE c",
        "CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(30), n BIGINT UNSIGNED, d DATETIME(3), j DECIMAL(10,2))",
        "CREATE TABLE c.s (k VARCHAR(20) PRIMARY KEY, v INT) DEFAULT CHARSET utf8mb4",
        "CREATE TABLE c.p (a INT, b VARBINARY(8), v INT, PRIMARY KEY (a, b))",
        "CREATE TABLE c.q (u BIGINT UNSIGNED NOT NULL, v INT, UNIQUE KEY (u))",
        "CREATE TABLE c.bag (a INT, b VARCHAR(10))",
        "CREATE TABLE c.none (id INT PRIMARY KEY)",
    ):
        server.sql(statement)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO c.t VALUES (%s, %s, %s, '2020-01-02 03:04:05.678', %s)",
            [(i * 3, f"v{i}", 2**63 + i, i / 4) for i in range(_ROWS)],
        )
        cursor.executemany("INSERT INTO c.s VALUES (%s, %s)", [(f"Käse {i}", i) for i in range(_ROWS // 2)])
        cursor.executemany("INSERT INTO c.p VALUES (%s, %s, %s)", [(i % 7, bytes([i % 251, 0]), i) for i in range(250)])
        cursor.executemany("INSERT INTO c.q VALUES (%s, %s)", [(2**64 - 1 - i * 5, i) for i in range(_ROWS // 2)])
        cursor.executemany("INSERT INTO c.bag VALUES (%s, 'x')", [(i % 40,) for i in range(200)])
        connection.commit()
    return server


@pytest.mark.parametrize(
    "server", [pytest.param(n, marks=[pytest.mark.soak] * (n in _BETWEEN)) for n in BUILDS], indirect=True
)
def test_each_plan_holds_what_the_source_held_at_its_end(copied: Server, tmp_path: Path) -> None:
    for seed in seeds([1]):
        oracle = CopyingOracle(copied, tmp_path / f"copy{seed}", _LIMITS, "c")
        truth = SourceOracle(copied, tmp_path / f"truth{seed}")
        with _writers(copied, seed, _changes):
            _run_to_the_end(oracle, truth)
        oracle.run()
        assert {} == oracle.stopped
        assert {} == oracle.differences("c")


@pytest.mark.parametrize(
    "server", [pytest.param(n, marks=[pytest.mark.soak] * (n in _BETWEEN)) for n in BUILDS], indirect=True
)
def test_statements_meanwhile_are_followed(copied: Server, tmp_path: Path) -> None:
    for seed in seeds([1]):
        oracle = CopyingOracle(copied, tmp_path / f"copy{seed}", _LIMITS, "c")
        truth = SourceOracle(copied, tmp_path / f"truth{seed}")
        with _writers(copied, seed, _changes, _statements):
            _run_to_the_end(oracle, truth)
        oracle.run()
        assert {} == oracle.stopped
        assert {} == oracle.differences("c")


def test_copies_of_a_server_without_gtids_are_as_exact(without_gtids: Server, tmp_path: Path) -> None:
    oracle = CopyingOracle(without_gtids, tmp_path / "copy", _LIMITS, "c")
    truth = SourceOracle(without_gtids, tmp_path / "truth")
    with _writers(without_gtids, 1, _changes_with_rests):
        _run_to_the_end(oracle, truth)
    oracle.run()
    assert {} == oracle.stopped
    assert {} == oracle.differences("c")


def test_a_snapshot_waits_for_what_stands_in_the_log_and_is_not_visible(
    fresh_server: Callable[..., Server],
) -> None:
    server = fresh_server("mysql8", "gtid_mode=OFF", "enforce_gtid_consistency=OFF", "sync_binlog=0")
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.t (id INT PRIMARY KEY)")
    server.sql("CREATE TABLE c.u (id INT PRIMARY KEY)")
    with server.connect() as left, left.cursor() as cursor:
        for statement in ("XA START 'x'", "INSERT INTO c.u VALUES (7)", "XA END 'x'", "XA PREPARE 'x'"):
            cursor.execute(statement)  # is not waited for either: nobody is there who commits it
    begun = _log_end(server)
    with server.connect() as idle, idle.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        idle.begin()
        cursor.execute("INSERT INTO c.u VALUES (1)")  # is not waited for: nobody commits it
        server.sql("SET GLOBAL binlog_group_commit_sync_delay = 1000000")
        inserted = pool.submit(server.sql, "INSERT INTO c.t VALUES (1)")
        while (end := _log_end(server)) == begun:
            assert not inserted.done()
        assert server.sql("SELECT COUNT(*) FROM c.t") == ((0,),)
        with snapshot_behind(address(server), "mysql", end) as snapshot, snapshot.connection.cursor() as rows:
            rows.execute("SELECT COUNT(*) FROM c.t")
            assert tuple(rows.fetchall()) == ((1,),)
            assert snapshot.whole == end.at
        inserted.result()


@pytest.mark.parametrize("kind", ["mysql57", "mysql8", "mysql9"])
def test_a_snapshot_waits_for_a_gtid_that_stands_in_the_log_and_is_not_visible(
    kind: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(kind)
    _emptied(server)
    with _globals(server, sync_binlog=0, binlog_group_commit_sync_delay=1_000_000), ThreadPoolExecutor(1) as pool:
        begun = _log_end(server)
        inserted = pool.submit(server.sql, "INSERT INTO c.t VALUES (1)")
        while (place := _log_end(server)) == begun:
            assert not inserted.done()
        ((uuid, executed),) = server.sql("SELECT @@server_uuid, @@GLOBAL.gtid_executed")
        gtid = f"{uuid}:{max(int(number) for number in re.findall(rf'{uuid}:1-([0-9]+)', executed)) + 1}"
        end = replace(place, gtids=f"{executed},{gtid}")
        assert ((0, 0),) == server.sql(f"SELECT COUNT(*), GTID_SUBSET('{gtid}', @@GLOBAL.gtid_executed) FROM c.t")
        with snapshot_behind(address(server), "mysql", end) as snapshot, snapshot.connection.cursor() as rows:
            rows.execute("SELECT COUNT(*) FROM c.t")
            assert ((1,),) == tuple(rows.fetchall())
            assert snapshot.executed is not None
            assert snapshot.executed.contains_gtid(gtid)
            assert snapshot.end is not None
            assert snapshot.end.covers(end.at)
        inserted.result()


@pytest.mark.parametrize(
    "kind, is_known",
    [("mariadb1011", True), ("mariadb118", True), ("mariadb118", False)],
    ids=["mariadb1011", "mariadb118", "mariadb118 by its GTID"],
)
def test_a_snapshot_of_mariadb_waits_for_what_stands_in_the_log_and_is_not_visible(
    kind: str, is_known: bool, request: pytest.FixtureRequest
) -> None:
    """A source that waits for a replica's word does so between log and commit; none is there, so it waits for its time-out."""
    server: Server = request.getfixturevalue(kind)
    _emptied(server)
    semi_sync = {"enabled": 1, "timeout": 2000, "wait_point": "'AFTER_SYNC'"}
    with (
        _globals(server, **{f"rpl_semi_sync_master_{name}": value for name, value in semi_sync.items()}),
        ThreadPoolExecutor(1) as pool,
    ):
        begun = _log_end(server)
        inserted = pool.submit(server.sql, "INSERT INTO c.t VALUES (1)")
        while (place := _log_end(server)) == begun:
            assert not inserted.done()
        # What the server calls the end of its log runs ahead of what is visible.
        ((gtids, count),) = server.sql("SELECT @@GLOBAL.gtid_binlog_pos, COUNT(*) FROM c.t")
        assert 0 == count
        with snapshot_behind(address(server), "mariadb", begun) as snapshot:
            assert (begun.at, server.sql("SELECT COUNT(*) FROM c.t")) == (snapshot.end, ((0,),))
            identity = snapshot.server
        end = replace(place, gtids=gtids, server=identity if is_known else "")
        with snapshot_behind(address(server), "mariadb", end) as snapshot, snapshot.connection.cursor() as rows:
            rows.execute("SELECT COUNT(*) FROM c.t")
            assert ((1,),) == tuple(rows.fetchall())
            assert place.at == snapshot.end
        inserted.result()


def _emptied(server: Server) -> None:
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.t (id INT PRIMARY KEY)")


@contextmanager
def _globals(server: Server, **values: object) -> Iterator[None]:
    """The server with these settings; they are what they were behind that."""
    before = {name: server.sql(f"SELECT @@GLOBAL.{name}")[0][0] for name in values}
    try:
        for name, value in values.items():
            server.sql(f"SET GLOBAL {name} = {value}")
        yield
    finally:
        for name, value in before.items():
            server.sql(f"SET GLOBAL {name} = {value!r}")


def test_a_server_without_gtids_is_refused_to_a_user_who_may_not_see_transactions(
    fresh_server: Callable[..., Server],
) -> None:
    server = fresh_server("mysql57", "gtid_mode=OFF", "enforce_gtid_consistency=OFF")
    server.sql("CREATE USER cdc IDENTIFIED BY 'cdc'")
    server.sql("GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO cdc")
    user = ServerAddress(host=server.host, port=server.port, user="cdc", password="cdc")

    with (
        pytest.raises(SourceError, match=r"expected the privilege PROCESS, or gtid_mode=ON; .+ GRANT PROCESS ON"),
        snapshot_behind(user, "mysql", _log_end(server)),
    ):
        pass
    server.sql("GRANT PROCESS ON *.* TO cdc")
    with snapshot_behind(user, "mysql", _log_end(server)):
        pass


def test_no_table_stays_locked_while_another_one_is_read(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables are SELECTed over one connection; a statement on one waits for the SELECT of that one alone."""
    server.clear()
    server.sql("CREATE DATABASE c")
    for name in ("c.first", "c.second"):
        server.sql(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)")
        server.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2), (3, 3)")
    read: list[str] = []

    def rows(connection: Any, version: Any, **named: Any) -> Iterator[Any]:
        table = version.snapshot.name.table
        read.append(table)
        for at, chunk in enumerate(select_rows(connection, version, **named, max_chunk_rows=2)):
            if at == 0 and len(read) == 2:
                with closing(server.connect()) as other, other.cursor() as cursor:
                    cursor.execute("SET SESSION lock_wait_timeout = 1")
                    for name in {"first", "second"} - {table}:
                        cursor.execute(f"ALTER TABLE c.{name} ADD COLUMN w INT DEFAULT 7")
            yield chunk

    monkeypatch.setattr(selecting, "select_rows", rows)
    oracle = CopyingOracle(server, tmp_path, CopyLimits(chunk_rows=10, connections=1), "c")
    oracle.run(plans=1)
    assert sorted(read) == ["first", "second"]
    oracle.run()
    assert len(read) == 3
    assert {} == oracle.stopped
    assert {} == oracle.differences("c")


def _log_end(server: Server) -> LogPosition:
    words = "BINARY LOG" if server.name == "mysql9" else "MASTER"
    file, offset, *_ = server.sql(f"SHOW {words} STATUS")[0]
    return LogPosition(flavor=server.flavor, gtids="", file=file, offset=offset)


def _run_to_the_end(oracle: CopyingOracle, truth: SourceOracle) -> None:
    """Takes plans until all is copied; behind each compares what is copied with what the log, read from its beginning, makes of the tables."""
    for _ in range(300):
        if not oracle.run(plans=1) and oracle.is_done():
            return
        _compare(oracle, truth)
        if oracle.is_done():
            return
    raise AssertionError(f"not copied after 300 plans: {oracle.frontiers()}")


def _compare(oracle: CopyingOracle, truth: SourceOracle) -> None:
    truth.run_until(oracle.end)
    for name in oracle.mirror.snapshots():
        ours, theirs = oracle.rows_of(name), oracle.covered(name, truth.rows_of(name))
        assert (Counter(), Counter()) == (ours - theirs, theirs - ours), f"{name} at {oracle.end}"


@contextmanager
def _writers(server: Server, seed: int, *work: Callable[[random.Random, Any], None]) -> Iterator[None]:
    stop = threading.Event()
    failures: list[BaseException] = []

    def write(number: int, act: Callable[[random.Random, Any], None]) -> None:
        rng = random.Random(f"{seed} {number}")
        try:
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("USE c")
                while not stop.wait(_PAUSE_S):
                    try:
                        act(rng, cursor)
                        if rng.random() < 0.6:
                            connection.commit()
                    except pymysql.err.MySQLError as error:
                        if error.args[0] not in _EXPECTED:
                            raise
                        connection.rollback()
                connection.commit()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=write, args=each) for each in enumerate((work[0], *work))]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert [] == failures


_EXPECTED = (1205, 1213, 1062, 1054, 1146, 1050, 1060, 1091, 1136, 1264, 1412, 1051)
"""Lock wait, deadlock, duplicate key; and what a statement meets that another one has just changed."""


def _changes(rng: random.Random, cursor: Any) -> None:
    cursor.execute(_change(rng))


def _changes_with_rests(rng: random.Random, cursor: Any) -> None:
    """Leaves the table without a key alone for most of the time.

    Without GTIDs it is copied in a moment of a third of a second at which nobody changes it.
    """
    statement = _change(rng)
    if " bag " not in statement or rng.random() < 0.05:
        cursor.execute(statement)


def _change(rng: random.Random) -> str:
    key, other = rng.randrange(3 * _ROWS), rng.randrange(3 * _ROWS)
    return rng.choice(
        (
            f"UPDATE t SET v = '{rng.random():.9f}' WHERE id BETWEEN {key} AND {key + 9}",
            f"DELETE FROM t WHERE id = {key}",
            f"INSERT INTO t (id, v) VALUES ({key}, 'new')",
            f"UPDATE t SET id = {other} WHERE id = {key}",
            f"UPDATE s SET k = 'KÄSE {other}' WHERE k = 'kase {key}'",
            f"UPDATE s SET v = v + 1 WHERE k = 'KASE {key}'",
            f"INSERT INTO s VALUES ('käse {key} ', 1)",
            f"DELETE FROM s WHERE k = 'Kase {key}'",
            f"UPDATE p SET b = x'{other % 256:02x}00', v = v + 1 WHERE a = {key % 7} AND b = x'{key % 251:02x}00'",
            f"UPDATE q SET u = {2**64 - 1 - other} WHERE u = {2**64 - 1 - key}",
            f"UPDATE q SET v = v + 1 WHERE u = {2**64 - 1 - key}",
            f"DELETE FROM bag WHERE a = {key % 40} LIMIT 1",
            f"INSERT INTO bag VALUES ({key % 40}, 'x')",
            f"INSERT INTO none VALUES ({key})",
        )
    )


def _statements(rng: random.Random, cursor: Any) -> None:
    statement = rng.choice(
        (
            f"ALTER TABLE t ADD COLUMN x{rng.randrange(3)} INT DEFAULT {rng.randrange(9)}",
            f"ALTER TABLE t DROP COLUMN x{rng.randrange(3)}",
            f"ALTER TABLE t CHANGE x{rng.randrange(3)} x{rng.randrange(3)} INT",
            f"ALTER TABLE s MODIFY k VARCHAR({rng.choice((30, 40))}) NOT NULL",
            "ALTER TABLE t MODIFY v VARCHAR(60)",
            "RENAME TABLE p TO pp",
            "RENAME TABLE pp TO p",
            "TRUNCATE TABLE none",
            "CREATE TABLE fresh (id INT PRIMARY KEY, v INT)",
            "INSERT INTO fresh VALUES (1, 1), (2, 2)",
            "DROP TABLE fresh",
            "TRUNCATE TABLE bag" if rng.random() < 0.1 else "ANALYZE TABLE bag",
        )
    )
    cursor.execute(statement)
    if cursor.description:
        cursor.fetchall()
    threading.Event().wait(rng.random() * 0.2)
