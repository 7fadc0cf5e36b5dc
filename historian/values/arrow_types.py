"""Column types of MySQL and MariaDB as Arrow types: one table, used by decoder, projection and sinks."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import BYTE_TYPES, GEOMETRIES, TEXT_TYPES, ColumnType

__all__ = ["MAX_DECIMAL_DIGITS", "arrow_type", "is_readable"]

MAX_DECIMAL_DIGITS = 38
"""Digits of Arrow's decimal128 and of Delta's DECIMAL; wider ones travel as text."""


def _integer(signed: pa.DataType, unsigned: pa.DataType) -> Callable[[ColumnType], pa.DataType]:
    return lambda kind: unsigned if kind.unsigned else signed


def _decimal(kind: ColumnType) -> pa.DataType:
    digits, scale = kind.precision or 10, kind.scale or 0
    return pa.string() if digits > MAX_DECIMAL_DIGITS else pa.decimal128(digits, scale)


def _always(result: pa.DataType) -> Callable[[ColumnType], pa.DataType]:
    return lambda _: result


_ARROW: dict[str, Callable[[ColumnType], pa.DataType]] = {
    "tinyint": _integer(pa.int8(), pa.int16()),
    "smallint": _integer(pa.int16(), pa.int32()),
    "mediumint": _integer(pa.int32(), pa.int32()),
    "int": _integer(pa.int32(), pa.int64()),
    "bigint": _integer(pa.int64(), pa.decimal128(20, 0)),
    "decimal": _decimal,
    "float": _always(pa.float32()),
    "double": _always(pa.float64()),
    "bit": lambda kind: pa.bool_() if kind.length in (None, 1) else pa.binary(),
    "date": _always(pa.date32()),
    "datetime": _always(pa.timestamp("us")),
    "timestamp": _always(pa.timestamp("us", tz="UTC")),
    "time": _always(pa.int64()),
    "year": _always(pa.int16()),
    **dict.fromkeys((*TEXT_TYPES, "enum", "set", "json", "uuid", "inet4", "inet6"), _always(pa.string())),
    **dict.fromkeys(BYTE_TYPES, _always(pa.binary())),
    **dict.fromkeys((*GEOMETRIES, "geometrycollection", "vector"), _always(pa.binary())),
}


_SHAPES = {"int64": pa.int64(), "text": pa.string(), "boolean": pa.bool_(), "binary": pa.binary()}
"""By the shape that a user chose; others leave the type as it is by default."""


def is_readable(kind: ColumnType) -> bool:
    """Whether this release reads values of that type."""
    return kind.name in _ARROW


def arrow_type(kind: ColumnType) -> pa.DataType:
    """The Arrow type that carries every value of *kind* exactly, in its form where one was chosen.

    Unsigned integers take the next wider signed type, since Spark and Delta have no unsigned ones; TIME is microseconds
    as int64 (it exceeds a day and can be negative). YEAR is an int16; BIT(n) big-endian bytes, BIT(1) a boolean;
    GEOMETRY the server's own bytes: SRID, then WKB; VECTOR too: four bytes a number. Zero dates have no Arrow value: the decoder counts them and gives
    NULL.

    Raises:
        ValueUnrepresentable: a type that this release does not read.
    """
    make = _ARROW.get(kind.name)
    if make is None:
        raise ValueUnrepresentable("a column type that is not read yet", where=str(kind), expected=sorted(_ARROW))
    return _SHAPES.get(kind.shape) or make(kind)
