"""A prepared SELECT and the packets of its result, kept as bytes in one buffer.

Packets: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase_ps.html.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from connectors.readers.binlog.kernels.results import layout as at
from connectors.readers.binlog.selected.definitions import Definition, definition
from connectors.readers.binlog.selected.failures import refused, refused_by_packet
from connectors.readers.binlog.transport.bulk_socket import BulkSocket
from connectors.readers.binlog.transport.connection import ConnectionLost, answered
from historian.errors import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pymysql.connections import Connection

__all__ = ["Result"]

_COM_STMT_PREPARE, _COM_STMT_EXECUTE, _COM_STMT_CLOSE = 0x16, 0x17, 0x19
_BUFFER_BYTES = 4 << 20
_LEAST_ROOM_BYTES = 1 << 19
_SILENCE_S = 3600
_LONGEST_PART = 0xFFFFFF
_ERROR, _END = 0xFF, 0xFE


class Result:
    """The result of one SELECT on a connection that nobody else uses meanwhile.

    Attributes:
        state: words of :mod:`connectors.readers.binlog.kernels.results.layout`; AT to NEEDED are of the packets here.
        definitions: of the result's columns.
    """

    def __init__(self, connection: Connection[Any], statement: str, where: str) -> None:
        self._connection: Any = connection
        self._where = where
        self.state: NDArray[np.int64] = np.zeros(at.STATE_WORDS, np.int64)
        self._take_buffer(_BUFFER_BYTES)
        self._fill = 0
        self._statement = self._prepare(statement)
        self._command(_COM_STMT_EXECUTE, struct.pack("<IBI", self._statement, 0, 1))
        self._socket = BulkSocket(connection, _SILENCE_S)
        self.definitions = self._head()

    def _take_buffer(self, size: int) -> None:
        self._buffer: NDArray[np.uint8] = np.zeros(size + at.SLACK, np.uint8)
        self._bytes = memoryview(self._buffer)[:size]  # type: ignore[arg-type]

    def _prepare(self, statement: str) -> int:
        """Prepares the statement; its number."""
        import pymysql

        connection = self._connection
        try:
            connection._execute_command(_COM_STMT_PREPARE, statement)  # noqa: SLF001 - the library prepares nothing
            head = connection._read_packet().get_all_data()  # noqa: SLF001
            number, columns, parameters = struct.unpack_from("<IHH", head, 1)
            for count in (parameters, columns):
                for _ in range(count + 1 if count else 0):
                    connection._read_packet()  # noqa: SLF001
        except pymysql.err.MySQLError as error:
            code, text = (*error.args, "")[:2] if error.args else (0, str(error))
            raise refused(code if isinstance(code, int) else 0, str(text), self._where) from error
        except OSError as error:
            raise self._lost(error) from error
        if parameters:
            raise SourceError("a predicate with parameters", where=self._where, expected="none", found=parameters)
        return int(number)

    def _command(self, command: int, body: bytes) -> None:
        with answered(self._where):
            self._connection._execute_command(command, body)  # noqa: SLF001

    def _head(self) -> tuple[Definition, ...]:
        """Takes what stands before the rows."""
        first = self._packet()
        if first[0] == _ERROR:
            raise refused_by_packet(first, self._where)
        count = first[0] if len(first) == 1 else int.from_bytes(first[1:3], "little")
        found = tuple(definition(self._packet()) for _ in range(count))
        last = self._packet()
        if last[0] != _END:
            raise SourceError(
                "the server's answer to a SELECT cannot be read", where=self._where, found=last[:16].hex()
            )
        return found

    def _packet(self) -> bytes:
        """The next packet, a short one."""
        place = int(self.state[at.AT])
        while self._fill - place < 4 or self._fill - place - 4 < self._length(place):
            self.state[at.NEEDED] = 4 if self._fill - place < 4 else 4 + self._length(place)
            self.receive()
            place = int(self.state[at.AT])
        begin = place + 4
        behind = begin + self._length(place)
        self.state[at.AT] = behind
        return self._buffer[begin:behind].tobytes()

    def _length(self, place: int) -> int:
        return int.from_bytes(self._buffer[place : place + 3].tobytes(), "little")

    def arguments(self) -> tuple[int, int, int]:
        """What the kernel takes."""
        return self.state.ctypes.data, self._buffer.ctypes.data, self._fill

    def receive(self) -> None:
        """Reads on, so that there is more of the packet that the kernel stopped at.

        Raises:
            ConnectionLost: the connection broke.
        """
        size = len(self._bytes)
        begin, needed = int(self.state[at.AT]), int(self.state[at.NEEDED])
        if begin and (begin == self._fill or size - self._fill < _LEAST_ROOM_BYTES or begin + needed > size):
            self._move()
            begin = 0
        if begin + needed > size:
            self._grow(max(begin + needed + _BUFFER_BYTES, size + size // 2))
        elif self._fill == size:
            self._grow(2 * size)
        try:
            taken = self._socket.receive(self._bytes[self._fill :])
        except (OSError, ValueError) as error:
            raise self._lost(error) from error
        if not taken:
            raise self._lost("the server closed the connection")
        self._fill += taken

    def _move(self) -> None:
        """Puts the bytes of the packet that has begun to the front."""
        begin = int(self.state[at.AT])
        rest = self._buffer[begin : self._fill]
        if len(self._bytes) > _BUFFER_BYTES and max(len(rest), int(self.state[at.NEEDED])) < _BUFFER_BYTES:
            self._take_buffer(_BUFFER_BYTES)
        self._buffer[: len(rest)] = rest
        self._fill = len(rest)
        self.state[at.AT] = 0
        if self.state[at.JOINED]:
            self.state[at.JOINED_END] -= begin

    def _grow(self, size: int) -> None:
        held = self._buffer[: self._fill]
        self._take_buffer(size)
        self._buffer[: len(held)] = held

    def join(self) -> None:
        """Puts the parts of a packet of 16 MB or more behind each other, once all are there."""
        while not self._whole():
            self.receive()
        place = int(self.state[at.AT])
        target = source = place + 4
        last = False
        while not last:
            length = self._length(source - 4)
            # numpy sees that the two overlap.
            self._buffer[target : target + length] = self._buffer[source : source + length]
            target, source = target + length, source + length + 4
            last = length < _LONGEST_PART
        self.state[at.JOINED], self.state[at.JOINED_END] = target - place - 4, source - 4

    def _whole(self) -> bool:
        """Whether all parts of the packet are there; says how many bytes are needed where not."""
        begin = place = int(self.state[at.AT])
        while True:
            if self._fill - place < 4:
                needed = place + 4 - begin
                break
            length = self._length(place)
            place += 4 + length
            if place > self._fill:
                needed = place - begin
                break
            if length < _LONGEST_PART:
                return True
        self.state[at.NEEDED] = needed
        return False

    def error(self) -> SourceError:
        """The error that the packet which the kernel stopped at stands for."""
        return refused_by_packet(self._packet(), self._where)

    def end(self) -> None:
        """The connection may be used for something else: the result has been read to its end."""
        self._socket.give_back()
        self._command(_COM_STMT_CLOSE, struct.pack("<I", self._statement))

    def _lost(self, found: object) -> ConnectionLost:
        return ConnectionLost("the connection broke during a SELECT", where=self._where, found=str(found))
