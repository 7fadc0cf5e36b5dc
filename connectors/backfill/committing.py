"""Which transactions may stand in a server's log and not be visible yet: all on MySQL without GTIDs, and XA transactions on MariaDB.

A transaction is written to the log first, and becomes visible when InnoDB commits it, which can be much later: a semi-synchronous source
waits for a replica in between. Up to then ``information_schema.innodb_trx`` has it, and its session runs a statement, or for a prepared XA
transaction without a session another one does. So of the transactions that are there after a position was read from the log, those whose
sessions rest are not of that log. When the others have gone, all of the log up to that position is visible.

The server may answer with a copy of that table, which it makes anew where nobody has asked for a tenth of a second. The text of the
question is in our own row there, and so tells how old the answer is.

MariaDB's snapshots hold what they say that they hold, but for one thing: an XA COMMIT from another session than the one that prepared. It is
logged first, and counts as a part of the log from then on; InnoDB commits a little later. Up to its end ``XA RECOVER`` names it.
"""

from __future__ import annotations

import random
import secrets
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from pymysql.connections import Connection

__all__ = ["Committing", "CommittingXa"]

_FIRST_OF_READERS = 1 << 48
"""InnoDB numbers transactions that have written nothing from here on."""
_PAUSE_S = (0.11, 0.3)
"""Several who ask are not to ask at one pace: each would keep the others' copy alive."""
_QUESTION = "SELECT trx_id, trx_mysql_thread_id, trx_query FROM information_schema.innodb_trx"
_SESSIONS = """SELECT id FROM information_schema.processlist
    WHERE command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID') AND id <> CONNECTION_ID()"""

_COMMITS = "SHOW GLOBAL STATUS LIKE 'Com_xa_commit'"
_SEES_ALL = """SELECT COUNT(*) FROM information_schema.user_privileges
    WHERE privilege_type = 'PROCESS' AND grantee = CONCAT("'", REPLACE(CURRENT_USER(), '@', "'@'"), "'")"""
_MAY_COMMIT_XA = """SELECT id, query_id FROM information_schema.processlist WHERE command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Slave_IO')
    AND COALESCE(state, '') NOT LIKE '%has read all relay log%' AND COALESCE(state, '') NOT LIKE 'Waiting for work from%'
    AND (info IS NULL OR info LIKE '%XA%' OR info LIKE '%CALL%' OR info LIKE '%EXECUTE%') AND id <> CONNECTION_ID()"""
"""The threads of a source that is a replica itself stand in the list all the time; by these words they have nothing to apply."""


class Committing:
    """The transactions that may have been in the log when it was first asked for them. It asks over *connection*, outside of a transaction."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._waiting: dict[int, int] | None = None
        self._busy: frozenset[int] | None = None

    def are_over(self) -> bool:
        """Whether all of them are visible to a snapshot that begins now; ask again where they are not.

        Raises:
            pymysql.err.MySQLError: as the server gives it; 1227 where the user lacks the privilege PROCESS.
        """
        found = self._transactions()
        if found is None:
            time.sleep(random.uniform(*_PAUSE_S))  # noqa: S311 nothing is secret here
            return False
        if self._waiting is None:
            self._waiting = found
        if self._waiting:
            # Asked for behind the transactions: a session that rests by now has ended what it was in the middle of then.
            working = self._working()
            self._busy = working if self._busy is None else self._busy & working
            # Whoever commits a prepared XA transaction that belongs to no session is one of those that were at work.
            self._waiting = {
                trx: thread
                for trx, thread in self._waiting.items()
                if trx in found and (thread in working or (not thread and self._busy))
            }
        return not self._waiting

    def _transactions(self) -> dict[int, int] | None:
        """Sessions of those that have written something, by transaction, 0: none; None where the answer is an old one."""
        mark = secrets.token_hex(8)
        with self._connection.cursor() as cursor:
            cursor.execute("ROLLBACK")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")  # else we have no row of our own
            cursor.execute(f"{_QUESTION} /* {mark} */")
            rows = cursor.fetchall()
            cursor.execute("ROLLBACK")
        if not any(mark in str(query) for _, _, query in rows):
            return None
        return {int(trx): int(thread) for trx, thread, _ in rows if int(trx) < _FIRST_OF_READERS}

    def _working(self) -> frozenset[int]:
        """Other sessions that may be in the middle of a commit."""
        with self._connection.cursor() as cursor:
            cursor.execute(_SESSIONS)
            return frozenset(int(thread) for (thread,) in cursor.fetchall())


class CommittingXa:
    """The XA transactions of a MariaDB server whose XA COMMIT may be in the log up to a position, and which InnoDB may still have to commit.

    Args:
        connection: over which it asks, outside of a transaction.
        pending: xids of those that the position says are prepared and not committed.
    """

    def __init__(self, connection: Connection[Any], pending: AbstractSet[str]) -> None:
        self._connection = connection
        self._pending = pending
        self._waiting: AbstractSet[str] | None = None
        self._busy: AbstractSet[tuple[int, int]] | None = None
        self._prepared: AbstractSet[str] = frozenset()
        self._commits = 0

    @property
    def waiting(self) -> str:
        """Which ones, for a message."""
        return ", ".join(sorted(self._waiting or ()))

    def are_over(self) -> bool:
        """Whether all of them are visible to a snapshot that begins now; ask again where they are not.

        Those that were prepared behind the position look the same. A session that commits one runs a statement; who has the privilege
        PROCESS sees that none does. Without it, they are waited for.
        """
        self._commits = self._count()
        self._prepared = {_xid(*row) for row in self._rows("XA RECOVER")}
        self._waiting = self._prepared - self._pending if self._waiting is None else self._waiting & self._prepared
        if self._waiting and self._rows(_SEES_ALL)[0][0]:
            # Asked for behind the transactions: a statement that is over by now has committed what it was to commit.
            at_work = {(int(session), int(query)) for session, query in self._rows(_MAY_COMMIT_XA)}
            self._busy = at_work if self._busy is None else self._busy & at_work
            self._waiting = self._waiting if self._busy else frozenset()
        return not self._waiting

    def none_since(self) -> bool:
        """Whether nothing was committed so from when :meth:`are_over` was last called until now."""
        return not self._prepared and self._commits == self._count()

    def _count(self) -> int:
        return int(self._rows(_COMMITS)[0][1])

    def _rows(self, question: str) -> tuple[tuple[Any, ...], ...]:
        with self._connection.cursor() as cursor:
            cursor.execute(question)
            return tuple(cursor.fetchall())


def _xid(kind: int, first: int, second: int, data: bytes) -> str:
    """As the log writes it."""
    return f"X'{data[:first].hex()}',X'{data[first : first + second].hex()}',{kind}"
