"""A column's type as its server declares it, where the connector says so (``column.propagate.source.type``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from historian.schema.snapshots import ColumnType

__all__ = ["declared_bytes", "declared_type"]

_PREFIX = "__debezium.source.column."
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("tinytext", "text", "mediumtext", "longtext")
_BYTES = ("tinyblob", "blob", "mediumblob", "longblob")
_SHAPES = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
)
_OTHER_NAMES = {"integer": "int", "dec": "decimal", "numeric": "decimal", "geomcollection": "geometrycollection"}


def declared_type(found: ColumnType, parameters: Mapping[str, str]) -> ColumnType:
    """The type that MySQL or MariaDB declares for a column which by its field is of type *found*; *found* where that is not told.

    Values of the field are values of it: text stays text, and integers stay integers. A converter that makes something else of a column,
    such as a boolean of TINYINT(1), has the last word.
    """
    declared = parameters.get(_PREFIX + "type", "").lower().split()
    if not declared:
        return found
    name = _OTHER_NAMES.get(declared[0], declared[0])
    length = _number(parameters.get(_PREFIX + "length"))
    is_unsigned, is_zerofill = "unsigned" in declared or "zerofill" in declared, "zerofill" in declared
    if name in ("boolean", "bool") and found.name == "bit":
        return ColumnType(name="tinyint", length=1)  # as the server itself says of such a column
    if name in _INTEGERS and (found.name in _INTEGERS or (found.name, found.scale) == ("decimal", 0)):
        width = length if name == "tinyint" and length == 1 and not is_unsigned else None
        return ColumnType(name=name, unsigned=is_unsigned, zerofill=is_zerofill, length=width)
    if name in ("float", "double", "decimal") and found.name == name:
        return replace(found, unsigned=is_unsigned, zerofill=is_zerofill)
    if found.name == "longtext" and (name in _TEXTS or (name in ("char", "varchar") and length is not None)):
        return replace(found, name=name, length=None if name in _TEXTS else length)
    if found.name == "longblob" and (name in _BYTES or (name in ("binary", "varbinary") and length is not None)):
        return replace(found, name=name, length=None if name in _BYTES else length)
    if found.name in ("time", "datetime", "timestamp") and name == found.name and (length or 0) <= 6:
        return replace(found, fraction=length or 0)
    return replace(found, name=name) if found.name == "geometry" and name in _SHAPES else found


def declared_bytes(parameters: Mapping[str, str]) -> ColumnType | None:
    """The type of bytes that MySQL or MariaDB declares for a column; None where it is another one, or is not told."""
    name = (parameters.get(_PREFIX + "type", "").lower().split() or [""])[0]
    if name in _BYTES:
        return ColumnType(name=name)
    length = _number(parameters.get(_PREFIX + "length"))
    return ColumnType(name=name, length=length) if name in ("binary", "varbinary") and length is not None else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
