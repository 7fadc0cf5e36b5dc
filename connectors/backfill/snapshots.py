"""Connections whose SELECTs see all that stands in the log up to a position.

A dump can bring a transaction before it is visible. MySQL counts a transaction as executed once it is visible. MariaDB's
``gtid_binlog_pos`` runs ahead of that, and a consistent snapshot there says which position of the log it is of. A replica's
``gtid_slave_pos`` follows the commit, as MySQL's ``gtid_executed`` does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectors.backfill.replica import replicated
from connectors.readers.binlog.selected.sessions import selecting_connection
from connectors.readers.binlog.transport.connection import ServerAddress, answered, server_identity
from historian.errors import SourceError
from historian.positions import FilePosition, Gtids, LogPosition, missing_from, parse_gtids

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["NotVisible", "SourceSnapshot", "snapshot_behind"]

_TIMEOUT_S = 60
_STEP_S = 0.02
_NEW_STATUS = (8, 2)


class NotVisible(SourceError):
    """Transactions of the log are not visible to a SELECT, though the log has had them for long."""

    retryable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSnapshot:
    """A transaction whose SELECTs all see the source at one moment.

    Attributes:
        connection: in that transaction.
        end: the log's end right behind that moment; of a replica's snapshot None, since its log has places of its own.
        executed: transactions that the snapshot holds for sure, where it may hold others up to ``end``; None: it holds all up to there.
    """

    connection: Connection[Any]
    end: FilePosition | None
    executed: Gtids | None


@contextmanager
def snapshot_behind(
    address: ServerAddress, flavor: str, position: LogPosition, *, is_replica: bool = False
) -> Iterator[SourceSnapshot]:
    """A snapshot that holds at least all that stands in the log up to *position*, of this server's log or its source's.

    Raises:
        NotVisible: there is none after a minute.
        SourceError: the server has no GTIDs, which MySQL needs to tell what is visible.
        ConnectionLost: the server does not answer.
    """
    connection = selecting_connection(address, flavor)
    try:
        with answered(str(address)):
            begin = _replica if is_replica else _mariadb if flavor == "mariadb" else _mysql
            deadline_s = time.monotonic() + _TIMEOUT_S
            while (snapshot := begin(connection, position)) is None:
                if time.monotonic() > deadline_s:
                    raise NotVisible(
                        "a SELECT does not see what the log holds",
                        where=str(address),
                        expected=f"all up to {position}",
                        next_step="start its replication, or wait until it lags less"
                        if is_replica
                        else "see which commits hang at the source; `historian run` tries again",
                    )
                time.sleep(_STEP_S)
        yield snapshot
    finally:
        with suppress(Exception):
            connection.close()


def _mysql(connection: Connection[Any], position: LogPosition) -> SourceSnapshot | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_executed, @@version")
        mode, text, version = cursor.fetchone() or ("", "", "")
        if str(mode).upper() != "ON":
            raise SourceError(
                "rows cannot be copied as of a position: the server does not tell which transactions are visible",
                where=f"{connection.host}:{connection.port}",
                expected="gtid_mode=ON",
                found=f"gtid_mode={mode}",
                next_step="switch GTIDs on at the source, or copy from a replica that has them, or choose another source.start",
            )
        executed = parse_gtids(str(text), "mysql")
        if missing_from(position.gtid_set, executed) is not None:
            return None
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        is_new = tuple(int(part) for part in str(version).split(".")[:2]) >= _NEW_STATUS
        cursor.execute("SHOW BINARY LOG STATUS" if is_new else "SHOW MASTER STATUS")
        file, offset, *_ = cursor.fetchone() or ("", 0)
    return SourceSnapshot(connection=connection, end=FilePosition(str(file), int(offset)), executed=executed)


def _replica(connection: Connection[Any], position: LogPosition) -> SourceSnapshot | None:
    executed = replicated(connection, position.flavor)
    if missing_from(position.gtid_set, executed) is not None:
        return None
    with connection.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    return SourceSnapshot(connection=connection, end=None, executed=executed)


def _mariadb(connection: Connection[Any], position: LogPosition) -> SourceSnapshot | None:
    with connection.cursor() as cursor:
        cursor.execute("ROLLBACK")
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
        status = {str(name).lower(): value for name, value in cursor.fetchall()}
    end = FilePosition(str(status["binlog_snapshot_file"]), int(status["binlog_snapshot_position"]))
    where = f"{connection.host}:{connection.port}"
    if position.of_one_server(server_identity(connection, "mariadb", where)):
        is_covered = end.covers(position.at)
    else:
        # Behind a failover: places in the log of one server say nothing of the other's.
        is_covered = missing_from(position.gtid_set, _gtids_at(connection, end)) is None
    return SourceSnapshot(connection=connection, end=end, executed=None) if is_covered else None


def _gtids_at(connection: Connection[Any], place: FilePosition) -> Gtids:
    """What stands in MariaDB's log up to a place of it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT BINLOG_GTID_POS(%s, %s)", (place.file, place.offset))
        (text,) = cursor.fetchone() or ("",)
    return parse_gtids(str(text or ""), "mariadb")
