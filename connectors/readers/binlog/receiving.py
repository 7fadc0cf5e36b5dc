"""Bytes of a connection, many at a time: a server sends 16 KB or so a call, and to wake for each costs more than to copy it."""

from __future__ import annotations

import select
import socket
import ssl

__all__ = ["Receiver"]

_MOST_BYTES = 1 << 20
_MANY_BYTES = 128 << 10
_PATIENCE_MS = 5


class Receiver:
    """Takes what comes over *connection*, which is waited for up to *timeout_s*.

    While much comes, it sleeps until the system has gathered more; where that does not come, it takes what is there after
    a few milliseconds. Who has sent little is never kept waiting.
    """

    def __init__(self, connection: socket.socket, timeout_s: float) -> None:
        connection.settimeout(timeout_s)
        self._connection = connection
        self._ready = select.poll()
        self._ready.register(connection, select.POLLIN)
        # What TLS has decrypted is not seen from outside.
        self._gathers = not isinstance(connection, ssl.SSLSocket)
        self._wanted_bytes = self._least_bytes = 1

    def waits(self, timeout_s: float) -> bool:
        """Whether something comes within that time."""
        return bool(self._ready.poll(1000 * timeout_s))

    def take(self, room: memoryview, coming_bytes: int | None) -> int:
        """Puts into *room* what has come, at least a byte, and says how many; 0 at the connection's end.

        Args:
            coming_bytes: how many are still sure to come; None: not known.

        Raises:
            OSError: the connection broke, or nothing came in time.
        """
        if self._gathers:
            self._gather(min(self._wanted_bytes, len(room), len(room) if coming_bytes is None else coming_bytes))
        taken = 0
        while taken < len(room):
            count = self._connection.recv_into(room[taken:])
            if not count:
                break
            taken += count
            if taken >= _MOST_BYTES or not self._ready.poll(0):
                break
        is_much = taken >= min(_MANY_BYTES, len(room))
        self._wanted_bytes = min(max(2 * self._wanted_bytes, taken), _MOST_BYTES) if is_much else 1
        return taken

    def _gather(self, wanted_bytes: int) -> None:
        self._wake_from(wanted_bytes)
        if self._least_bytes > 1 and not self._ready.poll(_PATIENCE_MS):
            self._wake_from(1)

    def _wake_from(self, least_bytes: int) -> None:
        """Has the connection be readable with so many bytes."""
        least_bytes = max(1, least_bytes)
        if least_bytes != self._least_bytes:
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least_bytes)
            self._least_bytes = least_bytes
