"""Connections whose sessions SELECT values as the log has them."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from connectors.readers.binlog.transport.compressed_socket import network_socket
from connectors.readers.binlog.transport.connection import ServerAddress, answered

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["selecting_connection"]

_WRITE_TIMEOUT_S = 3600
_LOCK_WAIT_S = 60
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 6))
_SETTINGS = (
    # A server's default may hold other choices; all of these change what a SELECT gives, or how much of it.
    "sql_mode = ''",
    "time_zone = '+00:00'",
    "sql_select_limit = 18446744073709551615",
    "sql_big_selects = 1",
    # For a table that is being altered; a try that comes later is better than a connection that waits.
    f"lock_wait_timeout = {_LOCK_WAIT_S}",
    # A chunk is written while the server waits.
    f"net_write_timeout = {_WRITE_TIMEOUT_S}",
    # Stored bytes: the finish of a column converts them as it does the log's.
    "character_set_results = NULL",
)
_FLAVORED = {
    "mysql": ("max_execution_time = 0",),
    "mariadb": ("max_statement_time = 0", "system_versioning_asof = DEFAULT"),
}


def selecting_connection(address: ServerAddress, flavor: str) -> Connection[Any]:
    """A new connection in autocommit mode for :func:`~connectors.readers.binlog.selected.reading.select_rows`.

    Texts that other statements of it give are in the bytes that the server stores.

    Raises:
        ConnectionLost: nobody answers there, or the connection broke.
        SourceError: the user or its password is refused, or a setting is.
    """
    connection = address.connect()
    for option, value in _KEEPALIVE:
        # A SELECT that finds nothing is silent for long, and so is a host that is gone.
        network_socket(connection).setsockopt(socket.IPPROTO_TCP, option, value)
    try:
        with answered(f"{address}: settings of a session that reads rows"), connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SET SESSION " + ", SESSION ".join((*_FLAVORED[flavor], *_SETTINGS)))
    except BaseException:
        connection.close()
        raise
    return connection
