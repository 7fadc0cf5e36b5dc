"""Snapshots of MariaDB beside XA transactions, which another session commits than the one that prepared them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest

from connectors.backfill import snapshots
from connectors.backfill.snapshots import NotVisible, snapshot_behind
from connectors.readers.binlog.transport.connection import ServerAddress, server_identity
from databases.servers import Server
from historian.positions import LogPosition, PreparedXa
from logs.binlog_lab import address

_COUNT = 250
_LATER = pytest.mark.soak


@pytest.mark.parametrize(
    "kind", [pytest.param("mariadb105", marks=_LATER), pytest.param("mariadb1011", marks=_LATER), "mariadb118"]
)
def test_a_snapshot_holds_each_xa_commit_that_its_log_has(kind: str, request: pytest.FixtureRequest) -> None:
    """The server logs an XA COMMIT, says that a snapshot has it, and only then commits it: by default some of 100 snapshots lacked rows."""
    server: Server = request.getfixturevalue(kind)
    _emptied(server)
    for number in range(_COUNT):
        _prepare(server, number)
    begun = _log_end(server)
    seen: list[tuple[int, int]] = []

    def commit() -> None:
        with closing(server.connect()) as connection, connection.cursor() as cursor:
            for number in range(_COUNT):
                cursor.execute(f"XA COMMIT 'x{number}'")

    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(commit)
        while not committing.done():
            end = _log_end(server)
            with snapshot_behind(address(server), "mariadb", end) as snapshot, snapshot.connection.cursor() as rows:
                rows.execute("SELECT COUNT(*) FROM c.t")
                seen += [(end.offset, int(count)) for (count,) in rows.fetchall()]
        committing.result()
    events = server.sql(f"SHOW BINLOG EVENTS IN '{begun.file}' FROM {begun.offset}")
    commits = [int(end) for *_, end, text in events if "XA COMMIT" in str(text)]
    assert _COUNT == len(commits)
    assert [] == [(end, count) for end, count in seen if count < sum(commit <= end for commit in commits)]
    assert any(0 < count < _COUNT for _, count in seen)


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
    end = _log_end(server)
    with snapshot_behind(user, "mariadb", end) as snapshot:
        assert snapshot.whole is None
    _prepare(server, 1)
    try:
        with pytest.raises(NotVisible, match=r"X'7831',X'',1, or GRANT PROCESS"), snapshot_behind(user, "mariadb", end):
            pass
        behind = replace(_log_end(server), pending=(PreparedXa(xid="X'7831',X'',1", gtid="", file="", offset=4),))
        with snapshot_behind(user, "mariadb", behind) as snapshot:
            # It may be committed behind that, at any moment.
            assert behind.at == snapshot.whole
        server.sql("GRANT PROCESS ON *.* TO cdc")
        with snapshot_behind(user, "mariadb", end) as snapshot:
            assert end.at == snapshot.whole
    finally:
        server.sql("XA COMMIT 'x1'")
    with snapshot_behind(user, "mariadb", end) as snapshot, snapshot.connection.cursor() as rows:
        assert snapshot.whole is None
        rows.execute("SELECT COUNT(*) FROM c.t")
        assert ((1,),) == tuple(rows.fetchall())


def _emptied(server: Server) -> None:
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.t (id INT PRIMARY KEY)")


def _prepare(server: Server, number: int) -> None:
    """The session goes; then another one may commit it."""
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in ("XA START '{}'", f"INSERT INTO c.t VALUES ({number})", "XA END '{}'", "XA PREPARE '{}'"):
            cursor.execute(statement.format(f"x{number}"))


def _log_end(server: Server) -> LogPosition:
    with closing(server.connect()) as connection:
        identity = server_identity(connection, "mariadb", "the test's")
    file, offset, *_ = server.sql("SHOW MASTER STATUS")[0]
    return LogPosition(flavor="mariadb", gtids="", file=file, offset=offset, server=identity)
