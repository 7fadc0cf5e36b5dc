"""Values of fields, as Debezium's modes write them in JSON and Avro, as Arrow columns of the types that rows have everywhere."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from connectors.readers.kafka.debezium.schemas import ENCODED
from connectors.readers.kafka.messages.binary import binary, encoded
from connectors.readers.kafka.messages.events import Field
from connectors.readers.kafka.messages.fractions import digits_us, from_ns
from connectors.readers.kafka.messages.geometries import geometry
from connectors.readers.kafka.messages.json_texts import json_text
from historian.schema.snapshots import ColumnType
from historian.values.arrow_types import arrow_type

__all__ = ["arrow_column"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_WIDE = Context(prec=100)
_SECOND_US = 1_000_000
_BIGINTS = 2**64


def arrow_column(values: Sequence[Any], field: Field, kind: ColumnType) -> pa.Array:
    """*values* of a field, None for NULL, as the Arrow type of *kind*.

    Raises:
        pa.ArrowInvalid, ValueError, TypeError: a value is none of the field's type, or does not fit *kind*.
    """
    read = _reading(field)
    made = values if read is None else [None if value is None else read(value) for value in values]
    wanted = arrow_type(kind)
    if kind.name == "tinyint" and field.type == "boolean":
        made = [None if value is None else int(value) for value in made]
    if kind.name == "bigint" and kind.unsigned:
        # A signed number by default, and exact by bigint.unsigned.handling.mode=precise.
        made = [None if value is None else int(value) % _BIGINTS for value in made]
    if pa.types.is_floating(wanted):
        made = [_float(value) if isinstance(value, Decimal) else value for value in made]
    if ENCODED in field.parameters and kind.name == "binary":
        made = [None if value is None else value.ljust(kind.length or 0, b"\0") for value in made]
    if pa.types.is_timestamp(wanted) or pa.types.is_date(wanted):
        return pa.array(made, pa.int32() if pa.types.is_date(wanted) else pa.int64()).cast(wanted)
    if pa.types.is_decimal(wanted):
        return pa.array([None if value is None else Decimal(value) for value in made], wanted)
    if pa.types.is_string(wanted) and field.type != "string" and any(isinstance(value, Decimal) for value in made):
        return pa.array([None if value is None else format(Decimal(value), "f") for value in made], wanted)
    return pa.array(made, wanted)


def _reading(field: Field) -> Callable[[Any], Any] | None:
    meaning = field.name
    if ENCODED in field.parameters:
        return encoded(field.parameters[ENCODED])
    if meaning == "org.apache.kafka.connect.data.Decimal":
        return _decimal(int(field.parameters.get("scale", 0)))
    if meaning == "io.debezium.data.Bits":
        return _bits(int(field.parameters.get("length", 64)))
    if meaning == "io.debezium.data.Enum":
        return lambda value: value.replace("\\,", ",")
    if meaning == "io.debezium.data.EnumSet":
        return None
    if meaning in _READ:
        return _READ[meaning]
    if field.type in ("array", "map", "struct"):
        return json_text
    return binary if field.type == "bytes" else None


def _float(value: Decimal) -> float:
    found = float(value)
    if math.isinf(found):
        raise ValueError(f"no double has that value: {value!r}")
    return found


def _variable_decimal(value: Any) -> str:
    """The digits of a number that says its own scale."""
    number = int.from_bytes(binary(value["value"]), "big", signed=True)
    return format(Decimal(number).scaleb(-int(value["scale"]), _WIDE), "f")


def _iso_days(value: str) -> int:
    return (date.fromisoformat(value.removesuffix("Z")) - _EPOCH.date()).days


def _iso_time_us(value: str) -> int:
    return _zoned_us(f"1970-01-01T{value.removesuffix('Z')}Z")


def _iso_us(value: str) -> int:
    return _zoned_us(value if value.endswith("Z") else f"{value}Z")


def _decimal(scale: int) -> Callable[[Any], Decimal]:
    def read(value: Any) -> Decimal:
        if isinstance(value, int | float | Decimal) and not isinstance(
            value, bool
        ):  # decimal.format=NUMERIC of the converter
            return Decimal(repr(value) if isinstance(value, float) else value)
        number = int.from_bytes(binary(value), "big", signed=True)
        return Decimal(number).scaleb(-scale, _WIDE)

    return read


def _bits(length: int) -> Callable[[Any], bytes]:
    size = (length + 7) // 8
    return lambda value: binary(value)[::-1].rjust(size, b"\0")[-size:]


def _zoned_us(value: str) -> int:
    """UTC microseconds of an ISO 8601 text, whose fraction may have any number of digits."""
    whole, _, rest = value.partition(".")
    digits = rest.rstrip("Zz").partition("+")[0].partition("-")[0] if rest else ""
    zone = value[len(whole) + 1 + len(digits) :] if rest else ""
    at = datetime.fromisoformat((whole + zone if rest else value).replace("Z", "+00:00"))
    return (at - _EPOCH) // timedelta(microseconds=1) + digits_us(digits)


_READ: dict[str, Callable[[Any], Any]] = {
    "io.debezium.time.Time": lambda value: value * 1000,
    "org.apache.kafka.connect.data.Time": lambda value: value * 1000,
    "io.debezium.time.NanoTime": from_ns,
    "io.debezium.time.Timestamp": lambda value: value * 1000,
    "org.apache.kafka.connect.data.Timestamp": lambda value: value * 1000,
    "io.debezium.time.NanoTimestamp": from_ns,
    "io.debezium.time.ZonedTimestamp": _zoned_us,
    "io.debezium.time.IsoDate": _iso_days,
    "io.debezium.time.IsoTime": _iso_time_us,
    "io.debezium.time.IsoTimestamp": _iso_us,
    "io.debezium.data.VariableScaleDecimal": _variable_decimal,
    "io.debezium.data.DoubleVector": json_text,
    "io.debezium.data.SparseDoubleVector": json_text,
    "io.debezium.data.SparseVector": json_text,
    "io.debezium.data.geometry.Geometry": geometry,
    "io.debezium.data.geometry.Point": geometry,
    "io.debezium.data.geometry.Geography": geometry,
    "io.debezium.data.FloatVector": lambda value: struct.pack(f"<{len(value)}f", *value),
}
