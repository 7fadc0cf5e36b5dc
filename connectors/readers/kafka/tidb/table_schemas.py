"""A table's schema as TiCDC's simple protocol tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connectors.readers.kafka.messages.events import Field, RowSchema
from historian.schema.snapshots import BYTE_TYPES, INTEGER_TYPES, TEXT_TYPES, Column, ColumnType

__all__ = ["told_schema", "untold_schema"]


def told_schema(schema: Mapping[str, Any]) -> RowSchema:
    """The schema of rows of a ``tableSchema``.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is none.
    """
    key = next((tuple(map(str, each["columns"])) for each in schema.get("indexes") or () if each.get("primary")), ())
    fields = tuple(
        _field(str(each["name"]), _type(each["dataType"]), nullable=bool(each.get("nullable")))
        for each in schema["columns"]
    )
    return RowSchema(fields=fields, key=key, certainty="types")


def untold_schema(names: Sequence[str], *, is_part: bool = False) -> RowSchema:
    """What is known of a row whose schema no message has told: that it has these columns, and others where it *is_part* of a row."""
    fields = tuple(_field(name, ColumnType(name=""), nullable=True) for name in names)
    return RowSchema(fields=fields, key=None, certainty="names" if is_part else "types")


def _field(name: str, kind: ColumnType, *, nullable: bool) -> Field:
    return Field(column=Column(id=0, name=name, type=kind, nullable=nullable), type="", name="", parameters={})


def _type(told: Mapping[str, Any]) -> ColumnType:
    name = str(told["mysqlType"]).lower()
    length, digits = _number(told.get("length")), _number(told.get("decimal"))
    unsigned, zerofill = bool(told.get("unsigned")), bool(told.get("zerofill"))
    charset, collation = str(told.get("charset") or "utf8mb4"), str(told.get("collate") or "utf8mb4_bin")
    if name in INTEGER_TYPES:
        width = length if name == "tinyint" and length == 1 and not unsigned else None
        return ColumnType(name=name, unsigned=unsigned, zerofill=zerofill, length=width)
    if name in ("float", "double"):
        return ColumnType(name=name, unsigned=unsigned, zerofill=zerofill)
    if name == "decimal":
        return ColumnType(name=name, precision=length, scale=digits or 0, unsigned=unsigned, zerofill=zerofill)
    if name in ("datetime", "timestamp", "time"):
        return ColumnType(name=name, fraction=digits or 0)
    if name in ("enum", "set"):
        labels = tuple(map(str, told.get("elements") or ()))
        return ColumnType(name=name, labels=labels, charset=charset, collation=collation)
    if name in TEXT_TYPES:
        size = length if name in ("char", "varchar") else None
        return ColumnType(name=name, length=size, charset=charset, collation=collation)
    if name in BYTE_TYPES:
        return ColumnType(name=name, length=length if name in ("binary", "varbinary") else None)
    return ColumnType(name=name, length=length or 1) if name == "bit" else ColumnType(name=name)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
