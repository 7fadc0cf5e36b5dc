"""The dump of a live server's log: the commands that start it, and windows of what the server sends.

Commands and packets: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_binlog_dump.html and
page_protocol_com_binlog_dump_gtid.html; MariaDB's variables: https://mariadb.com/kb/en/5-slave-registration/.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import time
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from connectors.readers.binlog.events.error_location import error_location
from connectors.readers.binlog.events.layout import (
    HEADER_BYTES,
    EventType,
    FormatDescription,
    event_name,
    format_description,
    header,
    heartbeat_v2,
    rotate,
)
from connectors.readers.binlog.kernels.log.finding import (
    AT,
    BAD_POSITION,
    BAD_SIZE,
    COUNT,
    END,
    ERROR,
    EVENT_END,
    EVENT_START,
    MORE,
    SPECIAL,
    find_in_packets,
)
from connectors.readers.binlog.transport.bulk_socket import BulkSocket
from connectors.readers.binlog.transport.compressed_socket import network_socket
from connectors.readers.binlog.transport.connection import (
    ConnectionLost,
    ServerAddress,
    answered,
    server_identity,
    take_server_id,
)
from connectors.readers.binlog.transport.dump_places import MAX_OFFSET, PURGED_NEXT_STEP, may_start
from connectors.readers.binlog.transport.read_buffer import CHECKSUM_BYTES, WINDOW_BYTES, ReadBuffer
from connectors.readers.binlog.transport.window import Window
from historian.errors import LogCorrupt, LogPurged, SourceError
from historian.positions import GtidSet

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from connectors.readers.base import Wake

__all__ = ["HEARTBEAT_S", "Dump", "encoded_gtids"]

_COM_BINLOG_DUMP = 0x12
_COM_BINLOG_DUMP_GTID = 0x1E
_NON_BLOCK = 1
_SEND_ANNOTATIONS = 2  # MariaDB only: else events would be missing that count in a transaction
_HEARTBEAT_V2 = 2  # MySQL only: heartbeats that say offsets beyond 4 GB too
_HEARTBEAT_V2_SINCE = (8, 0, 26)
_FIRST_EVENT = 4
HEARTBEAT_S = 10
"""A server that has nothing to send sends a heartbeat after that time, and so notices that a dump's socket is closed."""

_QUIET = frozenset(
    (
        EventType.ROTATE,
        EventType.STOP,
        EventType.FORMAT_DESCRIPTION,
        EventType.PREVIOUS_GTIDS,
        EventType.GTID_LIST,
        EventType.BINLOG_CHECKPOINT,
        EventType.START_ENCRYPTION,
    )
)
"""Events that stand between transactions and bring nothing: a log can grow by them, and change its file, without end."""


def encoded_gtids(gtids: GtidSet) -> bytes:
    """A GTID set as ``Gtid_set::encode`` writes it; with tags in the form of MySQL 8.3."""
    tagged = any(":" in source for source, _ in gtids)
    parts = [struct.pack("<Q", 1 << 56 | len(gtids.sources) << 8 | 1 if tagged else len(gtids.sources))]
    for source, intervals in gtids:
        uuid, _, tag = source.partition(":")
        parts.append(bytes.fromhex(uuid.replace("-", "")))
        if tagged:
            parts.append(bytes([len(tag) << 1]) + tag.encode("ascii"))
        parts.append(struct.pack("<Q", len(intervals)))
        parts.extend(struct.pack("<qq", first, last + 1) for first, last in intervals)
    return b"".join(parts)


class Dump:
    """One dump up to the log's present end, over a connection of its own. Iterate once; ``close`` at any time.

    Attributes:
        formats: what each file's first event said, by file, as soon as its first window is there.
        server_id: the id that it is known by to the server; 0 before it starts.
    """

    def __init__(self, address: ServerAddress, flavor: str, nameable: dict[str, int] | None = None) -> None:
        self.formats: dict[str, FormatDescription] = {}
        self.server_id = 0
        self._address, self._flavor = address, flavor
        self._connection: Connection[Any] = address.connect()
        self._read_buffer = ReadBuffer("", _FIRST_EVENT)
        self._where = ""
        self._nameable = {} if nameable is None else nameable
        self._begin = 0

    def from_file(self, file: str, offset: int, *, waits_as: str = "") -> Dump:
        """Starts at *offset* of *file*; an empty *file* is the log's first.

        With *waits_as* it goes on for ever, and holds the user lock of that name, by which it can be found and ended.

        The protocol has four bytes for an offset. Beyond them the dump starts at the last event that they can name, else at the file's first one, and what comes before *offset* is passed over.
        """
        self._where = f"{file}:{offset}"
        if not may_start(offset):
            self._begin, offset = offset, self._nameable.get(file, _FIRST_EVENT)
        self._read_buffer.begin_file(file, offset)
        server_id = self._prepare()
        if waits_as:
            self._execute("SELECT GET_LOCK(%s, 0)", waits_as)
        flags = self._flags(waits=bool(waits_as))
        self._send(_COM_BINLOG_DUMP, struct.pack("<IHI", offset, flags, server_id) + file.encode())
        return self

    def from_gtids(self, gtids: str) -> Dump:
        """Starts behind the transactions of *gtids*: only others are sent."""
        self._where = gtids
        server_id = self._prepare()
        if self._flavor == "mariadb":
            self._execute(
                "SET @slave_connect_state = %s, @slave_gtid_strict_mode = 1, @slave_gtid_ignore_duplicates = 0", gtids
            )
            self._send(_COM_BINLOG_DUMP, struct.pack("<IHI", _FIRST_EVENT, self._flags(), server_id))
        else:
            data = encoded_gtids(GtidSet.parse(gtids))
            head = struct.pack("<HIIQI", self._flags(), server_id, 0, _FIRST_EVENT, len(data))
            self._send(_COM_BINLOG_DUMP_GTID, head + data)
        return self

    def identity(self) -> str:
        """Identity of the server that the connection leads to; before it starts."""
        return server_identity(self._connection, self._flavor, str(self._address))

    @property
    def is_open(self) -> bool:
        """Whether it has a connection."""
        return bool(self._connection.open)

    @property
    def file(self) -> str:
        """The file that the server has come to."""
        return self._read_buffer.file

    @property
    def offset(self) -> int:
        """Behind the last event that was in a window or that the server has passed over."""
        return self._read_buffer.given

    def close(self) -> None:
        """Ends the connection, and with it the dump."""
        # Without COM_QUIT: the server is busy sending, and notices the closed socket.
        connection: Any = self._connection
        if connection._sock is not None:  # noqa: SLF001
            # A thread that waits for bytes is not woken by the end of its socket, but by that of the stream.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(network_socket(connection), socket.SHUT_RDWR)
        connection._force_close()  # noqa: SLF001

    def _flags(self, *, waits: bool = False) -> int:
        ends = 0 if waits else _NON_BLOCK
        if self._flavor == "mariadb":
            return ends | _SEND_ANNOTATIONS
        connection: Any = self._connection
        numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", connection.get_server_info())
        knows = numbers is not None and tuple(map(int, numbers.groups())) >= _HEARTBEAT_V2_SINCE
        return ends | (_HEARTBEAT_V2 if knows else 0)

    def _prepare(self) -> int:
        server_id = take_server_id(self._connection, self._address.server_ids, str(self._address))
        self.server_id = server_id
        self._execute("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")
        # In nanoseconds. MySQL 8.0.26 has the second name, and reads the first one too.
        period = HEARTBEAT_S * 1_000_000_000
        self._execute("SET @master_heartbeat_period = %s, @source_heartbeat_period = %s", period, period)
        if self._flavor == "mariadb":
            # 4: understands GTID events; with less the server puts other events in their place.
            self._execute("SET @mariadb_slave_capability = 4")
        return server_id

    def _execute(self, statement: str, *arguments: object) -> None:
        with answered(f"{self._address}: {statement}"), self._connection.cursor() as cursor:
            cursor.execute(statement, arguments or None)

    def _send(self, command: int, body: bytes) -> None:
        connection: Any = self._connection
        with answered(f"{self._address}: dump from {self._where}"):
            connection._execute_command(command, body)  # noqa: SLF001
        self._bulk = BulkSocket(self._connection, self._address.timeout_s)

    def windows(self, *, end: int | None = None) -> Iterator[Window]:
        """Windows of what is sent, in order; with *end* up to that offset of the file that the dump started in.

        Raises:
            LogPurged: what was asked for is no longer there.
            LogCorrupt: a wrong checksum, or bytes that are no events.
            ConnectionLost: the connection broke.
            SourceError: the server refuses.
        """
        read_buffer = self._read_buffer
        while end is None or read_buffer.offset < end:
            self._receive()
            while True:
                code = find_in_packets(*read_buffer.arguments())
                if code or read_buffer.is_full():
                    window = self._window(end)
                    if window is not None:
                        yield window
                if code == END:
                    return
                if code == SPECIAL and not self._special(stay=end is not None):
                    return
                if code in (ERROR, BAD_SIZE, BAD_POSITION):
                    raise self._failure(code)
                if not code:
                    break
        window = self._window(end)
        if window is not None:
            yield window

    def _window(self, end: int | None) -> Window | None:
        """What was found, from where the dump was to begin."""
        window = self._read_buffer.window(end=end)
        if window is None:
            return None
        nameable = int(np.searchsorted(window.offsets, MAX_OFFSET, side="right"))
        if nameable and self._read_buffer.offset > MAX_OFFSET - WINDOW_BYTES:
            self._nameable[window.file] = int(window.offsets[nameable - 1])
        if not self._begin:
            return window
        first = int(np.searchsorted(window.offsets, self._begin))
        if first == len(window.offsets):
            return None
        if window.offsets[first] != self._begin:
            raise LogCorrupt(
                "no event begins at the position",
                where=f"{window.file}:{self._begin}",
                found=f"one at {window.offsets[first]}",
                next_step="is it a position of this server's log?",
            )
        self._begin = 0
        return window.part(first, len(window.offsets))

    def rings(self, timeout_s: float, wake: Wake | None = None) -> bool:
        """Whether a transaction begins, or the dump ends, within that time and before *wake* is set; of a dump that waits. It follows the log's files."""
        read_buffer = self._read_buffer
        until_s = time.monotonic() + timeout_s
        while True:
            code = find_in_packets(*read_buffer.arguments())
            window = read_buffer.window() if read_buffer.state[COUNT] else None
            if window is not None and not _QUIET.issuperset(window.buffer[window.starts + 4].tolist()):
                return True
            if code == SPECIAL:
                self._special(stay=False)
                continue
            if code != MORE:
                return True
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not self._bulk.wait(left_s, wake):
                return False
            self._receive()

    def _receive(self) -> None:
        """Waits for bytes, then takes what is there."""
        read_buffer = self._read_buffer
        try:
            taken = self._bulk.receive(read_buffer.room())
        except (OSError, ValueError) as error:
            raise ConnectionLost(
                "the connection broke during a dump",
                where=f"{self._address}, {read_buffer.file}:{read_buffer.offset}",
                found=str(error),
            ) from error
        if not taken:
            raise ConnectionLost(
                "the server closed the connection during a dump",
                where=f"{self._address}, {read_buffer.file}:{read_buffer.offset}",
                expected="events, or a packet that ends the dump",
            )
        read_buffer.fill += taken

    def _special(self, *, stay: bool) -> bool:
        """Takes an event about the file or the connection; False where it leaves a file to *stay* in."""
        read_buffer = self._read_buffer
        event = read_buffer.buffer[int(read_buffer.state[EVENT_START]) : int(read_buffer.state[EVENT_END])].tobytes()
        with error_location(lambda: (event_name(event[4]), f"{read_buffer.file}:{read_buffer.offset}")):
            return self._take(event, stay=stay)

    def _take(self, event: bytes, *, stay: bool) -> bool:
        read_buffer, first = self._read_buffer, header(event)
        if first.type == EventType.FORMAT_DESCRIPTION:
            described = format_description(event)
            self.formats[read_buffer.file] = described
            read_buffer.checksum_bytes = CHECKSUM_BYTES if described.checksum else 0
            read_buffer.server_version = described.version
            if first.next_offset and not first.artificial:
                read_buffer.pass_to(first.next_offset)
        elif first.type == EventType.ROTATE:
            file, offset = rotate(_without_checksum(event))
            if file != read_buffer.file:
                if stay and read_buffer.file:
                    return False
                read_buffer.begin_file(file, offset)
        elif first.type in (EventType.HEARTBEAT, EventType.HEARTBEAT_V2):
            # It says how far the server has come over transactions that were not to be sent; the first kind in four bytes.
            high = read_buffer.offset & ~0xFFFFFFFF
            is_first = first.type == EventType.HEARTBEAT
            read_buffer.pass_to(max(read_buffer.offset, high | first.next_offset if is_first else heartbeat_v2(event)))
        return True

    def _failure(self, code: int) -> SourceError:
        read_buffer = self._read_buffer
        where = f"{read_buffer.file}:{read_buffer.offset}"
        if code == ERROR:
            packet = read_buffer.buffer[
                int(read_buffer.state[EVENT_START]) : int(read_buffer.state[EVENT_END])
            ].tobytes()
            return _dump_error(packet, str(self._address), self._where)
        data = read_buffer.buffer[int(read_buffer.state[AT]) : read_buffer.fill][:HEADER_BYTES].tobytes()
        if code == BAD_SIZE:
            return LogCorrupt("a packet of the dump is no event", where=where, found=data.hex(" "))
        return LogCorrupt(
            "the server sent an event that lies before the one it sent last",
            where=where,
            found=f"a {event_name(data[4])} event",
        )


def _without_checksum(event: bytes) -> bytes:
    # Whether made-up events carry one depends on settings that are not known before the first FORMAT_DESCRIPTION.
    body = event[:-CHECKSUM_BYTES]
    return body if zlib.crc32(body) == int.from_bytes(event[-CHECKSUM_BYTES:], "little") else event


def _dump_error(packet: bytes, address: str, where: str) -> SourceError:
    """The error that a server's error packet stands for."""
    number = int.from_bytes(packet[1:3], "little")
    text = packet[3:].decode("utf-8", "replace")
    if text.startswith("#"):
        text = text[6:]
    found = f"error {number}: {text}"
    low = text.lower()
    place = f"{address}, {where or 'the beginning'}"
    if number == 1236 and ("same server" in low or "same server_uuid/server_id" in low):
        return ConnectionLost(
            "another client with the same server id cut this dump off",
            where=place,
            found=found,
            next_step="give each client of this server its own range of source.server_id",
        )
    if number == 1236 and any(
        word in low for word in ("purged", "could not find first log", "not in the master's binlog", "> file size")
    ):
        return LogPurged(
            "the log at the position is gone, or was never there",
            where=place,
            found=found,
            next_step=PURGED_NEXT_STEP,
        )
    if number in (1045, 1142, 1227):
        return SourceError(
            "the user may not read the log",
            where=place,
            found=found,
            next_step="GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO the user",
        )
    if number in (1053, 1317, 1927, 4031):
        return ConnectionLost("the server ended the dump", where=place, found=found)
    return SourceError("the server refuses to send its log", where=place, found=found)
