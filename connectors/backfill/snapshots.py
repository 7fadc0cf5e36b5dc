"""Connections whose SELECTs see all that stands in the log up to a position.

A dump can bring a transaction before it is visible. MySQL counts a transaction as executed once it is visible; without GTIDs it is asked which
ones are being committed (:mod:`connectors.backfill.committing`). MariaDB's
``gtid_binlog_pos`` runs ahead of that, and a consistent snapshot there says which position of the log it is of, but for XA transactions. A replica's
``gtid_slave_pos`` follows the commit, as MySQL's ``gtid_executed`` does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from connectors.backfill.committing import Committing, CommittingXa
from connectors.backfill.replica import replicated
from connectors.readers.binlog.selected.sessions import selecting_connection
from connectors.readers.binlog.transport.connection import ServerAddress, answered, same_server, server_identity
from historian.errors import SourceError
from historian.positions import FilePosition, Gtids, LogPosition, missing_from, parse_gtids

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from historian.names import TableName

__all__ = ["NotVisible", "SourceSnapshot", "VisibleLog", "keep_table", "later_moment", "snapshot_behind"]

_TIMEOUT_S = 60
_COMMITTING_TIMEOUT_S = 10
_STEP_S = 0.02
_DENIED = 1227
_NEW_STATUS = (8, 2)
_COMMITS_HANG = "see which commits hang at the source; `historian run` tries again"


class NotVisible(SourceError):
    """Transactions of the log are not visible to a SELECT, though the log has had them for long."""

    retryable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSnapshot:
    """A transaction whose SELECTs all see the source at one moment.

    Attributes:
        connection: in that transaction.
        server: identity of the one that it leads to. Only the log of this one, or of the source of this one, tells what came behind that moment.
        end: the log's end right behind that moment; of a replica's snapshot None, since its log has places of its own.
        executed: transactions that the snapshot holds for sure, where it may hold others up to ``end``; None: see ``whole``.
        whole: up to where the snapshot holds all for sure, where no GTIDs tell it; None: up to ``end``, or as ``executed`` says.
    """

    connection: Connection[Any]
    server: str
    end: FilePosition | None
    executed: Gtids | None
    whole: FilePosition | None = None


def keep_table(snapshot: SourceSnapshot, name: TableName) -> None:
    """Has statements on a table wait until the snapshot's connection is closed. Those that came before are in the log by now.

    Raises:
        SourceError: there is no such table, it is locked, or the server refuses.
        ConnectionLost: the server does not answer.
    """
    with answered(str(name)), snapshot.connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {name.quoted} LIMIT 0")  # noqa: S608 quoted


def later_moment(snapshot: SourceSnapshot) -> None:
    """Has SELECTs of the snapshot's connection see a later moment, which holds all that the snapshot holds; what else it holds is not told.

    Statements on tables that were read wait for that connection no more. ROLLBACK TO SAVEPOINT would keep them waiting on MariaDB with a log.

    Raises:
        ConnectionLost: the server does not answer.
    """
    with answered(f"server {snapshot.server}"), snapshot.connection.cursor() as cursor:
        # It ends the transaction before, and with that what this has locked.
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")


@dataclass(slots=True)
class VisibleLog:
    """Up to where the log of one server without GTIDs is known to be visible, for several who ask about one position."""

    until: FilePosition | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def snapshot_behind(
    address: ServerAddress,
    flavor: str,
    position: LogPosition,
    *,
    server: str | None = None,
    is_replica: bool = False,
    visible: VisibleLog | None = None,
) -> Iterator[SourceSnapshot]:
    """A snapshot that holds at least all that stands in the log up to *position*, of this server's log or its source's.

    Args:
        server: identity of the one that is to give it; None: whichever the address leads to.
        visible: what others have found out about this server.

    Raises:
        NotVisible: there is none after a minute; after ten seconds without GTIDs, and where MariaDB has prepared XA transactions that may be being committed.
        SourceError: a MySQL server has no GTIDs, and does not tell the user which transactions are being committed.
        ConnectionLost: the server does not answer, or another one does.
    """
    connection = selecting_connection(address, flavor)
    try:
        found = server_identity(connection, flavor, str(address))
        same_server(found if server is None else server, found, str(address))
        with answered(str(address)):
            begin = (
                _Replica()
                if is_replica
                else _Mariadb(CommittingXa(connection, {xa.xid for xa in position.pending}))
                if flavor == "mariadb"
                else _Mysql.of(connection, visible or VisibleLog())
            )
            begin_s = time.monotonic()
            while (snapshot := begin(connection, position, found)) is None:
                if time.monotonic() > begin_s + begin.limit_s:
                    raise NotVisible(
                        "a SELECT does not see what the log holds",
                        where=str(address),
                        expected=f"all up to {position}",
                        next_step=begin.remedy,
                    )
                time.sleep(_STEP_S)
        yield snapshot
    finally:
        with suppress(Exception):
            connection.close()


@dataclass(frozen=True, slots=True)
class _Mysql:
    """Snapshots of a MySQL server; ``committing``: what tells that one holds a position, where there are no GTIDs."""

    is_new: bool
    committing: Committing | None
    end: FilePosition | None
    visible: VisibleLog

    remedy: ClassVar[str] = _COMMITS_HANG

    @classmethod
    def of(cls, connection: Connection[Any], visible: VisibleLog) -> _Mysql:
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.gtid_mode, @@version")
            mode, version = cursor.fetchone() or ("", "")
        if str(mode).upper() not in ("ON", "OFF"):
            raise SourceError(
                "rows cannot be copied as of a position: the server does not tell which transactions are visible",
                where=f"{connection.host}:{connection.port}",
                expected="gtid_mode=ON or OFF",
                found=f"gtid_mode={mode}",
                next_step="switch GTIDs on at the source, or copy from a replica that has them, or choose another source.start",
            )
        is_new = tuple(int(part) for part in str(version).split(".")[:2]) >= _NEW_STATUS
        if str(mode).upper() == "ON":
            return cls(is_new, None, None, visible)
        with connection.cursor() as cursor:
            return cls(is_new, Committing(connection), _log_end(cursor, is_new=is_new), visible)

    @property
    def limit_s(self) -> float:
        return _TIMEOUT_S if self.committing is None else _COMMITTING_TIMEOUT_S

    def __call__(self, connection: Connection[Any], position: LogPosition, server: str) -> SourceSnapshot | None:
        executed: Gtids | None = None
        with connection.cursor() as cursor:
            if self.committing is not None:
                if not self._is_visible(position.at):
                    return None
            else:
                cursor.execute("SELECT @@GLOBAL.gtid_executed")
                (text,) = cursor.fetchone() or ("",)
                executed = parse_gtids(str(text), "mysql")
                if missing_from(position.gtid_set, executed) is not None:
                    return None
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            end = _log_end(cursor, is_new=self.is_new)
        whole = self.visible.until
        return SourceSnapshot(connection=connection, server=server, end=end, executed=executed, whole=whole)

    def _is_visible(self, position: FilePosition) -> bool:
        assert self.end is not None  # noqa: S101 the two go together
        with self.visible.lock:
            if self.visible.until is None or not self.visible.until.covers(position):
                if not (self.end.covers(position) and self._are_over()):
                    return False
                self.visible.until = self.end
        return True

    def _are_over(self) -> bool:
        import pymysql

        assert self.committing is not None  # noqa: S101 the caller has looked
        try:
            return self.committing.are_over()
        except pymysql.err.MySQLError as error:
            if error.args[:1] != (_DENIED,):
                raise
            raise SourceError(
                "rows cannot be copied as of a position: without GTIDs the server is asked which transactions are being committed",
                expected="the privilege PROCESS, or gtid_mode=ON",
                found=str(error),
                next_step="GRANT PROCESS ON *.* TO the user, or switch GTIDs on, or choose another source.start",
            ) from error


def _log_end(cursor: Cursor, *, is_new: bool) -> FilePosition:
    cursor.execute("SHOW BINARY LOG STATUS" if is_new else "SHOW MASTER STATUS")
    file, offset, *_ = cursor.fetchone() or ("", 0)
    return FilePosition(str(file), int(offset))


class _Replica:
    """Snapshots of a replica, of either kind."""

    limit_s = _TIMEOUT_S
    remedy = "start its replication, or wait until it lags less"

    def __call__(self, connection: Connection[Any], position: LogPosition, server: str) -> SourceSnapshot | None:
        executed = replicated(connection, position.flavor)
        if missing_from(position.gtid_set, executed) is not None:
            return None
        with connection.cursor() as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        return SourceSnapshot(connection=connection, server=server, end=None, executed=executed)


@dataclass(frozen=True, slots=True)
class _Mariadb:
    """Snapshots of a MariaDB server; ``committing``: what tells that one holds the XA transactions that its place in the log has."""

    committing: CommittingXa

    @property
    def limit_s(self) -> float:
        return _COMMITTING_TIMEOUT_S if self.committing.waiting else _TIMEOUT_S

    @property
    def remedy(self) -> str:
        if not (waiting := self.committing.waiting):
            return _COMMITS_HANG
        return f"end the prepared XA transactions {waiting}, or GRANT PROCESS ON *.* TO the user, which shows that nobody commits them now"

    def __call__(self, connection: Connection[Any], position: LogPosition, server: str) -> SourceSnapshot | None:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")
            if not self.committing.are_over():
                return None
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
            status = {str(name).lower(): value for name, value in cursor.fetchall()}
        end = FilePosition(str(status["binlog_snapshot_file"]), int(status["binlog_snapshot_position"]))
        is_own = position.of_one_server(server)
        # Behind a failover: places in the log of one server say nothing of the other's.
        is_covered = (
            end.covers(position.at) if is_own else missing_from(position.gtid_set, _gtids_at(connection, end)) is None
        )
        is_exact = self.committing.none_since()
        if not is_covered or not (is_exact or is_own):
            return None
        whole = None if is_exact else position.at
        return SourceSnapshot(connection=connection, server=server, end=end, executed=None, whole=whole)


def _gtids_at(connection: Connection[Any], place: FilePosition) -> Gtids:
    """What stands in MariaDB's log up to a place of it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT BINLOG_GTID_POS(%s, %s)", (place.file, place.offset))
        (text,) = cursor.fetchone() or ("",)
    return parse_gtids(str(text or ""), "mariadb")
