"""Compressed events written in plain Python, as MySQL and MariaDB write them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import pyarrow as pa

from logs.row_events import event, packed

__all__ = ["compressed", "payload"]

KINDS = {2: 165, 23: 166, 24: 167, 25: 168, 30: 169, 31: 170, 32: 171}


def payload(events: Sequence[bytes], *, how: int = 0, unpacked: int | None = None, data: bytes | None = None) -> bytes:
    """A TRANSACTION_PAYLOAD of *events*: zstd (0) or not compressed (255)."""
    plain = b"".join(events)
    if data is None:
        data = pa.Codec("zstd").compress(plain, asbytes=True) if how == 0 else plain
    size = len(plain) if unpacked is None else unpacked
    fields = b""
    for number, value in ((2, how), (3, size), (1, len(data))):
        encoded = _integer(value)
        fields += bytes([number, len(encoded)]) + encoded
    return event(40, fields + b"\0" + data)


def _integer(number: int) -> bytes:
    if number < 251:
        return packed(number)
    if number < 1 << 16:
        return b"\xfc" + struct.pack("<H", number)
    return b"\xfe" + struct.pack("<Q", number) if number >= 1 << 24 else b"\xfd" + struct.pack("<I", number)[:3]


def compressed(plain: bytes, *, length_bytes: int = 0, algorithm: int = 0) -> bytes:
    """MariaDB's compressed form of a QUERY or row event."""
    kind = plain[4]
    at = 19 + _behind(plain[19:], kind)
    body = plain[at:]
    width = length_bytes or max(1, (len(body).bit_length() + 7) // 8)
    head = bytes([0x80 | algorithm << 4 | width]) + len(body).to_bytes(width, "big")
    return event(KINDS[kind], plain[19:at] + head + zlib.compress(body))


def _behind(body: bytes, kind: int) -> int:
    """Bytes of the body that stay as they are."""
    if kind == 2:
        return 13 + int.from_bytes(body[11:13], "little") + body[8] + 1
    at = 8 + (int.from_bytes(body[8:10], "little") if kind >= 30 else 0)
    columns, width = (body[at], 1) if body[at] < 251 else (int.from_bytes(body[at + 1 : at + 3], "little"), 3)
    return at + width + (columns + 7) // 8 * (2 if kind in {24, 31} else 1)
