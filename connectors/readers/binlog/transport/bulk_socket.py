"""A connection's socket read in bulk, beside the library that opened it."""

from __future__ import annotations

import select
import socket
import ssl
from typing import TYPE_CHECKING, Any

from connectors.readers.binlog.transport.compressed_socket import CompressedSocket, network_socket

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from connectors.readers.base import Wake

__all__ = ["BulkSocket"]

_RECEIVE_BYTES = 1 << 21
_STREAM_FROM_BYTES = 4 << 20
_STREAM_BYTES = 1 << 19
_STREAM_PAUSE_MS = 5


class BulkSocket:
    """Takes over the socket of *connection* until :meth:`give_back`; nothing else reads from it meanwhile.

    Args:
        silence_s: how long a server that sends nothing at all is waited for.
    """

    def __init__(self, connection: Connection[Any], silence_s: float) -> None:
        own: Any = connection
        self._timeout: float | None = own._read_timeout  # noqa: SLF001 - the library has no other way to its socket
        self._socket: socket.socket | CompressedSocket = own._sock  # noqa: SLF001
        self._network = network_socket(connection)
        self._silence_s = silence_s
        self._received_bytes = 0
        self._streams = False
        self._socket.setblocking(False)
        self._ready = select.poll()
        self._ready.register(self._socket, select.POLLIN)

    def give_back(self) -> None:
        """The library may read on."""
        self._socket.settimeout(self._timeout)

    def wait(self, timeout_s: float, wake: Wake | None = None) -> bool:
        """Whether there are bytes, or an end, within that time and before *wake* is set.

        Of a compressed connection these may be too few for :meth:`receive`, which waits for the rest.
        """
        if self._holds_bytes():
            return True
        if wake is None:
            return bool(self._ready.poll(1000 * timeout_s))
        both = select.poll()
        both.register(self._socket, select.POLLIN)
        both.register(wake, select.POLLIN)
        return any(file != wake.fileno() for file, _ in both.poll(1000 * timeout_s))

    def _holds_bytes(self) -> bool:
        """Whether bytes are here that the network has given, so that it would be waited for in vain."""
        return isinstance(self._socket, ssl.SSLSocket | CompressedSocket) and bool(self._socket.pending())

    def receive(self, room: memoryview) -> int:
        """Waits for bytes, then takes what is there; how many, 0 where the server has closed the connection.

        Raises:
            OSError: the connection broke, or was silent for too long.
        """
        if self._streams:
            self._leave_alone()
        taken = self._take(room)
        while taken < 0:
            # A part of a frame gives nothing yet, and is no silence: a large one takes its time.
            if not self.wait(self._silence_s):
                raise TimeoutError(f"no byte came within {self._silence_s} s")
            taken = self._take(room)
        self._received_bytes += taken
        self._streams = self._received_bytes >= _STREAM_FROM_BYTES and not isinstance(self._network, ssl.SSLSocket)
        return taken

    def _leave_alone(self) -> None:
        """Waits until much has come, or a moment: to wake up for each of the server's packets costs both.

        The mark is taken back at once, since the last bytes of all are fewer.
        """
        if self._holds_bytes():
            return
        self._network.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _STREAM_BYTES)
        self._ready.poll(_STREAM_PAUSE_MS)
        self._network.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)

    def _take(self, room: memoryview) -> int:
        """Bytes that were there; -1: none were."""
        taken = 0
        while taken < min(len(room), _RECEIVE_BYTES):
            try:
                count = self._socket.recv_into(room[taken:])
            except (BlockingIOError, ssl.SSLWantReadError):
                return taken or -1
            taken += count
            # TLS gives one record of 16 KB at a time, and frames a few; TCP gives all that has come.
            if not count or not isinstance(self._socket, ssl.SSLSocket | CompressedSocket):
                break
        return taken
