"""Snapshots beside XA transactions, which another session commits than the one that prepared them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest

from connectors.backfill import snapshots
from connectors.backfill.snapshots import NotVisible, snapshot_behind
from connectors.readers.binlog.transport.connection import ServerAddress
from databases.servers import Server
from databases.xa import prepare_xa, snapshot_end
from historian.positions import PreparedXa
from logs.binlog_lab import address

_ROWS = 4000


@pytest.mark.parametrize(
    "kind", ["mariadb118", *(pytest.param(name, marks=pytest.mark.soak) for name in ("mariadb105", "mariadb1011"))]
)
def test_a_snapshot_holds_an_xa_commit_that_its_log_has(kind: str, request: pytest.FixtureRequest) -> None:
    """The server logs an XA COMMIT, says that a snapshot has it, and commits it then."""
    server: Server = request.getfixturevalue(kind)
    _emptied(server)
    _make_slow(server)
    begun = snapshot_end(server)
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(server.sql, "XA COMMIT 'x'")
        while (end := snapshot_end(server)) == begun:
            assert not committing.done()
        with snapshot_behind(address(server), "mariadb", end) as snapshot, snapshot.connection.cursor() as rows:
            rows.execute("SELECT COUNT(*) FROM c.words")
            assert ((0,),) == tuple(rows.fetchall())
        committing.result()


@pytest.mark.parametrize("kind", ["mysql57", "mysql8", "mysql9"])
def test_mysql_counts_an_xa_commit_as_executed_once_it_is_visible(kind: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(kind)
    _emptied(server)
    _make_slow(server)
    executed = "SELECT @@GLOBAL.gtid_executed"
    with ThreadPoolExecutor(1) as pool, closing(server.connect()) as connection, connection.cursor() as cursor:
        ((begun,),) = server.sql(executed)
        committing = pool.submit(server.sql, "XA COMMIT 'x'")
        found, looks = begun, 0
        while found == begun:
            cursor.execute(executed)
            ((found,),) = cursor.fetchall()
            looks += 1
        cursor.execute("SELECT COUNT(*) FROM c.words")
        assert ((0,),) == tuple(cursor.fetchall())
        assert looks > 1
        committing.result()


def test_a_prepared_transaction_is_waited_for_unless_it_is_known_not_to_be_committed(
    mariadb118: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that the position does not name may have been committed in its log, or be prepared behind it."""
    monkeypatch.setattr(snapshots, "_COMMITTING_TIMEOUT_S", 0.2)
    server = mariadb118
    _emptied(server)
    server.sql("CREATE OR REPLACE USER cdc IDENTIFIED BY 'cdc'")
    server.sql("GRANT REPLICATION SLAVE, BINLOG MONITOR, SELECT ON *.* TO cdc")
    user = ServerAddress(host=server.host, port=server.port, user="cdc", password="cdc")
    end = snapshot_end(server)
    with snapshot_behind(user, "mariadb", end) as snapshot:
        assert snapshot.whole is None
    prepare_xa(server, "INSERT INTO c.t VALUES (1)")
    try:
        with pytest.raises(NotVisible, match=r"X'78',X'',1, or GRANT PROCESS"), snapshot_behind(user, "mariadb", end):
            pass
        behind = replace(snapshot_end(server), pending=(PreparedXa(xid="X'78',X'',1", gtid="", file="", offset=4),))
        with snapshot_behind(user, "mariadb", behind) as snapshot:
            # It may be committed behind that, at any moment.
            assert behind.at == snapshot.whole
        server.sql("GRANT PROCESS ON *.* TO cdc")
        with snapshot_behind(user, "mariadb", end) as snapshot:
            assert end.at == snapshot.whole
    finally:
        server.sql("XA COMMIT 'x'")
    with snapshot_behind(user, "mariadb", end) as snapshot, snapshot.connection.cursor() as rows:
        assert snapshot.whole is None
        rows.execute("SELECT COUNT(*) FROM c.t")
        assert ((1,),) == tuple(rows.fetchall())


def _emptied(server: Server) -> None:
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.t (id INT PRIMARY KEY)")


def _make_slow(server: Server) -> None:
    """A prepared transaction that a server takes long to commit, once it is in the log: rows leave a full-text index."""
    server.sql("CREATE TABLE c.words (id INT PRIMARY KEY, w VARCHAR(20), FULLTEXT KEY (w))")
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO c.words VALUES (%s, %s)", [(number, f"word{number}") for number in range(_ROWS)]
        )
    prepare_xa(server, "DELETE FROM c.words")
