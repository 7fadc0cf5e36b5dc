"""A table's schema as a protocol's messages tell it: one reading of it, led by the protocol's table of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectors.readers.kafka.messages.events import Field, RowSchema
from historian.schema.snapshots import BYTE_TYPES, INTEGER_TYPES, TEXT_TYPES, Column, ColumnType

__all__ = ["ToldSchemas", "told_schema", "untold_schema"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldSchemas:
    """What fields are called that tell of tables' schemas, and of their rows' versions.

    Attributes:
        messages: the version of messages, which ``version`` of theirs has.
        told: of messages, where schemas stand, the former one first; ``row_version``: of rows, that of theirs.
        version: of schemas; ``database``, best first, and ``table``: of their table's name.
        columns: of schemas, and of each column ``column``, its name, and ``nullable``.
        indexes: of schemas, and of each index ``primary``, whether it is the key, and ``indexed``, its columns.
        type: of columns, and of it ``type_name`` and what it takes: ``length``, which is a DECIMAL's precision, and ``digits`` of a fraction.
        unsigned, zerofill, labels, charset, collation: of types.
        value, zone: of values that are objects: the value itself, and of TIMESTAMPs the time zone.
    """

    messages: int
    told: tuple[str, ...]
    row_version: str
    version: str
    database: tuple[str, ...]
    table: str
    columns: str
    column: str
    nullable: str
    indexes: str
    primary: str
    indexed: str
    type: str
    type_name: str
    length: str
    digits: str
    unsigned: str
    zerofill: str
    labels: str
    charset: str
    collation: str
    value: str
    zone: str


def told_schema(schema: Mapping[str, Any], names: ToldSchemas) -> RowSchema:
    """The schema of rows of what a message tells of a table.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is none.
    """
    primary = (each for each in schema.get(names.indexes) or () if each.get(names.primary))
    key = next((tuple(map(str, each[names.indexed])) for each in primary), ())
    fields = tuple(
        _field(str(each[names.column]), _type(each[names.type], names), nullable=bool(each.get(names.nullable)))
        for each in schema[names.columns]
    )
    return RowSchema(fields=fields, key=key, certainty="types")


def untold_schema(columns: Sequence[str], *, is_part: bool = False) -> RowSchema:
    """What is known of a row whose schema no message has told: that it has these columns, and others where it *is_part* of a row."""
    fields = tuple(_field(name, ColumnType(name=""), nullable=True) for name in columns)
    return RowSchema(fields=fields, key=None, certainty="names" if is_part else "types")


def _field(name: str, kind: ColumnType, *, nullable: bool) -> Field:
    return Field(column=Column(id=0, name=name, type=kind, nullable=nullable), type="", name="", parameters={})


def _type(told: Mapping[str, Any], names: ToldSchemas) -> ColumnType:
    name = str(told[names.type_name]).lower()
    length, digits = _number(told.get(names.length)), _number(told.get(names.digits))
    unsigned, zerofill = bool(told.get(names.unsigned)), bool(told.get(names.zerofill))
    charset, collation = (
        str(told.get(names.charset) or "utf8mb4"),
        str(told.get(names.collation) or "utf8mb4_bin"),
    )
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
        labels = tuple(map(str, told.get(names.labels) or ()))
        return ColumnType(name=name, labels=labels, charset=charset, collation=collation)
    if name in TEXT_TYPES:
        size = length if name in ("char", "varchar") else None
        return ColumnType(name=name, length=size, charset=charset, collation=collation)
    if name in BYTE_TYPES:
        return ColumnType(name=name, length=length if name in ("binary", "varbinary") else None)
    return ColumnType(name=name, length=length or 1) if name == "bit" else ColumnType(name=name)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
