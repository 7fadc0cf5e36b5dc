"""The rare events of a binlog, taken apart in plain Python; row events are the kernels' work.

Layouts are those of MySQL's ``libs/mysql/binlog/event`` (``control_events.h``, ``statement_events.h``) and of MariaDB's
``sql/log_event.h``. All numbers are little-endian. An *event* is its 19-byte header and its body, the checksum left
out.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from enum import IntEnum

from historian.errors import LogCorrupt, PositionError, SourceError
from historian.positions import GtidSet, MariadbGtids

__all__ = [
    "FLAG_IN_USE",
    "FLAG_THREAD_SPECIFIC",
    "GTID_EVENTS",
    "HEADER_BYTES",
    "MAGIC",
    "MAX_SEQUENCE",
    "ROTATE_BYTES",
    "EventType",
    "FormatDescription",
    "Header",
    "event_name",
    "format_description",
    "gtid_list",
    "gtids_before",
    "header",
    "heartbeat_v2",
    "packed_integer",
    "previous_gtids",
    "rotate",
    "uuid_text",
]

MAX_SEQUENCE = 2**63 - 1
"""Of a GTID that is read: kernels take signed numbers. MariaDB's own go on to twice as many."""

MAGIC = b"\xfebin"
HEADER_BYTES = 19
ROTATE_BYTES = HEADER_BYTES + 8 + 4
"""A ROTATE event with its checksum, but for the name of the file in it."""
FLAG_IN_USE = 0x1
FLAG_THREAD_SPECIFIC = 0x4
FLAG_ARTIFICIAL = 0x20
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


class EventType(IntEnum):
    """Type numbers of events; those of MariaDB begin at 160."""

    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    APPEND_BLOCK = 9
    DELETE_FILE = 11
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    ANNOTATE_ROWS = 160
    BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_V1 = 166
    UPDATE_ROWS_COMPRESSED_V1 = 167
    DELETE_ROWS_COMPRESSED_V1 = 168
    WRITE_ROWS_COMPRESSED = 169
    UPDATE_ROWS_COMPRESSED = 170
    DELETE_ROWS_COMPRESSED = 171


GTID_EVENTS = (EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID)
"""Types of the events that begin a transaction."""


def event_name(number: int) -> str:
    """The event's name in capitals, or ``type N`` for one that nobody has named yet."""
    try:
        return EventType(number).name
    except ValueError:
        return f"type {number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """An event's first 19 bytes.

    ``next_offset`` is the low half of the offset behind the event; 0 where the server left it out.
    """

    timestamp: int
    type: int
    server_id: int
    size_bytes: int
    next_offset: int
    flags: int

    @property
    def artificial(self) -> bool:
        """Whether the event was made up for the connection and stands in no file."""
        return bool(self.flags & FLAG_ARTIFICIAL)


def header(data: bytes | memoryview) -> Header:
    """The header at the front of *data*."""
    timestamp, kind, server_id, size, following, flags = struct.unpack_from("<IBIIIH", data)
    return Header(
        timestamp=timestamp, type=kind, server_id=server_id, size_bytes=size, next_offset=following, flags=flags
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatDescription:
    """What a file's first event says of all others.

    Attributes:
        server_version: as text; ``version`` as a number like 80031; ``flavor``: "mysql" or "mariadb".
        checksum: whether a CRC32 of 4 bytes ends each event.
        in_use: the server was still writing the file, or died before it closed it.
        made_s: when the file was begun, seconds since 1970.
        restarted: the server was started with this file.
    """

    server_version: str
    version: int
    flavor: str
    checksum: bool
    in_use: bool
    made_s: int = 0
    restarted: bool = False


def format_description(event: bytes | memoryview) -> FormatDescription:
    """Reads a FORMAT_DESCRIPTION event, its last five bytes (algorithm and checksum) included.

    Raises:
        SourceError: written by a server older than MySQL 5.6 or MariaDB 10.0.
    """
    first = header(event)
    body = bytes(event[HEADER_BYTES:])
    if len(body) < 57 + 5:
        raise LogCorrupt("a FORMAT_DESCRIPTION event is too short", expected="at least 62 bytes", found=len(body))
    binlog_version = int.from_bytes(body[:2], "little")
    text = body[2:52].split(b"\0", 1)[0].decode("utf-8", "replace")
    numbers = _VERSION.match(text)
    version = 0 if numbers is None else (int(numbers[1]) * 100 + int(numbers[2])) * 100 + int(numbers[3])
    flavor = "mariadb" if "mariadb" in text.lower() else "mysql"
    if binlog_version != 4 or body[56] != HEADER_BYTES or version < (100000 if flavor == "mariadb" else 50600):
        raise SourceError(
            "a binlog of a server that is too old",
            expected="MySQL 5.7 or MariaDB 10.0 and later, binlog version 4",
            found=f"{text!r}, binlog version {binlog_version}",
        )
    algorithm = body[-5]
    if algorithm > 1:
        raise SourceError("an unknown checksum algorithm", expected="0 (none) or 1 (CRC32)", found=algorithm)
    return FormatDescription(
        server_version=text,
        version=version,
        flavor=flavor,
        checksum=algorithm == 1,
        in_use=bool(first.flags & FLAG_IN_USE),
        made_s=first.timestamp,
        restarted=any(body[52:56]),
    )


def rotate(event: bytes | memoryview) -> tuple[str, int]:
    """File and offset at which a ROTATE says the log goes on."""
    return bytes(event[HEADER_BYTES + 8 :]).decode("utf-8", "surrogateescape"), int.from_bytes(
        event[HEADER_BYTES : HEADER_BYTES + 8], "little"
    )


def heartbeat_v2(event: bytes | memoryview) -> int:
    """How far a HEARTBEAT_V2 says the server has come in its file: fields of a type, a length and a value each.

    Numbers are length-encoded; 1 is the file's name, 2 the offset, 0 ends them (MySQL, ``codecs/binary.cpp``).
    """
    body, at = bytes(event[HEADER_BYTES:]), 0
    try:
        while body[at]:
            kind, at = packed_integer(body, at)
            size, at = packed_integer(body, at)
            if kind == _HEARTBEAT_OFFSET:
                return packed_integer(body, at)[0]
            at += size
    except IndexError:
        pass
    raise LogCorrupt("a HEARTBEAT_V2 event says no offset", found=body.hex(" "))


_HEARTBEAT_OFFSET = 2


def previous_gtids(event: bytes | memoryview) -> GtidSet:
    """What a PREVIOUS_GTIDS event says was logged before its file.

    The encoding is that of ``Gtid_set::encode`` (MySQL, sql/rpl_gtid_set.cc): since 8.3 the count's top byte is 1 where
    tags follow.

    Raises:
        LogCorrupt: lengths that do not fit.
        PositionError: tags or numbers that no transaction has.
    """
    try:
        found = _previous_gtids(event)
    except (IndexError, ValueError, struct.error) as error:
        raise _misfit(event) from error
    return GtidSet.parse(str(found))


def gtids_before(event: bytes | memoryview, flavor: str) -> GtidSet | MariadbGtids:
    """What a PREVIOUS_GTIDS or GTID_LIST event in a log of that *flavor* says was logged before its file.

    Raises:
        LogCorrupt: it is the other kind of server's, or its lengths do not fit.
        PositionError: tags or numbers that no transaction has.
    """
    is_list = event[4] == EventType.GTID_LIST
    if is_list != (flavor == "mariadb"):
        raise LogCorrupt(f"a {event_name(event[4])} event in a log of {flavor}")
    return gtid_list(event) if is_list else previous_gtids(event)


def _misfit(event: bytes | memoryview) -> LogCorrupt:
    return LogCorrupt(f"a {event_name(event[4])} event does not fit its length", found=f"{len(event)} bytes")


def _previous_gtids(event: bytes | memoryview) -> GtidSet:
    body = memoryview(event)[HEADER_BYTES:]
    count = int.from_bytes(body[:8], "little")
    tagged = count >> 56 == 1
    if tagged:
        count = (count >> 8) & 0xFFFFFFFFFFFF
    at = 8
    found: dict[str, list[tuple[int, int]]] = {}
    for _ in range(count):
        source = uuid_text(body[at : at + 16])
        at += 16
        if tagged:
            tag_length = body[at] >> 1  # variable-length integer of one byte: tags have up to 32 letters
            tag = bytes(body[at + 1 : at + 1 + tag_length]).decode("ascii")
            at += 1 + tag_length
            source = f"{source}:{tag}" if tag else source
        (intervals,) = struct.unpack_from("<Q", body, at)
        at += 8
        for _ in range(intervals):
            first, behind = struct.unpack_from("<qq", body, at)
            at += 16
            found.setdefault(source, []).append((first, behind - 1))
    return GtidSet.of(found)


def gtid_list(event: bytes | memoryview) -> MariadbGtids:
    """The last GTID of each domain in a GTID_LIST event; a domain's latest stands last of its entries.

    Raises:
        LogCorrupt: lengths that do not fit.
        PositionError: a number of 2**63 or more, which no kernel takes.
    """
    body = memoryview(event)[HEADER_BYTES:]
    count = int.from_bytes(body[:4], "little") & 0x0FFFFFFF
    if len(body) < 4 + 16 * count:
        raise _misfit(event)
    latest: dict[int, tuple[int, int, int]] = {}
    for domain, server, sequence in struct.iter_unpack("<IIQ", body[4 : 4 + 16 * count]):
        if sequence > MAX_SEQUENCE:
            raise PositionError(
                "a GTID with a number that is not read",
                expected=f"up to {MAX_SEQUENCE}",
                found=f"{domain}-{server}-{sequence}",
            )
        latest[domain] = (domain, server, sequence)
    return MariadbGtids(tuple(latest[domain] for domain in sorted(latest)))


def uuid_text(data: bytes | memoryview) -> str:
    """A UUID's 16 bytes as the server prints them."""
    text = bytes(data).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def packed_integer(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A length-encoded integer of the client protocol at *at*, and the index behind it."""
    first = data[at]
    if first < 251:
        return first, at + 1
    width = {252: 2, 253: 3, 254: 8}.get(first)
    if width is None:
        raise LogCorrupt(
            "a length-encoded integer begins with a byte that none begins with",
            expected="0 to 250, 252, 253 or 254",
            found=first,
        )
    return int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width
