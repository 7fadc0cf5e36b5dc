"""Binlog events written in plain Python: an encoder to hold against the decoder, and logs that no server writes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from historian.names import TableName
from historian.schema.snapshots import Column, ColumnType, Snapshot

__all__ = [
    "BEGIN",
    "XID",
    "WireType",
    "begin",
    "commit",
    "event",
    "gtid",
    "partial_rows_event",
    "rows_event",
    "snapshot_of",
    "table_map",
    "wire_decimal",
    "wire_integer",
    "wire_json",
    "wire_temporal",
    "wire_text",
]

TIMESTAMP = 1_700_000_000
SERVER_ID = 7
TABLE = TableName("db", "t")
UUID = bytes(range(16))
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - DATETIME has no zone
DIGITS_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def event(kind: int, body: bytes, *, timestamp: int = TIMESTAMP, flags: int = 0) -> bytes:
    """An event without checksum."""
    return struct.pack("<IBIIIH", timestamp, kind, SERVER_ID, 19 + len(body), 0, flags) + body


def gtid(number: int, *, committed_us: int = 0, original_us: int = 0, uuid: bytes = UUID, kind: int = 33) -> bytes:
    """A GTID event of 8.0; with *original_us* that of a transaction that came from another server."""
    body = b"\1" + uuid + struct.pack("<q", number) + b"\2" + bytes(16)
    if committed_us or original_us:
        body += (committed_us | (1 << 55 if original_us else 0)).to_bytes(7, "little")
        body += original_us.to_bytes(7, "little") if original_us else b""
    return event(kind, body)


def begin(text: bytes = b"BEGIN") -> bytes:
    """A QUERY event."""
    flags = struct.pack("<BI", 0, 0)
    return event(2, struct.pack("<IIBHH", 1, 0, 2, 0, len(flags)) + flags + b"db\0" + text)


BEGIN = begin()
XID = event(16, bytes(8))


def commit(number: int, *events: bytes) -> list[bytes]:
    """A whole transaction."""
    return [gtid(number), BEGIN, *events, XID]


def packed(number: int) -> bytes:
    return bytes([number]) if number < 251 else b"\xfc" + struct.pack("<H", number)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireType:
    """A column type: the snapshot's, the TABLE_MAP's, and how a value is written."""

    type: ColumnType
    code: int
    metadata: bytes
    encode: Any


def wire_integer(name: str, code: int, size: int, *, unsigned: bool) -> WireType:
    """TINYINT to BIGINT."""
    return WireType(
        type=ColumnType(name=name, unsigned=unsigned),
        code=code,
        metadata=b"",
        encode=lambda value: int(value).to_bytes(size, "little", signed=not unsigned),
    )


def wire_decimal(digits: int, scale: int) -> WireType:
    """DECIMAL: the value as an integer of its digits, in groups of nine."""

    def encode(value: Decimal) -> bytes:
        negative, figures, exponent = value.as_tuple()
        assert -int(exponent) in {scale, 0}
        number = int("".join(map(str, figures))) * (1 if exponent else 10**scale) * (-1 if negative else 1)
        whole = digits - scale
        text = f"{abs(number):0{digits}d}"
        sizes = [whole % 9] + [9] * (whole // 9) + [9] * (scale // 9) + [scale % 9]
        out, at = b"", 0
        for size in sizes:
            if size:
                out += int(text[at : at + size]).to_bytes(DIGITS_BYTES[size], "big")
            at += size
        if number < 0:
            out = bytes(byte ^ 0xFF for byte in out)
        return bytes([out[0] ^ 0x80]) + out[1:]

    kind = ColumnType(name="decimal", precision=digits, scale=scale)
    return WireType(type=kind, code=246, metadata=bytes([digits, scale]), encode=encode)


def wire_text(longest: int, charset: str | None = "utf8mb4") -> WireType:
    """VARCHAR of so many characters, or VARBINARY of bytes without a charset."""
    longest_bytes = longest * (4 if charset else 1)
    size = 1 if longest_bytes < 256 else 2

    def encode(value: str | bytes) -> bytes:
        data = value.encode() if isinstance(value, str) else value
        return len(data).to_bytes(size, "little") + data

    kind = ColumnType(name="varchar" if charset else "varbinary", length=longest, charset=charset)
    return WireType(type=kind, code=15, metadata=struct.pack("<H", longest_bytes), encode=encode)


def wire_json() -> WireType:
    """JSON: documents as their binary form."""
    return WireType(
        type=ColumnType(name="json"),
        code=245,
        metadata=b"\4",
        encode=lambda value: len(value).to_bytes(4, "little") + value,
    )


def _fraction(us: int, digits: int) -> bytes:
    size = (digits + 1) // 2
    return (us // 10 ** (6 - 2 * size)).to_bytes(size, "big") if size else b""


def wire_temporal(name: str, digits: int = 0) -> WireType:
    """DATE, DATETIME, TIMESTAMP (as seconds and microseconds) and TIME (as microseconds)."""

    def of_date(value: date) -> bytes:
        return (value.year << 9 | value.month << 5 | value.day).to_bytes(3, "little")

    def of_datetime(value: datetime) -> bytes:
        bits = (value.year * 13 + value.month) << 22 | value.day << 17
        bits |= value.hour << 12 | value.minute << 6 | value.second
        return (bits | 1 << 39).to_bytes(5, "big") + _fraction(value.microsecond, digits)

    def of_timestamp(value: datetime) -> bytes:
        since = value.replace(tzinfo=None) - EPOCH
        return (since // timedelta(seconds=1)).to_bytes(4, "big") + _fraction(value.microsecond, digits)

    def of_time(value: int) -> bytes:
        seconds, us = divmod(abs(value), 1_000_000)
        bits = (seconds // 3600) << 12 | (seconds // 60 % 60) << 6 | seconds % 60
        number = int.from_bytes(bits.to_bytes(3, "big") + _fraction(us, digits), "big")
        size = 3 + (digits + 1) // 2
        return ((1 << (8 * size - 1)) + (-number if value < 0 else number)).to_bytes(size, "big")

    code, encode = {
        "date": (10, of_date),
        "datetime": (18, of_datetime),
        "timestamp": (17, of_timestamp),
        "time": (19, of_time),
    }[name]
    metadata = b"" if name == "date" else bytes([digits])
    return WireType(type=ColumnType(name=name, fraction=digits), code=code, metadata=metadata, encode=encode)


def snapshot_of(types: Sequence[WireType], *, name: TableName = TABLE, key: int = 1) -> Snapshot:
    """A table with these columns, the first *key* of them being its primary key."""
    columns = tuple(Column(id=index, name=f"c{index}", type=each.type) for index, each in enumerate(types, 1))
    return Snapshot(
        table_id=1,
        name=name,
        columns=columns,
        primary_key=tuple(range(1, key + 1)),
        charset="utf8mb4",
        collation="utf8mb4_bin",
    )


def table_map(number: int, types: Sequence[WireType], *, name: TableName = TABLE) -> bytes:
    """A TABLE_MAP without optional metadata."""
    body = number.to_bytes(6, "little") + b"\1\0"
    for text in name:
        body += bytes([len(text)]) + text.encode() + b"\0"
    metadata = b"".join(each.metadata for each in types)
    body += packed(len(types)) + bytes(each.code for each in types)
    return event(19, body + packed(len(metadata)) + metadata + b"\xff" * ((len(types) + 7) // 8))


def image(types: Sequence[WireType], row: Sequence[Any]) -> bytes:
    """A full row image; None is NULL."""
    bits = sum(1 << index for index, value in enumerate(row) if value is None)
    out = bits.to_bytes((len(row) + 7) // 8, "little")
    return out + b"".join(each.encode(value) for each, value in zip(types, row, strict=True) if value is not None)


def rows_event(
    kind: int, number: int, types: Sequence[WireType], rows: Sequence[Sequence[Any]], **header: Any
) -> bytes:
    """WRITE (23, 30), UPDATE (24, 31; before and after in turn) or DELETE (25, 32) of *rows*."""
    body = number.to_bytes(6, "little") + b"\1\0" + (b"\2\0" if kind >= 30 else b"")
    present = ((1 << len(types)) - 1).to_bytes((len(types) + 7) // 8, "little")
    body += packed(len(types)) + present * (2 if kind in {24, 31} else 1)
    return event(kind, body + b"".join(image(types, row) for row in rows), **header)


def partial_rows_event(
    kind: int,
    number: int,
    types: Sequence[WireType],
    present: Sequence[Sequence[int]],
    rows: Sequence[Sequence[Any]],
    *,
    options: bytes = b"",
) -> bytes:
    """A row event whose images have the columns *present* (an UPDATE's before and after in turn) and no others.

    *options* stand in front of each after image of kind 39.
    """
    body = number.to_bytes(6, "little") + b"\1\0" + (b"\2\0" if kind >= 30 else b"") + packed(len(types))
    for columns in present:
        body += sum(1 << column for column in columns).to_bytes((len(types) + 7) // 8, "little")
    for index, row in enumerate(rows):
        columns = present[index % len(present)]
        body += options if kind == 39 and index % 2 else b""
        body += image([types[column] for column in columns], row)
    return event(kind, body)
