"""An inline schema of Kafka Connect as a table's columns, in the words of MySQL's ``information_schema``."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

from connectors.readers.kafka.debezium.source_types import declared_bytes, declared_type
from connectors.readers.kafka.messages.events import Field, RowSchema
from historian.errors import UnsupportedEvent
from historian.schema.snapshots import Column, ColumnType

__all__ = ["ENCODED", "UNLIKE_A_SCHEMA", "columns_of", "labels_of", "row_schema"]

ENCODED = "historian.binary"
"""A parameter of fields that are text and whose columns are bytes: how they are written."""

UNLIKE_A_SCHEMA = (KeyError, TypeError, ValueError, AttributeError, StopIteration, OverflowError, ArithmeticError)
"""What becomes of a schema that is none of Kafka Connect's."""

_EXACT_DIGITS = 15
"""A number of JSON has its own digits up to so many."""
_WIDE = Context(prec=100)
_NO_UUID = "00000000-0000-0000-0000-000000000000"
"""Of PostgreSQL it stands for a function's value."""
_HEX_DIGITS = re.compile(rb"([0-9A-Fa-f]{2})+")
"""What the connector of MySQL makes of a default that is written as x'00ff', too."""
_FIRST_MOMENT = re.compile(r"1970-01-01( 00:00:00(\.0+)?)?")

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_JSON = ColumnType(name="json")
_TEXT = ColumnType(name="longtext", charset="utf8mb4", collation="utf8mb4_bin")

_PLAIN = {
    "int8": ColumnType(name="tinyint"),
    "int16": ColumnType(name="smallint"),
    "int32": ColumnType(name="int"),
    "int64": ColumnType(name="bigint"),
    "float": ColumnType(name="float"),
    "float32": ColumnType(name="float"),
    "double": ColumnType(name="double"),
    "float64": ColumnType(name="double"),
    "boolean": ColumnType(name="bit", length=1),
    "string": _TEXT,
    "bytes": ColumnType(name="longblob"),
    "array": _JSON,
    "map": _JSON,
    "struct": _JSON,
}

_DATE, _GEOMETRY = ColumnType(name="date"), ColumnType(name="geometry")

_NAMED = {
    "io.debezium.time.Date": _DATE,
    "org.apache.kafka.connect.data.Date": _DATE,
    "io.debezium.time.Time": ColumnType(name="time", fraction=3),
    "io.debezium.time.MicroTime": ColumnType(name="time", fraction=6),
    "io.debezium.time.NanoTime": ColumnType(name="time", fraction=6),
    "org.apache.kafka.connect.data.Time": ColumnType(name="time", fraction=3),
    "io.debezium.time.Timestamp": ColumnType(name="datetime", fraction=3),
    "io.debezium.time.MicroTimestamp": ColumnType(name="datetime", fraction=6),
    "io.debezium.time.NanoTimestamp": ColumnType(name="datetime", fraction=6),
    "org.apache.kafka.connect.data.Timestamp": ColumnType(name="datetime", fraction=3),
    "io.debezium.time.ZonedTimestamp": ColumnType(name="timestamp", fraction=6),
    "io.debezium.time.Year": ColumnType(name="year", length=4),
    "io.debezium.time.IsoDate": _DATE,
    "io.debezium.time.IsoTime": ColumnType(name="time", fraction=6),
    "io.debezium.time.IsoTimestamp": ColumnType(name="datetime", fraction=6),
    "io.debezium.time.MicroDuration": ColumnType(name="bigint"),
    "io.debezium.time.NanoDuration": ColumnType(name="bigint"),
    "io.debezium.data.Json": _JSON,
    "io.debezium.data.VariableScaleDecimal": _TEXT,
    "io.debezium.data.DoubleVector": _JSON,
    "io.debezium.data.SparseDoubleVector": _JSON,
    "io.debezium.data.SparseVector": _JSON,
    **dict.fromkeys(
        (
            "io.debezium.data.Uuid",
            "io.debezium.data.Xml",
            "io.debezium.data.Ltree",
            "io.debezium.data.TsVector",
            "io.debezium.data.Tsvector",
            "io.debezium.time.Interval",
            "io.debezium.time.ZonedTime",
        ),
        _TEXT,
    ),
    "io.debezium.data.geometry.Geometry": _GEOMETRY,
    "io.debezium.data.geometry.Point": _GEOMETRY,
    "io.debezium.data.geometry.Geography": _GEOMETRY,
    "io.debezium.data.FloatVector": ColumnType(name="vector"),
}


def columns_of(schema: Mapping[str, Any], where: str, binary: str = "bytes") -> tuple[Field, ...]:
    """The fields of a row's schema, in order.

    Args:
        binary: how bytes are written, of Debezium's ``binary.handling.mode``: as text they are told by what the server declares.

    Raises:
        UnsupportedEvent: a type that is not read yet.
    """
    return tuple(_field(each, where, binary) for each in schema["fields"])


def row_schema(row: Any, key: Any, where: str, binary: str = "bytes") -> RowSchema:
    """The schema of rows, of their fields and those of their key; arguments and errors as of :func:`columns_of`.

    Raises:
        KeyError, TypeError, ValueError: fields are none of Kafka Connect's, see :data:`UNLIKE_A_SCHEMA`.
    """
    return RowSchema(fields=columns_of({"fields": row}, where, binary), key=tuple(str(each["field"]) for each in key))


def labels_of(allowed: str) -> tuple[str, ...]:
    r"""The labels of an ENUM or SET; a comma in one stands behind a backslash.

    >>> labels_of(r"a,b\,c")
    ('a', 'b,c')
    """
    labels, label, escaped = [], "", False
    for sign in allowed:
        if escaped:
            label += sign if sign in ",\\" else "\\" + sign
            escaped = False
        elif sign == "\\":
            escaped = True
        elif sign == ",":
            labels.append(label)
            label = ""
        else:
            label += sign
    return (*labels, label + "\\" * escaped)


def _field(field: Mapping[str, Any], where: str, binary: str) -> Field:
    name, kind, meaning = str(field["field"]), str(field["type"]), str(field.get("name") or "")
    parameters = {str(key): str(value) for key, value in (field.get("parameters") or {}).items()}
    carried = _type(kind, meaning, parameters)
    if carried is None:
        raise UnsupportedEvent(
            "a type of Debezium's that is not read yet",
            where=f"{where}.{name}",
            found=f"{kind} {meaning}".strip(),
            next_step="leave the column out by column.exclude.list of the connector",
        )
    nullable = bool(field.get("optional", False))
    as_text = declared_bytes(parameters) if binary != "bytes" and kind == "string" and not meaning else None
    found = as_text or declared_type(carried, parameters)
    if as_text is not None:
        parameters[ENCODED] = binary
    default = field.get("default")
    if isinstance(default, bool) and found.name == "tinyint":
        initial: str | None = str(int(default))
    else:
        initial = None if as_text is not None else _initial(default, carried, meaning)
    column = Column(
        id=0,
        name=name,
        type=found,
        nullable=nullable,
        default=initial,
        initial=initial,
        initial_known=initial is not None or (nullable and default is None),
    )
    return Field(column=column, type=kind, name=meaning, parameters=parameters, default=default if nullable else None)


def _type(kind: str, meaning: str, parameters: Mapping[str, str]) -> ColumnType | None:
    if meaning == "org.apache.kafka.connect.data.Decimal":
        precision, scale = int(parameters.get("connect.decimal.precision", 38)), int(parameters.get("scale", 0))
        return ColumnType(name="decimal", precision=max(precision, scale, 1), scale=max(0, scale))
    if meaning == "io.debezium.data.Bits":
        return ColumnType(name="bit", length=int(parameters.get("length", 64)))
    if meaning in ("io.debezium.data.Enum", "io.debezium.data.EnumSet"):
        labels = labels_of(parameters.get("allowed", ""))
        name = "enum" if meaning.endswith("Enum") else "set"
        return ColumnType(name=name, labels=labels, charset="utf8mb4", collation="utf8mb4_bin")
    return _NAMED.get(meaning) if meaning else _PLAIN.get(kind)


def _initial(default: Any, kind: ColumnType, meaning: str) -> str | None:
    """A default as the server's own text; None where there is none, or none that is told exactly."""
    if default is None or isinstance(default, (dict, list)) or default == _NO_UUID:
        return None
    if isinstance(default, bool):
        return "b'1'" if default else "b'0'"
    if kind.name == "decimal":
        return _decimal_text(default, kind.scale or 0)
    if kind.name in ("longblob", "bit"):
        body = base64.b64decode(default)
        if kind.name == "longblob" and _HEX_DIGITS.fullmatch(body):
            return None
        return f"0x{(body[::-1] if kind.name == 'bit' else body).hex()}"
    if kind.name in ("date", "datetime", "timestamp", "time"):
        return _temporal_text(default, kind, meaning)
    return str(default)


def _decimal_text(default: Any, scale: int) -> str | None:
    """The digits of a number, as the converter's ``decimal.format`` says."""
    if isinstance(default, int | float):
        number = Decimal(repr(default))
        whole = number.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
        is_exact = whole == number and (isinstance(default, int) or len(number.as_tuple().digits) <= _EXACT_DIGITS)
        return format(whole, "f") if is_exact else None
    unscaled = int.from_bytes(base64.b64decode(default), "big", signed=True)
    digits, sign = str(abs(unscaled)).rjust(scale + 1, "0"), "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"


def _temporal_text(default: Any, kind: ColumnType, meaning: str) -> str | None:
    """A date or a time: a number by its unit, or text of ISO 8601.

    The first moment of 1970 stands for CURRENT_TIMESTAMP, too, and for a zero date: that is not told.
    """
    if isinstance(default, str):
        text = default.removesuffix("Z").replace("T", " ")
        return None if _FIRST_MOMENT.fullmatch(text) else text
    if default == 0 and kind.name != "time":
        return None
    if kind.name == "date":
        return (date(1970, 1, 1) + timedelta(days=default)).isoformat()
    us, rest = divmod(default, 1000) if meaning.startswith("io.debezium.time.Nano") else (default, 0)
    if rest:
        return None
    us *= 1000 if kind.fraction == 3 else 1
    if kind.name == "datetime":
        return (_EPOCH + timedelta(microseconds=us)).strftime("%Y-%m-%d %H:%M:%S.%f")
    seconds, fraction = divmod(abs(us), 1_000_000)
    return f"{'-' if us < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
