"""XA transactions that another session commits than the one that prepared them, and where MariaDB's snapshots stand."""

from __future__ import annotations

from contextlib import closing

from connectors.readers.binlog.transport.connection import server_identity
from databases.servers import Server
from historian.positions import LogPosition

__all__ = ["prepare_xa", "snapshot_end"]


def prepare_xa(server: Server, change: str) -> None:
    """Prepares *change* as the XA transaction ``x``. The session goes; then another one may commit it."""
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in ("XA START 'x'", change, "XA END 'x'", "XA PREPARE 'x'"):
            cursor.execute(statement)


def snapshot_end(server: Server) -> LogPosition:
    """Up to where a snapshot of now holds the log, as MariaDB says."""
    with closing(server.connect(autocommit=False)) as connection, connection.cursor() as cursor:
        identity = server_identity(connection, "mariadb", "the test's")
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
        status = {name.lower(): value for name, value in cursor.fetchall()}
    return LogPosition(
        flavor="mariadb",
        gtids="",
        file=status["binlog_snapshot_file"],
        offset=int(status["binlog_snapshot_position"]),
        server=identity,
    )
