"""Binlog files and dumps written in plain Python, with places and checksums as a server would give them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from logs.row_events import event

__all__ = [
    "FORMAT_END",
    "events_of",
    "format_description",
    "gtid_list",
    "log_bytes",
    "mariadb_gtid",
    "packets",
    "previous_gtids",
    "write_log",
]

MAGIC = b"\xfebin"
FORMAT_END = 4 + 19 + 57 + 40 + 5
"""Offset behind FORMAT_DESCRIPTION."""


def format_description(version: str = "8.0.31", *, checksum: bool = True, in_use: bool = False) -> bytes:
    """FORMAT_DESCRIPTION with the algorithm, but without the checksum behind it."""
    body = struct.pack("<H50sIB", 4, version.encode(), 0, 19) + bytes(40) + bytes([checksum])
    return event(15, body, flags=1 if in_use else 0)


def previous_gtids(*sources: tuple[bytes, Sequence[tuple[int, int]]]) -> bytes:
    """PREVIOUS_GTIDS; both ends of each interval are in it."""
    body = struct.pack("<Q", len(sources))
    for uuid, intervals in sources:
        body += uuid + struct.pack("<Q", len(intervals))
        body += b"".join(struct.pack("<qq", first, last + 1) for first, last in intervals)
    return event(35, body)


def gtid_list(*gtids: tuple[int, int, int]) -> bytes:
    """GTID_LIST of domain, server, sequence."""
    return event(163, struct.pack("<I", len(gtids)) + b"".join(struct.pack("<IIQ", *gtid) for gtid in gtids))


def mariadb_gtid(sequence: int, *, domain: int = 0, flags: int = 0, more: bytes = bytes(6)) -> bytes:
    """A MariaDB GTID event; FL_STANDALONE is 1, FL_GROUP_COMMIT_ID 2, FL_PREPARED_XA 64, FL_COMPLETED_XA 128."""
    return event(162, struct.pack("<QIB", sequence, domain, flags) + more)


def placed(raw: bytes, offset: int, *, checksum: bool, always_sum: bool = False) -> bytes:
    """An event as it stands at *offset*, with its size, the next one's offset and its checksum."""
    size = len(raw) + (4 if checksum or always_sum else 0)
    raw = raw[:9] + struct.pack("<II", size, (offset + size) & 0xFFFFFFFF) + raw[17:]
    return raw + (struct.pack("<I", zlib.crc32(raw)) if size > len(raw) else b"")


def log_bytes(
    events: Sequence[bytes], *, version: str = "8.0.31", checksum: bool = True, in_use: bool = False
) -> bytes:
    """A file with *events* behind FORMAT_DESCRIPTION."""
    out = bytearray(MAGIC)
    first = placed(format_description(version, checksum=checksum), 4, checksum=checksum, always_sum=True)
    out += first[:17] + bytes([first[17] | in_use]) + first[18:]
    for raw in events:
        out += placed(raw, len(out), checksum=checksum)
    return bytes(out)


def events_of(data: bytes) -> list[bytes]:
    """The events of a file's bytes, their checksums included."""
    at, found = len(MAGIC), []
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        found.append(data[at : at + size])
        at += size
    return found


def write_log(directory: Path, number: int, events: Sequence[bytes], **options: object) -> Path:
    """Writes ``binlog.00000N``."""
    path = directory / f"binlog.{number:06d}"
    path.write_bytes(log_bytes(events, **options))  # type: ignore[arg-type]
    return path


def packets(payloads: Sequence[bytes]) -> bytes:
    """MySQL packets of *payloads*, long ones in parts."""
    out, sequence = b"", 0
    for payload in payloads:
        rest = payload
        while True:
            part, rest = rest[:0xFFFFFF], rest[0xFFFFFF:]
            out += len(part).to_bytes(3, "little") + bytes([sequence & 255]) + part
            sequence += 1
            if len(part) < 0xFFFFFF:
                break
    return out
