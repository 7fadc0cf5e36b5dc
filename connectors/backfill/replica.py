"""A replica of the source, in whose place it is asked for rows; the log is the source's own.

What a replica shows has stood in its source's log before. So the log's end, read behind a SELECT, bounds what that can hold, unless the
replica has transactions of its own.
"""

from __future__ import annotations

import copy
import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connectors.readers.binlog.transport.connection import (
    ConnectionLost,
    ServerAddress,
    answered,
    same_server,
    server_identity,
)
from historian.errors import SourceError
from historian.positions import Gtids, LogPosition, missing_from, parse_gtids

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from connectors.config import ServerSource
    from connectors.readers.base import Reader

__all__ = ["OwnTransactions", "Replica", "own_transactions", "replica_of", "replicated"]

_WAIT_S = 10.0
_STEP_S = 0.05
_ANSWER_S = 10
_State = dict[tuple[int, int], int]


class OwnTransactions(SourceError):
    """A replica holds transactions that its source's log does not: no log tells what they changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """Where a replica of the source is; ``flavor``: "mysql" or "mariadb"."""

    address: ServerAddress
    flavor: str

    def lacks(self, position: LogPosition) -> str:
        """What it lacks of the source's log up to *position*, or why it cannot be asked, for people; "": nothing.

        A lag is waited out for ten seconds.
        """
        deadline_s = time.monotonic() + _WAIT_S
        try:
            # One that is gone must not keep the log waiting.
            with closing(replace(self.address, timeout_s=_ANSWER_S).connect()) as connection:
                while True:
                    missing = missing_from(position.gtid_set, replicated(connection, self.flavor))
                    if missing is None:
                        return ""
                    if time.monotonic() > deadline_s:
                        return f"the replica lacks {missing}, which the plan's end holds"
                    time.sleep(_STEP_S)
        except ConnectionLost as error:
            return str(error)

    def identity(self) -> str:
        """Identity of the server that its address leads to.

        Raises:
            ConnectionLost: nobody answers.
        """
        with closing(self.address.connect()) as connection:
            return server_identity(connection, self.flavor, str(self.address))

    def check_own(self, identity: str, source: Connection[Any], reader: Reader) -> None:
        """Makes sure that what the replica of that *identity* shows by now stands in the log of the server that *source* leads to.

        Raises:
            OwnTransactions: it holds others.
            ConnectionLost: one of the two does not answer, or its address leads to another server.
        """
        with closing(self.address.connect()) as connection:
            same_server(identity, server_identity(connection, self.flavor, str(self.address)), str(self.address))
            own = own_transactions(connection, source, reader)
        if own:
            raise OwnTransactions(
                "rows cannot be copied from a replica that has transactions of its own",
                where=str(self.address),
                expected="none that the source's log does not hold",
                found=own,
                next_step="make the replica anew, or take source.backfill.server out",
            )


def replica_of(source: ServerSource) -> Replica | None:
    """The replica that the configuration names; None: rows are copied from the source itself."""
    at = source.rows_from
    if at is None:
        return None
    address = ServerAddress(
        host=at.host, port=at.port, user=at.user, password=at.password, tls=at.tls, compression=at.compression
    )
    return Replica(address=address, flavor=source.flavor)


def replicated(connection: Connection[Any], flavor: str) -> Gtids:
    """Transactions that a SELECT of the replica sees, for sure; it may see others besides.

    Both servers note a transaction behind its commit, MariaDB in ``gtid_slave_pos``.
    """
    question = "SELECT @@GLOBAL.gtid_slave_pos" if flavor == "mariadb" else "SELECT @@GLOBAL.gtid_executed"
    with answered(str(connection.host)), connection.cursor() as cursor:
        cursor.execute(question)
        (text,) = cursor.fetchone() or ("",)
    return parse_gtids(str(text or ""), flavor)


def own_transactions(replica: Connection[Any], source: Connection[Any], reader: Reader) -> str:
    """GTIDs of the replica that the source's log does not hold; "" where there are none.

    Args:
        replica, source: connections to the two. The replica is asked first: what it has is in the log by then.
        reader: of the source's log.

    Raises:
        ConnectionLost: one of them does not answer, or *reader* comes to another server than *source*.
    """
    if reader.flavor == "mariadb":
        return _own_of_mariadb(replica, source)
    held = replicated(replica, "mysql")
    if missing_from(held, replicated(source, "mysql")) is None:
        return ""
    # A replica can be faster than the source, which counts a transaction as executed when it has answered its client.
    with closing(copy.copy(reader)) as own:
        end = own.end()
        same_server(server_identity(source, "mysql", str(source.host)), end.server, str(source.host))
        missing = missing_from(held, end.gtid_set)
    return "" if missing is None else str(missing)


def _own_of_mariadb(replica: Connection[Any], source: Connection[Any]) -> str:
    with answered(str(replica.host)), replica.cursor() as cursor:
        cursor.execute("SELECT @@server_id")
        ((own_id,),) = cursor.fetchall()
    held, known = _binlog_state(replica), _binlog_state(source)
    ends: dict[int, int] = {}
    for (domain, _), sequence in known.items():
        ends[domain] = max(sequence, ends.get(domain, 0))
    # A source that was made from a backup does not know the servers that wrote before that.
    own = [
        f"{domain}-{server}-{sequence}"
        for (domain, server), sequence in sorted(held.items())
        if sequence > known.get((domain, server), 0) and (server == own_id or sequence > ends.get(domain, 0))
    ]
    return ",".join(own)


def _binlog_state(connection: Connection[Any]) -> _State:
    """The last sequence number in a MariaDB server's log, by domain and server; a server without a log has none."""
    with answered(str(connection.host)), connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.gtid_binlog_state")
        (text,) = cursor.fetchone() or ("",)
    parts = [tuple(map(int, gtid.split("-"))) for gtid in str(text or "").split(",") if gtid]
    return {(domain, server): sequence for domain, server, sequence in parts}
