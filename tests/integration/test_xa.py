"""Transactions that are prepared, committed later, or rolled back in part, on real servers through the tracker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.recovery.healing import skip_lost_log
from connectors.tracking.tracker import Tracker
from databases.replication import follow, promote, wait_for
from databases.servers import Server
from historian.errors import LogPurged
from historian.plans.plans import Plan
from logs.binlog_lab import live_reader
from replicas.tracked import Tracked, delivered


class Sessions:
    """Connections by name, opened when they first run something."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._open: dict[str, Any] = {}

    def run(self, session: str, *statements: str) -> None:
        if session not in self._open:
            self._open[session] = self._server.connect(database="xa_it")
        with self._open[session].cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def prepare(self, session: str, *statements: str, xid: str = "") -> None:
        named = xid or f"'{session}'"
        self.run(session, f"XA START {named}", *statements, f"XA END {named}", f"XA PREPARE {named}")

    def close(self, *names: str) -> None:
        for name in names or list(self._open):
            self._open.pop(name).close()


@contextmanager
def sessions(server: Server) -> Iterator[Sessions]:
    with closing(Sessions(server)) as opened:
        yield opened


class Rows:
    """What a connector delivers of its tables, plan by plan: (table, op, columns a) in order."""

    def __init__(self, tracked: Tracked) -> None:
        self.tracked = tracked
        self.last = 0

    def news(self, **changed: Any) -> list[tuple[str, str, int]]:
        tracked = Tracked(replace(self.tracked.config, source=replace(self.tracked.config.source, **changed)))
        found = []
        with tracked.tracker() as tracker:
            while (plan := tracker.plan_after(self.last)) is not None:
                found += of(tracker, plan)
                self.last = plan.number
        return found


def of(tracker: Tracker, plan: Plan) -> list[tuple[str, str, int]]:
    rows = delivered(tracker, plan)
    return [(table, op, data["a"]) for table, changes in rows.items() for op, data in changes]


def a(*values: int, table: str = "t") -> list[tuple[str, str, int]]:
    return [(table, "+A", value) for value in values]


def tables(server: Server) -> None:
    server.sql("DROP DATABASE IF EXISTS xa_it")
    server.sql("CREATE DATABASE xa_it")
    server.sql("CREATE TABLE xa_it.t (a INT PRIMARY KEY, b VARCHAR(40))")
    server.sql("CREATE TABLE xa_it.m (a INT, b INT) ENGINE=MyISAM")


def test_rows_come_when_their_transaction_is_committed(server: Server, tmp_path: Path) -> None:
    tables(server)
    with sessions(server) as at:
        at.prepare("early", "INSERT INTO t VALUES (1, 'from before the start')")
        server.sql("FLUSH BINARY LOGS")
        tracked = Tracked.of(server, tmp_path, "xa_it")
        tracked.begin()
        rows = Rows(tracked)
        at.prepare("x", "INSERT INTO t VALUES (2, 'x')", "INSERT INTO t VALUES (3, 'x')", xid="'g','branch',77")
        at.run("plain", "INSERT INTO t VALUES (4, 'plain')")
        assert rows.news() == a(4)

        at.run("plain", "CREATE TABLE u (a INT PRIMARY KEY)", "FLUSH BINARY LOGS")
        at.prepare("y", "INSERT INTO t VALUES (5, 'y')", "INSERT INTO u VALUES (1)")
        at.prepare("z", "INSERT INTO t VALUES (6, 'z')")
        at.run("y", "XA COMMIT 'y'")
        at.run("plain", "INSERT INTO t VALUES (7, 'plain')")
        at.run("early", "XA COMMIT 'early'")
        at.run("x", "XA COMMIT 'g','branch',77")
        assert rows.news() == [*a(5, 7, 1, 2, 3), *a(1, table="u")]

        at.run("z", "XA ROLLBACK 'z'")
        at.run("one", "XA START 'o'", "INSERT INTO t VALUES (8, 'one')", "XA END 'o'", "XA COMMIT 'o' ONE PHASE")
        at.prepare("none", "SELECT * FROM t")
        at.run("none", "XA COMMIT 'none'")
        at.prepare(
            "last", "INSERT INTO t VALUES (9, 'one')", "SAVEPOINT s", "INSERT INTO t VALUES (10, '')", "ROLLBACK TO s"
        )
        assert rows.news() == a(8)
        at.run("last", "XA COMMIT 'last'")
        assert rows.news() == a(9)


def test_a_prepared_transaction_in_a_compressed_log(mysql8: Server, mysql9: Server, tmp_path: Path) -> None:
    for server in (mysql8, mysql9):
        tables(server)
        tracked = Tracked.of(server, tmp_path / server.name, "xa_it")
        tracked.begin()
        rows = Rows(tracked)
        with sessions(server) as at:
            at.run("x", "SET SESSION binlog_transaction_compression = ON")
            at.run("off", "SET SESSION xa_detach_on_prepare = OFF")
            at.prepare("x", "INSERT INTO t VALUES (1, REPEAT('x', 40))")
            at.prepare("off", "INSERT INTO t VALUES (2, '')")
            at.run("plain", "INSERT INTO t VALUES (3, '')")
            at.run("off", "XA COMMIT 'off'")
            assert rows.news() == a(3, 2)
            at.run("x", "XA COMMIT 'x'")
            assert rows.news() == a(1)


def test_parts_that_were_rolled_back_are_not_delivered(server: Server, tmp_path: Path) -> None:
    """MariaDB logs them where a table without transactions was written to; MySQL refuses that where GTIDs are on."""
    tables(server)
    tracked = Tracked.of(server, tmp_path, "xa_it")
    tracked.begin()
    mixed = [] if server.flavor == "mysql" else ["INSERT INTO m VALUES (1, 1)"]
    with sessions(server) as at:
        at.run("s", "BEGIN", "INSERT INTO t VALUES (1, '')", *mixed, "ROLLBACK", "INSERT INTO t VALUES (2, '')")
        at.run("s", "BEGIN", "INSERT INTO t VALUES (3, '')", "SAVEPOINT `S p`", "INSERT INTO t VALUES (4, '')", *mixed)
        at.run("s", "ROLLBACK TO `s P`", "INSERT INTO t VALUES (5, '')", "COMMIT", "INSERT INTO m VALUES (9, 9)")
        expected = [(value,) for value in (2, 3, 5)]
        assert server.sql("SELECT a FROM xa_it.t ORDER BY a") == tuple(expected)
    news = sorted(Rows(tracked).news())
    assert news == sorted([*a(2, 3, 5), *a(*([1, 1] if mixed else []), 9, table="m")])


def test_without_gtids_over_a_restart_a_rename_and_a_purge(fresh_server: Callable[..., Server], tmp_path: Path) -> None:
    """MySQL 5.7 holds no lock for a prepared transaction whose client is gone, so its table can change."""
    server = fresh_server("mysql57", "gtid_mode=OFF", "enforce_gtid_consistency=OFF")
    tables(server)
    tracked = Tracked.of(server, tmp_path, "xa_it")
    tracked.begin()
    rows = Rows(tracked)
    with sessions(server) as at:
        at.prepare("x", "INSERT INTO t VALUES (1, 'x')")
        at.prepare("gone", "INSERT INTO m VALUES (7, 7)", "INSERT INTO t VALUES (2, 'gone')")
        at.run("s", "BEGIN", "INSERT INTO t VALUES (3, '')", "DROP TEMPORARY TABLE IF EXISTS none", "ROLLBACK")
        at.run("s", "INSERT INTO t VALUES (4, '')")
        assert sorted(rows.news()) == sorted([*a(4), *a(7, table="m")])
    server.restart()
    server.sql("RENAME TABLE xa_it.t TO xa_it.renamed")
    assert rows.news() == []
    with sessions(server) as at:
        at.run("s", "INSERT INTO renamed VALUES (5, '')", "XA COMMIT 'x'", "INSERT INTO renamed VALUES (6, '')")
        assert rows.news() == a(5, 1, 6, table="renamed")

        at.run("s", "FLUSH BINARY LOGS", "INSERT INTO renamed VALUES (8, '')")
        assert rows.news() == a(8, table="renamed")
        first, last = (server.sql("SHOW BINARY LOGS")[index][0] for index in (0, -1))
        # A log that a dump was just reading is kept until the server notices that nobody reads it any more.
        while server.sql("SHOW BINARY LOGS")[0][0] != last:
            at.run("s", f"PURGE BINARY LOGS TO '{last}'")
        at.run("s", "XA COMMIT 'gone'")
        with pytest.raises(LogPurged, match="rows of a committed XA transaction are not in the log") as raised:
            rows.news()
        assert "X'676f6e65',X'',1" in str(raised.value.where)
        assert f"prepared at {first}" in str(raised.value.expected)
        assert "--lost-log" in str(raised.value.next_step)
        with tracked.tracker() as tracker:
            skip_lost_log(tracker)
        rows.last += 1
        at.run("s", "INSERT INTO renamed VALUES (10, '')")
        assert rows.news() == a(10, table="renamed")


@pytest.mark.parametrize("name", ["mysql8", "mariadb118"])
def test_a_transaction_prepared_on_one_server_and_committed_on_another(
    name: str, fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    primary, other = fresh_server(name), fresh_server(name, "server_id=4711")
    for _ in range(3):
        other.sql("FLUSH BINARY LOGS")  # the files of its log have other numbers
    follow(other, primary)
    tables(primary)
    tracked = Tracked.of(primary, tmp_path, "xa_it")
    tracked.begin()
    rows = Rows(tracked)
    with ExitStack() as stack:
        here, there = stack.enter_context(sessions(primary)), stack.enter_context(sessions(other))
        here.prepare("x", "INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (2, 'x')")
        here.prepare("y", "INSERT INTO t VALUES (3, 'y')")
        here.run("s", "INSERT INTO t VALUES (4, '')")
        assert rows.news() == a(4)
        with closing(live_reader(primary)) as reader:
            wait_for(other, reader.end().gtids)
        promote(other)
        moved = {"host": other.host, "port": other.port}
        there.run("s", "INSERT INTO t VALUES (5, '')", "XA COMMIT 'x'", "INSERT INTO t VALUES (6, '')")
        assert rows.news(**moved) == a(5, 1, 2, 6)
        there.run("s", "FLUSH BINARY LOGS", "XA ROLLBACK 'y'", "INSERT INTO t VALUES (7, '')")
        assert rows.news(**moved) == a(7)


def test_a_plan_made_on_one_server_is_read_on_another(fresh_server: Callable[..., Server], tmp_path: Path) -> None:
    primary, other = fresh_server("mariadb118"), fresh_server("mariadb118", "server_id=4711")
    follow(other, primary)
    tables(primary)
    tracked = Tracked.of(primary, tmp_path, "xa_it")
    tracked.begin()
    with sessions(primary) as at, tracked.tracker() as tracker:
        at.prepare("x", "INSERT INTO t VALUES (1, 'x')")
        assert tracker.plan_after(0) is not None
        at.prepare("y", "INSERT INTO t VALUES (2, 'y')")
        at.run("s", "BEGIN", "INSERT INTO t VALUES (3, '')", "INSERT INTO m VALUES (1, 1)", "ROLLBACK")
        at.run("y", "XA COMMIT 'y'")
        at.run("x", "XA COMMIT 'x'")
        plan = tracker.plan_after(1)
        assert plan is not None
        expected = [*a(1, table="m"), *a(2, 1)]
        assert sorted(of(tracker, plan)) == sorted(expected)
        wait_for(other, tracker.reader.end().gtids)
    moved = Tracked(replace(tracked.config, source=replace(tracked.config.source, host=other.host, port=other.port)))
    with moved.tracker() as tracker:
        assert sorted(of(tracker, plan)) == sorted(expected)
