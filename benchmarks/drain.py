"""The same dump as ours, whose bytes are taken from the connection and thrown away: what no decoder can beat."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binlog_work import address

from connectors.readers.binlog.transport.dump import Dump

if TYPE_CHECKING:
    from databases.servers import Server
    from historian.plans.plans import LogRange

__all__ = ["CpuMeter", "Drain"]

_BUFFER_BYTES = 1 << 20


class CpuMeter:
    """CPU seconds of this process and of the server's, summed over what is measured; the server's in steps of 10 ms."""

    def __init__(self, server: Server) -> None:
        self.own_s = self.server_s = 0.0
        self._stat = Path(f"/proc/{server.pid}/stat")

    def measured(self, run: Callable[[], float]) -> float:
        """What *run* returns."""
        own_s, server_s = time.process_time(), self._server_s()
        value = run()
        self.own_s += time.process_time() - own_s
        self.server_s += self._server_s() - server_s
        return value

    def _server_s(self) -> float:
        user, system = self._stat.read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Drain:
    """Takes what the server sends of a range, which is the rest of its file, into one buffer again and again."""

    def __init__(self, server: Server, planned: LogRange) -> None:
        self._server, self._range = server, planned
        self._total_bytes = 0
        self._total_bytes = self._run(self._bytes_up_to_end)[1]

    def seconds(self) -> float:
        """How long all of it takes, connecting included."""
        return self._run(self._known_bytes)[0]

    def _run(self, take: Any) -> tuple[float, int]:
        begin = time.perf_counter()
        dump = Dump(address(self._server), "mysql").from_file(self._range.file, self._range.start)
        try:
            connection: Any = dump._connection
            connection._sock.setblocking(True)
            taken = take(connection._sock)
            return time.perf_counter() - begin, taken
        finally:
            dump.close()

    def _known_bytes(self, connection: Any) -> int:
        buffer = memoryview(bytearray(_BUFFER_BYTES))
        left = self._total_bytes
        while left:
            count = connection.recv_into(buffer, min(left, _BUFFER_BYTES))
            if not count:
                raise SystemExit("socket_drain: the server sent less than before")
            left -= count
        return self._total_bytes

    def _bytes_up_to_end(self, connection: Any) -> int:
        """Counts the bytes up to the event that ends where the range does."""
        reader = connection.makefile("rb", buffering=_BUFFER_BYTES)
        total, split = 0, False
        while True:
            head = reader.read(4)
            length = int.from_bytes(head[:3], "little")
            body = reader.read(length)
            total += 4 + length
            is_event = not split and len(body) >= 20 and body[0] == 0
            split = length == 0xFFFFFF
            # Made-up events have no place in the file.
            if is_event and int.from_bytes(body[14:18], "little") == self._range.end and not body[18] & 0x20:
                return total
            if body[:1] in (b"\xff", b"\xfe") and not is_event:
                raise SystemExit("socket_drain: the server did not send the range")
