"""Values in the server's own text as Python and Arrow values: what rows read in a column that they were not given."""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from historian.ddl.types.defaults import implied_value
from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import BYTE_TYPES, GEOMETRIES, INTEGER_TYPES, Column, ColumnType
from historian.values.arrow_types import MAX_DECIMAL_DIGITS, arrow_type
from historian.values.policies import FAIL, policy_of

__all__ = ["Value", "default_scalar", "inet6_text", "initial_scalar", "initial_value"]

Value = bool | int | float | Decimal | str | bytes | date | datetime | None

_ZEROS = re.compile("0+")
_BITS = re.compile(r"b'([01]*)'|0b([01]+)|0x([0-9A-Fa-f]*)|([0-9]+)")
_HEX = re.compile(r"0x((?:[0-9A-Fa-f]{2})*)")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_DATETIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?")
_TIME = re.compile(r"(-?)(\d{1,3}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?")


def initial_value(column: Column) -> Value:
    """What rows written before *column* was added read in it, for Arrow's type of the column.

    TIME is microseconds; BIT big-endian bytes, BIT(1) a boolean; TIMESTAMP in UTC; a zero date None, as when
    decoded, and so is what a policy makes NULL (:mod:`historian.values.policies`).

    Raises:
        ValueUnrepresentable: only the server knows the value, or its text is none of the column's type.
    """
    if not column.initial_known:
        raise ValueUnrepresentable(
            "only the server knows what old rows hold in an added column",
            where=column.name,
            next_step="`historian heal` captures the table again, after that ALTER",
        )
    if column.initial is None:
        return None
    read = _READ_SHAPES.get(column.type.shape) or _READ.get(column.type.name, _text)
    try:
        return read(column.initial, column.type)
    except (ValueError, KeyError, InvalidOperation, OverflowError) as error:
        raise ValueUnrepresentable(
            "a column's initial value is none of its type",
            where=column.name,
            expected=column.type,
            found=repr(column.initial),
        ) from error


def initial_scalar(column: Column) -> pa.Scalar:
    """:func:`initial_value` as an Arrow scalar. Raises :class:`ValueUnrepresentable` where the type cannot hold it."""
    kind = arrow_type(column.type)
    value = initial_value(column)
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise ValueUnrepresentable(
            "a column's initial value does not fit its type", where=column.name, expected=column.type, found=value
        ) from error


def default_scalar(column: Column, kind: pa.DataType) -> pa.Scalar:
    """What an INSERT that does not name *column* puts there, as the Arrow type that its rows have.

    Args:
        kind: the type of :func:`~historian.values.arrow_types.arrow_type`, or text for temporal columns as the server prints them.

    Raises:
        ValueUnrepresentable: only the server knows, as for expressions, or the schema keeps the default less exactly
            than the server: of TIMESTAMP without the session's time zone, of FLOAT with six digits.
    """
    name = column.type.name
    text = column.default
    if column.generated is not None or column.auto_increment or column.default_is_expression:
        raise _unknown_default(column)
    if text is None:
        if column.nullable:
            return pa.scalar(None, kind)
        text = implied_value(column.type)
    elif name == "timestamp" or (name == "float" and text != "0"):
        raise _unknown_default(column)
    value = initial_value(replace(column, initial=text, initial_known=True))
    if kind != arrow_type(column.type):
        value = text if pa.types.is_string(kind) and name in ("date", "time", "datetime") else None
    if value is None:
        raise _unknown_default(column)
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise _unknown_default(column) from error


def _unknown_default(column: Column) -> ValueUnrepresentable:
    return ValueUnrepresentable(
        "only the server knows what a column holds that an INSERT does not name",
        where=column.name,
        found=f"default {column.default!r} of {column.type}",
    )


def inet6_text(packed: bytes) -> str:
    """An INET6 as MariaDB prints it: the longest run of zero words as ``::``, the first of equals, be it a single one.

    The last 32 bits are printed as an IPv4 address behind ``::`` and ``::ffff:`` (``Inet6::to_string``, sql_type_inet.cc).
    """
    words = [int.from_bytes(packed[at : at + 2], "big") for at in range(0, 16, 2)]
    runs = [
        (match.end() - match.start(), -match.start()) for match in _ZEROS.finditer("".join("x0"[w == 0] for w in words))
    ]
    length, start = max(runs, default=(0, 1))
    start = -start
    if start == 0 and (length == 6 or (length == 5 and words[5] == 0xFFFF)):
        return ("::" if length == 6 else "::ffff:") + str(ipaddress.IPv4Address(packed[12:]))
    texts = [f"{word:x}" for word in words]
    if not length:
        return ":".join(texts)
    return f"{':'.join(texts[:start])}::{':'.join(texts[start + length :])}"


def _int64(text: str, kind: ColumnType) -> int | None:
    number = int(text)
    return None if number >= 1 << 63 and policy_of(kind, "int64_overflow") != FAIL else number


def _boolean(text: str, kind: ColumnType) -> bool | None:
    value = {"0": False, "1": True}.get(text)
    if value is None and policy_of(kind, "invalid_boolean") == FAIL:
        raise ValueError(text)
    return value


def _byte_text(text: str, kind: ColumnType) -> bytes:
    return bytes((int(bool(_bit(text, kind))),))


def _decimal(text: str, kind: ColumnType) -> Decimal | str:
    value = Decimal(text)
    return text if (kind.precision or 10) > MAX_DECIMAL_DIGITS else value


def _bit(text: str, kind: ColumnType) -> bool | bytes:
    match = _BITS.fullmatch(text)
    if match is None:
        raise ValueError(text)
    binary, literal, hexadecimal, plain = match.groups()
    bits = binary if binary is not None else literal
    number = int(bits or "0", 2) if bits is not None else int(hexadecimal or "0", 16) if plain is None else int(plain)
    length = kind.length or 1
    if number >= 1 << length:
        raise ValueError(text)
    return bool(number) if length == 1 else number.to_bytes((length + 7) // 8, "big")


def _check_zero_date(text: str, kind: ColumnType) -> None:
    if policy_of(kind, "zero_dates") == FAIL:
        raise ValueError(text)


def _date(text: str, kind: ColumnType) -> date | None:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day = map(int, match.groups())
    if year and month and day:
        return date(year, month, day)
    _check_zero_date(text, kind)
    return None


def _datetime(text: str, kind: ColumnType) -> datetime | None:
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    if not (year and month and day):
        _check_zero_date(text, kind)
        return None
    zone = timezone.utc if kind.name == "timestamp" else None
    return datetime(year, month, day, hour, minute, second, _micros(match[7]), zone)


def _time(text: str, _: ColumnType) -> int:
    match = _TIME.fullmatch(text)
    if match is None or int(match[3]) > 59 or int(match[4]) > 59:
        raise ValueError(text)
    length = timedelta(
        hours=int(match[2]), minutes=int(match[3]), seconds=int(match[4]), microseconds=_micros(match[5])
    )
    micros = length // timedelta(microseconds=1)
    return -micros if match[1] else micros


def _micros(fraction: str | None) -> int:
    return int((fraction or "").ljust(6, "0"))


def _binary(text: str, kind: ColumnType) -> bytes:
    match = _HEX.fullmatch(text)
    value = text.encode() if match is None else bytes.fromhex(match[1])
    return value.ljust(kind.length or 0, b"\0") if kind.name == "binary" else value


def _text(text: str, _: ColumnType) -> str:
    return text


_READ: dict[str, Callable[[str, ColumnType], Value]] = {
    **dict.fromkeys((*INTEGER_TYPES, "year"), lambda text, _: int(text)),
    "bigint": lambda text, kind: Decimal(int(text)) if kind.unsigned else int(text),
    "decimal": _decimal,
    **dict.fromkeys(("float", "double"), lambda text, _: float(text)),
    "bit": _bit,
    "date": _date,
    "datetime": _datetime,
    "timestamp": _datetime,
    "time": _time,
    **dict.fromkeys((*BYTE_TYPES, *GEOMETRIES, "geometrycollection", "vector"), _binary),
    "uuid": lambda text, _: str(uuid.UUID(text)),
    "inet4": lambda text, _: str(ipaddress.IPv4Address(text)),
    "inet6": lambda text, _: inet6_text(ipaddress.IPv6Address(text).packed),
}
_READ_SHAPES: dict[str, Callable[[str, ColumnType], Value]] = {
    "int64": _int64,
    "text": lambda text, kind: str(int(text)) if kind.name == "bigint" else text,
    "boolean": _boolean,
    "binary": _byte_text,
}
"""By the shape that a user chose, see :mod:`historian.plans.type_options`."""
