"""What messages tell of a table's columns: types by name, or no more than values, of which kinds are inferred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from connectors.readers.kafka.messages.events import Field, RowSchema
from historian.ddl import UnknownColumnType, parse_column_type
from historian.schema.snapshots import INTEGER_TYPES, Column, ColumnType

__all__ = ["MIXED", "UNTOLD", "inferred", "told"]

_CHARSET, _COLLATION = "utf8mb4", "utf8mb4_bin"
_LONG = ColumnType(name="bigint")
_TEXT = ColumnType(name="longtext", charset=_CHARSET, collation=_COLLATION)
_WITH_CHARSET = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
_BY_NAME = {
    **dict.fromkeys(("char", "varchar"), _TEXT),
    **dict.fromkeys(("binary", "varbinary"), ColumnType(name="longblob")),
    **{name: ColumnType(name=name, fraction=6) for name in ("datetime", "timestamp", "time")},
}
"""Of types that are told without length: what holds all their values."""
_NEEDS_MORE = ("decimal", "enum", "set", "bit")
_LONG_MAX = 2**63
UNTOLD = RowSchema(fields=(), key=None, certainty="names")
"""Of rows whose message is not asked."""

MIXED = ColumnType(name="mixed")
"""Of a column whose values are of several kinds."""


def told(types: Mapping[str, Any], names: Iterable[str], key: tuple[str, ...] | None, certainty: str) -> RowSchema:
    """The schema of rows whose message has the types of the columns *names*; a type that is not told has no name.

    Args:
        types: by name, as the server prints them: with parameters where *certainty* is "types", else without.
    """
    fields = tuple(_field(name, _told_type(str(types.get(name) or ""), certainty), key) for name in names)
    return RowSchema(fields=fields, key=key, certainty=certainty)


def inferred(row: Mapping[str, Any], held: RowSchema | None, key: tuple[str, ...] | None) -> RowSchema:
    """The schema of rows of which only values are known: *held*, or one that has room for *row* too.

    Integers are BIGINT, other numbers DOUBLE, text LONGTEXT, objects and arrays JSON. A column is there from its first value on. One
    with values of several kinds is of the type :data:`MIXED`, which is none: whether they fit is decided where its type is known.
    """
    known = {} if held is None else {field.column.name: field.column.type for field in held.fields}
    found = {name: kind for name, value in row.items() if (kind := _kind(value)) is not None and name not in known}
    mixed = {
        name: _joined(known[name], kind)
        for name, value in row.items()
        if name in known and (kind := _kind(value)) is not None and _joined(known[name], kind) != known[name]
    }
    if held is not None and not found and not mixed and held.key == key:
        return held
    types = {name: mixed.get(name, kind) for name, kind in known.items()} | found
    return RowSchema(fields=tuple(_field(name, kind, key) for name, kind in types.items()), key=key, certainty="names")


def _field(name: str, kind: ColumnType, key: tuple[str, ...] | None) -> Field:
    column = Column(id=0, name=name, type=kind, nullable=name not in (key or ()))
    return Field(column=column, type="", name="", parameters={})


def _told_type(text: str, certainty: str) -> ColumnType:
    text = text.strip()
    name = text.partition("(")[0].partition(" ")[0].lower()
    if certainty == "type_names" and "(" not in text and name in (*_NEEDS_MORE, *_BY_NAME):
        return _BY_NAME.get(name) or ColumnType(name=name, unsigned="unsigned" in text.lower())
    charset, collation = (_CHARSET, _COLLATION) if name in _WITH_CHARSET else (None, None)
    try:
        kind = parse_column_type(text, charset, collation)
    except UnknownColumnType:
        return ColumnType(name=text)
    # The width of an integer's display is no part of what it holds.
    return replace(kind, length=None, zerofill=False) if kind.name in INTEGER_TYPES else kind


def _kind(value: Any) -> ColumnType | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return ColumnType(name="bit", length=1)
    if isinstance(value, int):
        return _LONG if -_LONG_MAX <= value < _LONG_MAX else ColumnType(name="bigint", unsigned=True)
    if isinstance(value, (float, Decimal)):
        return ColumnType(name="double")
    return _TEXT if isinstance(value, str) else ColumnType(name="json")


def _joined(one: ColumnType, other: ColumnType) -> ColumnType:
    """The kind of a column that has values of both."""
    if one.name != other.name:
        return MIXED
    return one if one.unsigned else other
