"""Values of row images in plain Python, type by type; see ``plain_decoder``."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from historian.schema.snapshots import ColumnType

__all__ = ["decimal_of", "json_text", "value_of"]

EPOCH = datetime(1970, 1, 1, tzinfo=ZoneInfo("UTC"))
INTEGERS = (1, 2, 9, 3, 8)
DIGITS_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
CODECS = {"utf8mb4": "utf-8", "utf8mb3": "utf-8", "latin1": "cp1252", "ascii": "ascii", "gbk": "gbk"}


def value_of(kind: int, metadata: bytes, column: ColumnType, take: Callable[[int], bytes], length: int) -> Any:
    """The value of *length* bytes; TIME is microseconds, BIT(1) a bool, dates that are none are None."""
    raw = take(length)
    if kind in INTEGERS:
        number = int.from_bytes(raw, "little", signed=not column.unsigned)
        return Decimal(number) if kind == 8 and column.unsigned else number
    if kind in VALUES:
        return VALUES[kind](raw)
    if kind in (4, 5):
        return struct.unpack("<f" if kind == 4 else "<d", raw)[0]
    if kind == 246:
        found = decimal_of(raw, *metadata)
        return found if metadata[0] <= 38 else f"{found:f}"
    if kind == 16:
        return raw == b"\1" if metadata == b"\1\0" else raw
    if column.name == "enum":
        return ["", *column.labels][int.from_bytes(raw, "little")]
    if column.name == "set":
        bits = int.from_bytes(raw, "little")
        return ",".join(label for bit, label in enumerate(column.labels) if bits >> bit & 1)
    if column.charset in (None, "binary"):
        return raw.ljust(metadata[1], b"\0") if column.name == "binary" else raw
    return raw.decode(CODECS[column.charset])


def _year(raw: bytes) -> int:
    return 1900 + raw[0] if raw[0] else 0


def decimal_of(raw: bytes, precision: int, scale: int) -> Decimal:
    """Groups of nine digits in four bytes, big-endian; the first bit is inverted, of negative numbers all others too."""
    positive = raw[0] & 0x80
    raw = bytes([raw[0] ^ 0x80, *raw[1:]])
    if not positive:
        raw = bytes(byte ^ 0xFF for byte in raw)
    whole = precision - scale
    digits, at = "", 0
    for size in (whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9):
        count = DIGITS_BYTES[size]
        if count:
            number = int.from_bytes(raw[at : at + count], "big")
            if number >= 10**size:
                raise ValueError(f"{number} in {size} digits")
            digits += f"{number:0{size}d}"
        at += count
    figures = tuple(map(int, digits))
    return Decimal((int(not positive and any(figures)), figures, -scale))


def _part(raw: bytes, size: int) -> int:
    """Microseconds of a fraction of half as many digits as bytes."""
    return int.from_bytes(raw, "big") * 10 ** (6 - 2 * size)


def _date(raw: bytes) -> date | None:
    number = int.from_bytes(raw, "little")
    try:
        return date(number >> 9, number >> 5 & 15, number & 31)
    except ValueError:
        return None


def _datetime(raw: bytes) -> datetime | None:
    number = int.from_bytes(raw[:5], "big") & (1 << 39) - 1
    years, month = divmod(number >> 22, 13)
    time = timedelta(hours=number >> 12 & 31, minutes=number >> 6 & 63, seconds=number & 63)
    try:
        return datetime(years, month, number >> 17 & 31) + time + timedelta(microseconds=_part(raw[5:], len(raw) - 5))  # noqa: DTZ001
    except ValueError:
        return None


def _timestamp(raw: bytes) -> datetime | None:
    us = int.from_bytes(raw[:4], "big") * 1_000_000 + _part(raw[4:], len(raw) - 4)
    return EPOCH + timedelta(microseconds=us) if us else None


def _time(raw: bytes) -> int:
    number = int.from_bytes(raw, "big") - (1 << 8 * len(raw) - 1)
    whole, part = divmod(abs(number), 1 << 8 * (len(raw) - 3))
    us = ((whole >> 12 & 1023) * 3600 + (whole >> 6 & 63) * 60 + (whole & 63)) * 1_000_000
    us += part * 10 ** (6 - 2 * (len(raw) - 3))
    return -us if number < 0 else us


# ---- JSON: json_binary.h ---------------------------------------------------------------------------------------------
def json_text(raw: bytes) -> str:
    """A document as the server prints it."""
    return _json(raw[0], raw[1:]) if raw else "null"


def _json(kind: int, data: bytes) -> str:
    if kind <= 3:
        return _container(data, large=kind in (1, 3), is_object=kind < 2)
    if kind == 4:
        return ("null", "true", "false")[data[0]]
    if kind in (5, 6, 7, 8, 9, 10):
        size = (2, 2, 4, 4, 8, 8)[kind - 5]
        return str(int.from_bytes(data[:size], "little", signed=kind in (5, 7, 9)))
    if kind == 11:
        return _double(struct.unpack("<d", data[:8])[0])
    if kind == 12:
        length, at = _varying(data, 0)
        return json.dumps(data[at : at + length].decode(), ensure_ascii=False)
    assert kind == 15
    length, at = _varying(data, 1)
    return _opaque(data[0], data[at : at + length])


def _varying(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first."""
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return number, at


def _container(data: bytes, *, large: bool, is_object: bool) -> str:
    size = 4 if large else 2

    def number(at: int, width: int = size) -> int:
        return int.from_bytes(data[at : at + width], "little")

    count = number(0)
    keys = 2 * size
    values = keys + (count * (size + 2) if is_object else 0)
    parts = []
    for index in range(count):
        entry = values + index * (1 + size)
        kind = data[entry]
        inlined = kind in (4, 5, 6) or (large and kind in (7, 8))
        text = _json(kind, data[entry + 1 : entry + 1 + size] if inlined else data[number(entry + 1) :])
        if is_object:
            at = keys + index * (size + 2)
            name = data[number(at) : number(at) + number(at + size, 2)].decode()
            text = f"{json.dumps(name, ensure_ascii=False)}: {text}"
        parts.append(text)
    return ("{%s}" if is_object else "[%s]") % ", ".join(parts)


def _double(value: float) -> str:
    """Of moderate size only: a whole one has a point."""
    assert value == 0 or 1e-4 <= abs(value) < 1e15
    return repr(value)


def _opaque(kind: int, data: bytes) -> str:
    if kind == 246:
        return f"{decimal_of(data[2:], data[0], data[1]):f}"
    return json.dumps(f"base64:type{kind}:{base64.b64encode(data).decode()}")


VALUES = {10: _date, 13: _year, 17: _timestamp, 18: _datetime, 19: _time, 245: json_text}
