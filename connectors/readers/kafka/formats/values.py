"""JSON values of a column whose type is known, as Arrow: what a producer writes, by the conventions of its format."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from connectors.readers.kafka.messages.events import Conventions
from connectors.readers.kafka.messages.fractions import digits_us, from_ns
from connectors.readers.kafka.messages.geometries import geometry
from connectors.readers.kafka.messages.json_texts import json_text
from historian.schema.snapshots import BYTE_TYPES, GEOMETRIES, INTEGER_TYPES, TEXT_TYPES, ColumnType, set_text
from historian.values.arrow_types import arrow_type

__all__ = ["ADAPTIVE", "json_column", "rows_of"]

ADAPTIVE = "adaptive_time_microseconds"
"""Debezium's default: by the type's digits milliseconds or microseconds, TIME in microseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EPOCH_DAY = date(1970, 1, 1)
_WIDE = Context(prec=100)
_DIGITS = 100
_TEMPORAL = re.compile(r"(\d{4,})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(Z|[+-]\d\d:?\d\d)?")
_TIME = re.compile(r"(-?)(\d{1,3}):(\d\d)(?::(\d\d)(?:\.(\d+))?)?")
_SHAPES = (*GEOMETRIES, "geometrycollection")

_Read = Callable[[Any], Any]


def json_column(values: Sequence[Any], kind: ColumnType, written: Conventions) -> pa.Array:
    """*values* of a column, None for NULL, as the Arrow type of *kind*.

    Zero dates have no Arrow value: NULL.

    Raises:
        pa.ArrowInvalid, ValueError, TypeError, ArithmeticError: a value is none of the type's, or does not fit it.
    """
    read = _reading(kind, written)
    made = [None if value is None else read(value) for value in values]
    wanted = arrow_type(kind)
    if pa.types.is_timestamp(wanted):
        return pa.array(made, pa.int64()).cast(wanted)
    if pa.types.is_date(wanted):
        return pa.array(made, pa.int32()).cast(wanted)
    if pa.types.is_decimal(wanted):
        return pa.array([None if value is None else Decimal(value) for value in made], wanted)
    return pa.array(made, wanted)


def _reading(kind: ColumnType, written: Conventions) -> _Read:
    name = kind.name
    if name == "decimal":
        return _debezium_decimal(kind) if written.decimal == "base64" else _decimal(kind)
    if name == "bit":
        return _bits(kind, written)
    if name in ("date", "datetime", "timestamp", "time"):
        return _debezium_temporal(kind, written.temporal) if written.debezium else _temporal(kind, written.zone)
    if name in _SHAPES and written.shapes == "wkb":
        return geometry
    if name in BYTE_TYPES or (name in _SHAPES and written.shapes):
        return _bytes(kind, written)
    if name == "bigint" and kind.unsigned and written.debezium:
        return _debezium_unsigned
    if name == "bigint" and kind.unsigned and written.wraps:
        return _unsigned
    if name in ("enum", "set"):
        return _labels(kind, written)
    if name == "json":
        return json_text if written.documents == "inline" else _text
    return _PLAIN.get(name) or _not_carried(kind)


def _not_carried(kind: ColumnType) -> _Read:
    def refuse(value: Any) -> Any:
        raise ValueError(
            f"the format does not carry {kind.name} exactly; have the producer leave the column out: {value!r}"
        )

    return refuse


def _integer(value: Any) -> int:
    if isinstance(value, int):
        return int(value)
    number = Decimal(value)
    # No column holds more digits, and a short text may stand for a number of very many.
    if not number.is_finite() or number.adjusted() > _DIGITS or number != number.to_integral_value():
        raise ValueError(f"no integer: {value!r}")
    return int(number)


def _unsigned(value: Any) -> int:
    """What is above the signed BIGINTs is written as if it were one."""
    number = _integer(value)
    return number if number >= 0 else number + 2**64


def _debezium_unsigned(value: Any) -> int:
    """A text is a number in base64, by ``bigint.unsigned.handling.mode=precise``: never digits alone, since its first bit is 0. ``long`` wraps."""
    if isinstance(value, str):
        return int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
    return _unsigned(value)


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError("a boolean is no number")
    return float(value)


def _decimal(kind: ColumnType) -> _Read:
    step = Decimal(1).scaleb(-(kind.scale or 0))
    is_text = pa.types.is_string(arrow_type(kind))

    def read(value: Any) -> Any:
        if isinstance(value, bool):
            raise TypeError("a boolean is no number")
        if isinstance(value, bytes):  # the unscaled number, of a format that has bytes
            number = Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-(kind.scale or 0), _WIDE)
        else:
            number = Decimal(repr(value) if isinstance(value, float) else value)
        whole = number.quantize(step, context=_WIDE)
        if whole != number:
            raise ValueError(f"more fractional digits than {kind.scale or 0}: {value!r}")
        return format(whole, "f") if is_text else whole

    return read


def _debezium_decimal(kind: ColumnType) -> _Read:
    plain = _decimal(kind)

    def read(value: Any) -> Any:
        if isinstance(value, int | float | Decimal):  # decimal.format=NUMERIC of the converter
            return plain(value)
        return plain(value if isinstance(value, bytes) else base64.b64decode(_text(value), validate=True))

    return read


def _bits(kind: ColumnType, written: Conventions) -> _Read:
    length = kind.length or 1
    size = (length + 7) // 8

    def read(value: Any) -> Any:
        if written.debezium and length > 1:  # its bytes begin with the lowest one
            return base64.b64decode(_text(value), validate=True)[::-1].rjust(size, b"\0")[-size:]
        number = int.from_bytes(value, "big") if isinstance(value, bytes) else _integer(value)
        if length == 1 and number in (0, 1):
            return bool(number)
        if length == 1 or number < 0:
            raise ValueError(f"no bits: {value!r}")
        return number.to_bytes(size, "big")

    return read


def _bytes(kind: ColumnType, written: Conventions) -> _Read:
    def padded(body: bytes) -> bytes:
        return body.ljust(kind.length or 0, b"\0") if kind.name == "binary" else body

    read = _texts_of_bytes(padded, written)
    return lambda value: padded(value) if isinstance(value, bytes) else read(value)


def _texts_of_bytes(padded: Callable[[bytes], bytes], written: Conventions) -> _Read:
    if written.binary == "latin1":
        return lambda value: padded(_text(value).encode("latin-1"))
    if written.binary == "hex":
        return lambda value: padded(bytes.fromhex(_text(value).removeprefix("0x")))
    if written.binary == "base64-url-safe":
        return lambda value: padded(base64.b64decode(_text(value), altchars=b"-_", validate=True))
    return lambda value: padded(base64.b64decode(_text(value), validate=True))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text: {value!r}")
    return value


def _labels(kind: ColumnType, written: Conventions) -> _Read:
    labels = kind.labels

    def by_number(value: Any) -> str:
        number = _integer(value)
        if kind.name == "enum" and 0 <= number <= len(labels):
            return labels[number - 1] if number else ""
        if kind.name == "enum":
            raise ValueError(f"an ENUM of {len(labels)} labels has no {value!r}")
        if number >> len(labels):
            raise ValueError(f"a SET of {len(labels)} labels has no {value!r}")
        return set_text(label for at, label in enumerate(labels) if number >> at & 1)

    def by_text(value: Any) -> str:
        text = set_text(map(_text, value)) if isinstance(value, list) else _text(value)
        if written.debezium and text not in labels:
            text = text.replace("\\,", ",")  # as Debezium writes a comma within a label
        if labels and text not in labels and not (kind.name == "set" or text == ""):
            raise ValueError(f"none of the labels: {value!r}")
        return text

    return by_number if written.labels == "number" else by_text


def _temporal(kind: ColumnType, zone: str) -> _Read:
    if kind.name == "time":
        return _time_us
    if kind.name == "date":
        return _days
    return lambda value: _moment_us(value, zone if kind.name == "timestamp" else "UTC")


def _time_us(value: Any) -> int:
    found = _TIME.fullmatch(_text(value))
    if found is None:
        raise ValueError(f"no TIME: {value!r}")
    sign, hours, minutes, seconds, fraction = found.groups()
    us = (int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)) * 1_000_000 + digits_us(fraction or "")
    return -us if sign else us


def _days(value: Any) -> int | None:
    found = _TEMPORAL.fullmatch(_text(value))
    if found is None:
        raise ValueError(f"no date: {value!r}")
    year, month, day = (int(part) for part in found.groups()[:3])
    if not (year and month and day):
        return None
    return (date(year, month, day) - _EPOCH_DAY).days


def _moment_us(value: Any, zone: str) -> int | None:
    found = _TEMPORAL.fullmatch(_text(value))
    if found is None:
        raise ValueError(f"no date and time: {value!r}")
    year, month, day, hour, minute, second, fraction, own = found.groups()
    if not (int(year) and int(month) and int(day)):
        return None
    at = datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=_zone(own or zone)
    )
    return (at - _EPOCH) // timedelta(microseconds=1) + digits_us(fraction or "")


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    if name in ("UTC", "Z"):
        return timezone.utc
    if name[0] in "+-":
        hours, minutes = int(name[1:3]), int(name[-2:])
        return timezone((1 if name[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes))
    return ZoneInfo(name)


def _debezium_temporal(kind: ColumnType, mode: str) -> _Read:
    """By Debezium's ``time.precision.mode``. TIMESTAMP is text in each of them, and a DATE as a number is days."""
    if kind.name == "timestamp":
        return lambda value: _moment_us(value, "UTC")
    if mode == "isostring":
        return _ISO[kind.name]
    if kind.name == "date":
        return _integer
    if mode == "nanoseconds":
        return lambda value: from_ns(_integer(value))
    is_coarse = kind.fraction <= 3 and (mode == "adaptive" or (mode == ADAPTIVE and kind.name == "datetime"))
    unit = 1000 if is_coarse or mode == "connect" else 1
    return lambda value: _integer(value) * unit


def rows_of(value: Any) -> tuple[Mapping[str, Any], ...] | None:
    """The row objects of a field that holds one or several; None where it is anything else."""
    if isinstance(value, dict):
        return (value,)
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return tuple(value)
    return None


_ISO: Mapping[str, _Read] = {
    "date": lambda value: _days(_text(value).removesuffix("Z")),
    "time": lambda value: _time_us(_text(value).removesuffix("Z")),
    "datetime": lambda value: _moment_us(value, "UTC"),
}

_PLAIN: Mapping[str, _Read] = {
    **dict.fromkeys((*INTEGER_TYPES, "year"), _integer),
    **dict.fromkeys(("float", "double"), _float),
    **dict.fromkeys((*TEXT_TYPES, "uuid", "inet4", "inet6"), _text),
}
"""How values of types are read that every format writes alike."""
