"""A socket whose packets travel in frames, each of them compressed on its own.

Frames: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression_packet.html.
"""

from __future__ import annotations

import io
import socket
import ssl
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from historian.errors import SourceError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from pymysql.connections import Connection

__all__ = ["ZSTD_LEVEL", "CompressedSocket", "FrameCorrupt", "network_socket"]

ZSTD_LEVEL = 3
"""Both sides' level: what servers and their own clients take unless told otherwise."""

_HEADER_BYTES = 7
_LONGEST_BYTES = 0xFFFFFF
_LEAST_BYTES = 50  # fewer are sent as they are, as servers do
_BUFFER_BYTES = 1 << 18
_Codec = tuple[Callable[[bytes], bytes], Callable[[memoryview, int], Any]]
"""How to pack, and how to unpack to just so many bytes: with a ValueError, OSError or zlib.error where that cannot be."""


class FrameCorrupt(SourceError):
    """Bytes of a compressed connection are none that the server's compression gives."""

    usual_next_step = (
        "look for what changes bytes between here and the server, such as a proxy; or set source.compression: none"
    )


def network_socket(connection: Connection[Any]) -> socket.socket:
    """The socket that a connection's bytes go through, whether they are compressed or not."""
    own: Any = connection
    below = own._sock  # noqa: SLF001 - the library has no other way to its socket
    return below.below if isinstance(below, CompressedSocket) else below


class CompressedSocket:
    """Packets of a connection, sent and received in frames over the socket *below*, which may be one of TLS.

    It has what PyMySQL and :class:`~connectors.readers.binlog.transport.bulk_socket.BulkSocket` ask of a socket. Errors of the socket below
    come as they are.

    Args:
        algorithm: "zlib" or "zstd".
        where: the server, for errors.
    """

    def __init__(self, below: socket.socket, algorithm: str, where: str) -> None:
        self.below = below
        self._algorithm, self._where = algorithm, where
        codec: _Codec = _zstd() if algorithm == "zstd" else (zlib.compress, _from_zlib)
        self._pack, self._unpack = codec
        self._held = memoryview(bytearray(_BUFFER_BYTES))
        self._at = self._fill = 0
        self._plain = memoryview(b"")
        self._number = 0

    def makefile(self) -> io.BufferedReader:
        """What PyMySQL reads packets from; to close it leaves the socket open."""
        return io.BufferedReader(_Unpacked(self))

    def fileno(self) -> int:
        """Of the socket below, which may have nothing to give while bytes are :meth:`pending` here."""
        return self.below.fileno()

    def setblocking(self, flag: bool, /) -> None:  # noqa: FBT001 as a socket's
        """As a socket's."""
        self.below.setblocking(flag)

    def settimeout(self, timeout_s: float | None) -> None:
        """As a socket's: how long bytes of a frame are waited for, whole or not."""
        self.below.settimeout(timeout_s)

    def close(self) -> None:
        """As a socket's."""
        self.below.close()

    # ---- receiving -------------------------------------------------------------------------------------------------
    def pending(self) -> bool:
        """Whether there are bytes to take, or to go on with, that the network has delivered already."""
        if self._plain or self._fill - self._at >= self._frame_bytes():
            return True
        return isinstance(self.below, ssl.SSLSocket) and self.below.pending() > 0

    def recv_into(self, room: memoryview) -> int:
        """Takes unpacked bytes, as many as are there; how many, 0 where the server has closed the connection.

        Raises:
            FrameCorrupt: a frame cannot be unpacked.
            OSError: as of the socket below: no whole frame is there or comes in time, or the connection broke.
        """
        taken = 0
        while taken < len(room):
            if self._plain:
                part = self._plain[: len(room) - taken]
                room[taken : taken + len(part)] = part
                self._plain = self._plain[len(part) :]
                taken += len(part)
            elif not self._next_frame() and (taken or not self._receive()):
                break
        return taken

    def _frame_bytes(self) -> int:
        """How many bytes the next frame has, as far as they tell by now."""
        if self._fill - self._at < _HEADER_BYTES:
            return _HEADER_BYTES
        return _HEADER_BYTES + int.from_bytes(self._held[self._at : self._at + 3], "little")

    def _next_frame(self) -> bool:
        """Unpacks the next frame if all of it is there."""
        length = self._frame_bytes()
        if self._fill - self._at < length:
            return False
        frame = self._held[self._at : self._at + length]
        self._at += length
        size = int.from_bytes(frame[4:_HEADER_BYTES], "little")
        body = frame[_HEADER_BYTES:]
        if not size:
            # A copy: the buffer is moved and filled again.
            self._plain = memoryview(bytes(body))
            return True
        try:
            self._plain = memoryview(self._unpack(body, size)).cast("B")
        except (ValueError, OSError, zlib.error) as error:
            raise FrameCorrupt(
                f"a {self._algorithm} frame cannot be unpacked",
                where=self._where,
                expected=f"{size} bytes, packed into {len(body)}",
                found=str(error),
            ) from error
        return True

    def _receive(self) -> int:
        """Takes bytes from the socket below; how many."""
        rest = self._held[self._at : self._fill]
        size = max(_BUFFER_BYTES, self._frame_bytes())
        if not rest or self._at + size > len(self._held):
            held = self._held if len(self._held) == size else memoryview(bytearray(size))
            held[: len(rest)] = rest
            self._held, self._at, self._fill = held, 0, len(rest)
        count = self.below.recv_into(self._held[self._fill :])
        self._fill += count
        return count

    # ---- sending ---------------------------------------------------------------------------------------------------
    def sendall(self, data: bytes) -> None:
        """Sends one whole packet, its header included.

        Raises:
            OSError: as of the socket below.
        """
        if not data[3]:
            # Frames are numbered anew with each command, and a command's first packet has the number 0.
            self._number = 0
        for begin in range(0, len(data), _LONGEST_BYTES):
            part = data[begin : begin + _LONGEST_BYTES]
            body = self._pack(part) if len(part) >= _LEAST_BYTES else part
            size = len(part)
            if len(body) >= size:
                body, size = part, 0
            head = len(body).to_bytes(3, "little") + bytes([self._number]) + size.to_bytes(3, "little")
            self._number = (self._number + 1) % 256
            self.below.sendall(head + body)


class _Unpacked(io.RawIOBase):
    """A compressed socket as a file."""

    def __init__(self, source: CompressedSocket) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, room: WriteableBuffer, /) -> int:
        return self._source.recv_into(memoryview(room))


def _from_zlib(body: memoryview, size: int) -> bytes:
    unpacker = zlib.decompressobj()
    # One byte more than it may have, so that a stream that goes on is seen.
    data = unpacker.decompress(body, size + 1)
    if len(data) != size or not unpacker.eof or unpacker.unused_data:
        raise ValueError(f"{len(data)} bytes or more")
    return data


def _zstd() -> _Codec:
    import pyarrow as pa

    codec = pa.Codec("zstd", compression_level=ZSTD_LEVEL)
    return lambda data: codec.compress(data, asbytes=True), codec.decompress
