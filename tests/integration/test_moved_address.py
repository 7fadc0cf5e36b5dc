"""An address that leads to another server amid a copy: rows of one server are never brought back by the log of another.

The other server is an asynchronous replica that took over. It holds the plan's end, and lacks the last transactions of the server before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from connectors.backfill import affected, rows_of_keys, selecting, selection
from connectors.backfill.replica import OwnTransactions, Replica
from connectors.backfill.snapshots import snapshot_behind
from connectors.backfill.spool import Spool
from connectors.config import CopyLimits
from connectors.readers.binlog.transport.connection import ConnectionLost
from connectors.recovery.repairing import read_whole
from connectors.recovery.repairing_rows import repair_rows
from connectors.tracking.tracker import Tracker
from databases.moving_address import MovingAddress
from databases.replication import follow, promote, wait_for
from databases.servers import Server
from historian.names import TableName
from historian.positions import LogPosition
from logs.binlog_lab import address as reached_at
from replicas.copying_oracle import CopyingOracle

_ROWS = 100
_LIMITS = CopyLimits(chunk_rows=30, connections=1)
_LOST = (
    "INSERT INTO c.t VALUES (5, -1)",
    "UPDATE c.t SET v = -1 WHERE id = 20",
    "DELETE FROM c.t WHERE id = 40",
    "INSERT INTO c.bag VALUES (5), (5)",
    "DELETE FROM c.bag WHERE v = 2",
    "INSERT INTO c.child VALUES (9, 2)",
)
_MYSQL = pytest.mark.parametrize("servers", ["mysql8"], indirect=True)


@dataclass(frozen=True)
class _Servers:
    """The server that is asked first, and the one that takes over."""

    first: Server
    other: Server
    address: MovingAddress

    @property
    def reached(self) -> Server:
        """Whichever the address leads to."""
        return replace(self.first, port=self.address.port)

    def lose(self, position: LogPosition) -> None:
        """The other server holds all up to *position*, and goes on alone; what the first one has then is lost."""
        wait_for(self.other, position.gtids)
        promote(self.other)
        for statement in _LOST:
            self.first.sql(statement)

    def move(self) -> None:
        """The address leads to the other server; connections that are there stay."""
        self.address.leads_to(self.other)


@pytest.fixture
def servers(request: pytest.FixtureRequest, fresh_server: Callable[..., Server]) -> Iterator[_Servers]:
    first, other = fresh_server(request.param), fresh_server(request.param, "server_id=4711")
    follow(other, first)
    first.sql("CREATE DATABASE c")
    with first.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE c.t (id INT PRIMARY KEY, v INT)")
        cursor.execute("CREATE TABLE c.bag (v INT)")
        cursor.execute("CREATE TABLE c.parent (id INT PRIMARY KEY)")
        cursor.execute(
            "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c.parent (id) ON DELETE CASCADE)"
        )
        cursor.executemany("INSERT INTO c.t VALUES (%s, 0)", [(i * 10,) for i in range(_ROWS)])
        cursor.executemany("INSERT INTO c.bag VALUES (%s)", [(i % 7,) for i in range(_ROWS)])
        cursor.execute("INSERT INTO c.parent VALUES (1), (2)")
        cursor.execute("INSERT INTO c.child VALUES (1, 1), (2, 2)")
    with closing(MovingAddress(first)) as address:
        yield _Servers(first, other, address)


def _around_the_snapshot(
    monkeypatch: pytest.MonkeyPatch, owner: Any, before: Callable[[LogPosition], None], behind: Callable[[], None]
) -> None:
    """Lets *before* happen once right before a snapshot, with what that holds at least, and *behind* right behind it."""
    left = [before]

    @contextmanager
    def taken(*arguments: Any, **named: Any) -> Iterator[Any]:
        is_now = bool(left)
        while left:
            left.pop()(arguments[2])
        with snapshot_behind(*arguments, **named) as snapshot:
            if is_now:
                behind()
            yield snapshot

    monkeypatch.setattr(owner, "snapshot_behind", taken)


def _assert_whole(oracle: CopyingOracle) -> None:
    oracle.run()
    assert {} == oracle.stopped
    assert {} == oracle.differences("c")


@pytest.mark.parametrize(
    "servers, owner",
    [
        pytest.param("mysql8", selecting, id="mysql8, keyed"),
        pytest.param("mysql8", selection, id="mysql8, keyless"),
        pytest.param("mariadb118", selecting, id="mariadb118, keyed"),
        pytest.param("mariadb118", selection, id="mariadb118, keyless", marks=pytest.mark.soak),
    ],
    indirect=["servers"],
)
def test_rows_of_one_server_are_not_brought_back_by_the_log_of_another(
    owner: Any, servers: _Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _around_the_snapshot(monkeypatch, owner, servers.lose, servers.move)
    oracle = CopyingOracle(servers.reached, tmp_path, _LIMITS, "c")
    with pytest.raises(ConnectionLost, match="leads to another server"):
        oracle.run()
    _assert_whole(oracle)


@_MYSQL
def test_rows_of_two_servers_are_not_taken_for_those_of_one(
    servers: _Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address is back at the first server when its log is read."""

    def lose(position: LogPosition) -> None:
        wait_for(servers.other, position.gtids)
        promote(servers.other)
        for statement in _LOST:
            servers.other.sql(statement)
        servers.move()

    _around_the_snapshot(monkeypatch, selecting, lose, lambda: servers.address.leads_to(servers.first))
    oracle = CopyingOracle(servers.reached, tmp_path, _LIMITS, "c")
    with pytest.raises(ConnectionLost, match="leads to another server"):
        oracle.run()
    servers.address.leads_to(servers.first)
    _assert_whole(oracle)


@_MYSQL
def test_rows_that_are_compared_are_of_the_server_whose_log_is_read(
    servers: _Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = reached_at(servers.reached)
    oracle = CopyingOracle(servers.reached, tmp_path, _LIMITS, "c")
    oracle.run()

    def by_keys() -> None:
        with oracle._tracker() as tracker:
            repair_rows(tracker, address, _id(tracker), "", "id < 100")

    def whole() -> None:
        with oracle._tracker() as tracker, closing(Spool()) as spool:
            read_whole(tracker, address, _id(tracker), "", spool)

    def by_foreign_keys() -> None:
        servers.first.sql("DELETE FROM c.parent WHERE id = 1")
        oracle.run()

    for owner, read in ((rows_of_keys, by_keys), (selecting, whole), (affected, by_foreign_keys)):
        with monkeypatch.context() as patch:
            _around_the_snapshot(patch, owner, lambda _: None, servers.move)
            with pytest.raises(ConnectionLost, match="leads to another server"):
                read()
        servers.address.leads_to(servers.first)
    _assert_whole(oracle)


def _id(tracker: Tracker) -> int:
    history = tracker.history
    return history.catalog_at(history.last_number).tables[TableName("c", "t")].table_id


@pytest.fixture
def third(servers: _Servers, fresh_server: Callable[..., Server]) -> Server:
    """A replica that rows are copied from."""
    replica = fresh_server(servers.first.name, "server_id=4712")
    follow(replica, servers.first)
    return replica


@_MYSQL
def test_rows_of_a_replica_are_not_brought_back_by_the_log_of_a_server_that_took_over(
    servers: _Servers, third: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(position: LogPosition) -> None:
        servers.lose(position)
        wait_for(third, servers.first.sql("SELECT @@GLOBAL.gtid_executed")[0][0])

    _around_the_snapshot(monkeypatch, selecting, lose, servers.move)
    replica = Replica(address=reached_at(third), flavor=third.flavor)
    oracle = CopyingOracle(servers.reached, tmp_path, _LIMITS, "c", replica)
    with pytest.raises(ConnectionLost, match="leads to another server"):
        oracle.run()
    with pytest.raises(OwnTransactions):
        oracle.run()
    oracle.replica = None
    _assert_whole(oracle)


@_MYSQL
def test_a_replica_is_asked_for_own_transactions_that_has_given_the_rows(
    servers: _Servers, third: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(MovingAddress(third)) as address:

        def lose(position: LogPosition) -> None:
            wait_for(servers.other, position.gtids)
            third.sql("INSERT INTO c.t VALUES (5, -1)")

        _around_the_snapshot(monkeypatch, selecting, lose, lambda: address.leads_to(servers.other))
        replica = Replica(address=reached_at(replace(third, port=address.port)), flavor=third.flavor)
        oracle = CopyingOracle(servers.reached, tmp_path, _LIMITS, "c", replica)
        _assert_whole(oracle)
    assert "copies wait: the address leads to another server now" in caplog.text
