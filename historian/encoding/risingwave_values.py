"""Single values in RisingWave's value encoding, as Python values of Arrow types: what structs, lists and maps hold."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

from historian.encoding.fields import field_id, find_id
from historian.errors import RowCorrupt, ValueUnrepresentable

__all__ = ["DAYS_BEFORE_1970", "MAX_DECIMAL_SCALE", "read_value", "slices", "write_row", "write_value"]

DAYS_BEFORE_1970 = 719_163
"""A DATE counts days from 0001-01-01, which is day 1."""

_MICROSECOND = timedelta(microseconds=1)
_NAIVE, _AWARE = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: DTZ001 a naive type
MAX_DECIMAL_SCALE = 28
"""Digits behind the point."""
_SPECIALS = {1: "NaN", 2: "Infinity", 3: "-Infinity"}

_Pair = tuple[Callable[[Any, pa.DataType], bytes], Callable[[bytes, pa.DataType], Any], int]


def write_value(kind: pa.DataType, value: Any, where: str) -> bytes:
    """A value that is not NULL. Raises :class:`ValueUnrepresentable` for a type or value that this form does not have."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        text = value.encode() if isinstance(value, str) else value
        return len(text).to_bytes(4, "little") + text
    if pa.types.is_struct(kind):
        return _write_struct(kind, value, where)
    if pa.types.is_list(kind):
        parts = [_tagged(kind.value_type, each, where) for each in value]
        return len(value).to_bytes(4, "little") + b"".join(parts)
    if pa.types.is_map(kind):
        alterable = _is_alterable(kind.item_type)
        parts = [
            (write_value if alterable else _tagged)(kind.key_type, key, where) + _tagged(kind.item_type, item, where)
            for key, item in value
        ]
        # A map that is not alterable is a list of structs, each behind its tag.
        return len(value).to_bytes(4, "little") + b"".join(part if alterable else b"\x01" + part for part in parts)
    return _scalar(kind, where)[0](value, kind)


def read_value(kind: pa.DataType, data: bytes, at: int, where: str) -> tuple[Any, int]:
    """The value at *at*, and where it ends. Raises :class:`RowCorrupt` where there is none of the type."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        text, at = _cut(data, at + 4, _number(data, at, where), where)
        return (_text(text, where) if pa.types.is_string(kind) else text), at
    if pa.types.is_struct(kind):
        return _read_struct(kind, data, at, where)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _read_many(kind, data, at, where)
    _, read, width = _scalar(kind, where)
    value, at = _cut(data, at, width, where)
    try:
        return read(value, kind), at
    except (ValueError, OverflowError) as error:
        raise RowCorrupt("bytes are no encoded values of this kind", where=where, found=value.hex()) from error


def _read_many(kind: pa.DataType, data: bytes, at: int, where: str) -> tuple[Any, int]:
    count, at = _number(data, at, where), at + 4
    values = []
    for _ in range(count):
        if pa.types.is_list(kind):
            value, at = _read_tagged(kind.value_type, data, at, where)
        elif _is_alterable(kind.item_type):
            key, at = read_value(kind.key_type, data, at, where)
            item, at = _read_tagged(kind.item_type, data, at, where)
            value = (key, item)
        else:
            _, at = _cut(data, at, 1, where)
            key, at = _read_tagged(kind.key_type, data, at, where)
            item, at = _read_tagged(kind.item_type, data, at, where)
            value = (key, item)
        values.append(value)
    return values, at


def _is_alterable(kind: pa.DataType) -> bool:
    """Whether a struct with ids is in it, so that its fields can come and go."""
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(find_id(field) is not None for field in kind)
    if pa.types.is_list(kind):
        return _is_alterable(kind.value_type)
    return _is_alterable(kind.item_type) if pa.types.is_map(kind) else False


def _write_struct(kind: pa.DataType, value: Any, where: str) -> bytes:
    if not _is_alterable(kind):
        return b"".join(_tagged(field.type, value[field.name], where) for field in kind)
    values = [
        b"" if value[field.name] is None else write_value(field.type, value[field.name], f"{where}.{field.name}")
        for field in kind
    ]
    if any(value[field.name] is not None and not each for field, each in zip(kind, values, strict=True)):
        raise ValueUnrepresentable("a value of no bytes would be read back as NULL", where=where, found=kind)
    row = write_row([field_id(field) for field in kind], values)
    return len(row).to_bytes(4, "little") + row


def write_row(ids: list[int], values: list[bytes]) -> bytes:
    """A row of the values of those ids, in this order; one of no bytes is NULL."""
    offsets, end = [], 0
    for value in values:
        offsets.append(end)
        end += len(value)
    last = offsets[-1] if offsets else 0
    width, code = (1, 1) if last < 1 << 8 else (2, 2) if last < 1 << 16 else (4, 3)
    head = [bytes([0x80 | code]), len(ids).to_bytes(4, "little")]
    head += [number.to_bytes(4, "little", signed=True) for number in ids]
    return b"".join([*head, *(offset.to_bytes(width, "little") for offset in offsets), *values])


def _read_struct(kind: pa.DataType, data: bytes, at: int, where: str) -> tuple[Any, int]:
    if not _is_alterable(kind):
        value = {}
        for field in kind:
            value[field.name], at = _read_tagged(field.type, data, at, where)
        return value, at
    row, at = _cut(data, at + 4, _number(data, at, where), where)
    found = slices(row, where)
    value = {}
    for field in kind:
        slot = found.get(field_id(field), b"")
        value[field.name] = None
        if slot:
            value[field.name], end = read_value(field.type, slot, 0, f"{where}.{field.name}")
            if end != len(slot):
                raise RowCorrupt("bytes are no encoded values of this kind", where=f"{where}.{field.name}")
    return value, at


def slices(row: bytes, where: str) -> dict[int, bytes]:
    """The bytes of each column of a row by id, in its order. Raises :class:`RowCorrupt` where it is no valid row."""
    width = {0x81: 1, 0x82: 2, 0x83: 4}.get(row[0] if row else 0)
    count = _number(row, 1, where)
    values = 5 + count * (4 + (width or 0))
    if width is None or values > len(row):
        raise RowCorrupt("bytes are no encoded row", where=where, found=row[:5].hex())
    ids = struct.unpack_from(f"<{count}i", row, 5)
    at = 5 + 4 * count
    starts = [int.from_bytes(row[at + width * j : at + width * (j + 1)], "little") for j in range(count)]
    ends = [*starts[1:], len(row) - values]
    if any(a > b for a, b in zip(starts, ends, strict=False)):
        raise RowCorrupt("bytes are no encoded row", where=where, found="offsets that descend")
    return {number: row[values + a : values + b] for number, a, b in zip(ids, starts, ends, strict=False)}


def _tagged(kind: pa.DataType, value: Any, where: str) -> bytes:
    return b"\x00" if value is None else b"\x01" + write_value(kind, value, where)


def _read_tagged(kind: pa.DataType, data: bytes, at: int, where: str) -> tuple[Any, int]:
    tag, at = _cut(data, at, 1, where)
    if tag not in (b"\x00", b"\x01"):
        raise RowCorrupt("a tag is neither 0 nor 1", where=where, found=tag.hex())
    return read_value(kind, data, at, where) if tag == b"\x01" else (None, at)


def _cut(data: bytes, at: int, width: int, where: str) -> tuple[bytes, int]:
    if at + width > len(data):
        raise RowCorrupt("an encoded value is cut off", where=where, expected=f"{width} bytes", found=len(data) - at)
    return data[at : at + width], at + width


def _number(data: bytes, at: int, where: str) -> int:
    return int.from_bytes(_cut(data, at, 4, where)[0], "little")


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RowCorrupt("a text is no UTF-8", where=where, found=data.hex()) from error


def _scalar(kind: pa.DataType, where: str) -> _Pair:
    pair = _SCALARS.get(str(kind))
    if pair is None and pa.types.is_decimal128(kind):
        pair = (_write_decimal, _read_decimal, 16)
    if pair is None and pa.types.is_timestamp(kind) and kind.unit == "us":
        pair = (_write_instant, _read_instant, 8)
    if pair is None:
        raise ValueUnrepresentable("RisingWave's form has no such type", where=where, found=kind)
    return pair


def _packed(code: str) -> _Pair:
    form = struct.Struct(f"<{code}")
    return (lambda value, _: form.pack(value)), (lambda data, _: form.unpack(data)[0]), form.size


def _write_instant(value: datetime, _: pa.DataType) -> bytes:
    micros: int = (value - _AWARE) // _MICROSECOND
    return micros.to_bytes(8, "little", signed=True)


def _read_instant(data: bytes, _: pa.DataType) -> datetime:
    return _AWARE + timedelta(microseconds=int.from_bytes(data, "little", signed=True))


def _write_timestamp(value: datetime, _: pa.DataType) -> bytes:
    seconds, micros = divmod((value - _NAIVE) // _MICROSECOND, 1_000_000)
    return struct.pack("<qI", seconds, micros * 1000)


def _read_timestamp(data: bytes, _: pa.DataType) -> datetime:
    seconds, nanos = struct.unpack("<qI", data)
    return _NAIVE + timedelta(seconds=seconds, microseconds=_micros(nanos))


def _micros(nanos: int) -> int:
    if nanos % 1000 or nanos >= 10**9:
        raise ValueUnrepresentable("a time does not fit microseconds", found=f"{nanos} ns")
    return nanos // 1000


def _write_time(value: time, _: pa.DataType) -> bytes:
    return struct.pack("<II", value.hour * 3600 + value.minute * 60 + value.second, value.microsecond * 1000)


def _read_time(data: bytes, _: pa.DataType) -> time:
    seconds, nanos = struct.unpack("<II", data)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, _micros(nanos))


def _write_date(value: date, _: pa.DataType) -> bytes:
    return value.toordinal().to_bytes(4, "little", signed=True)


def _read_date(data: bytes, _: pa.DataType) -> date:
    return date.fromordinal(int.from_bytes(data, "little", signed=True))


def _read_boolean(data: bytes, _: pa.DataType) -> bool:
    if data[0] > 1:
        raise ValueError(data)
    return data[0] == 1


def _write_decimal(value: Decimal, kind: pa.DataType) -> bytes:
    """Flags (scale, sign), then the 96 bits of the unscaled value: low, middle, high."""
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    if kind.scale < 0 or kind.scale > MAX_DECIMAL_SCALE or unscaled >= 1 << 96:
        raise ValueUnrepresentable("a decimal takes more than 96 bits or 28 places", found=value)
    flags: int = kind.scale << 16 | sign << 31
    return flags.to_bytes(4, "little") + unscaled.to_bytes(12, "little")


def _read_decimal(data: bytes, _: pa.DataType) -> Decimal:
    if data[0]:
        raise ValueUnrepresentable("a special decimal", expected="a number", found=_SPECIALS.get(data[0], data.hex()))
    flags, unscaled = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:], "little")
    digits = tuple(map(int, str(unscaled)))
    return Decimal((flags >> 31, digits, -(flags >> 16 & 0xFF)))


_SCALARS: dict[str, _Pair] = {
    str(pa.int16()): _packed("h"),
    str(pa.int32()): _packed("i"),
    str(pa.int64()): _packed("q"),
    str(pa.float32()): _packed("f"),
    str(pa.float64()): _packed("d"),
    str(pa.bool_()): (lambda value, _: bytes([value]), _read_boolean, 1),
    str(pa.date32()): (_write_date, _read_date, 4),
    str(pa.time64("us")): (_write_time, _read_time, 8),
    str(pa.timestamp("us")): (_write_timestamp, _read_timestamp, 12),
}
