"""A table's schema out of a TABLE_MAP with FULL metadata, where a change of the table is not in the log.

Rows behind such an event are read exactly: it says names, types, signs, charsets, labels and key. It does not say what a
change did to rows from before. So a column is the same one only by its name, with a type of its kind that holds its old
values as they are. A column of another name, or of another type, is a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.events.collations import bytes_per_character, collation
from connectors.readers.binlog.events.crosscheck import fits, mismatch
from connectors.readers.binlog.events.hidden_columns import named_hidden
from connectors.readers.binlog.events.table_maps import ColumnCode
from historian.charsets.client_text import read_as_one
from historian.schema.snapshots import GEOMETRIES, Column, ColumnType, Snapshot, UniqueKey
from historian.schema.type_compatibility import resembles, retyped

__all__ = ["described"]

_C = ColumnCode


def described(
    snapshot: Snapshot, columns: tuple[MappedColumn, ...], flavor: str, next_column_id: int
) -> Snapshot | None:
    """The schema that a TABLE_MAP of the table tells; None where it names no columns or could mean several schemas.

    Args:
        snapshot: the table's last known schema.
        columns: of the TABLE_MAP.
        flavor: "mysql" or "mariadb".
        next_column_id: the counter that ids are taken from.
    """
    if snapshot.system_versioned or (flavor == "mariadb" and _may_be_versioned(snapshot, columns)):
        return None
    columns = columns[: len(columns) - named_hidden(columns, flavor)]
    found: list[Column] = []
    for mapped in columns:
        old = None if mapped.name is None else snapshot.column(mapped.name)
        kind = old.type if old is not None and fits(old, mapped, flavor) else _type(mapped, flavor)
        if kind is None or mapped.name is None:
            return None
        if old is None or not resembles(old.type, kind):
            old = Column(id=next_column_id, name=mapped.name, type=kind, initial_known=False)
            next_column_id += 1
        hidden = mapped.visible is False
        found.append(replace(retyped(old, kind), name=mapped.name, nullable=mapped.nullable, invisible=hidden))
    key = _primary_key(snapshot, found, columns)
    if key is None:
        return None
    ids = {column.id for column in found}
    new = replace(
        snapshot,
        columns=tuple(found),
        primary_key=key,
        unique_keys=_within(snapshot.unique_keys, ids),
        other_keys=_within(snapshot.other_keys, ids),
    )
    return new if mismatch(new, columns, flavor) is None else None


def _may_be_versioned(snapshot: Snapshot, columns: tuple[MappedColumn, ...]) -> bool:
    """Whether two new columns are such as say when a row was current, by which rows from before a change stand in the log."""
    moments = [
        column
        for column in columns
        if (column.type, column.metadata, column.nullable) == (_C.TIMESTAMP2, 6, False)
        and (column.name is None or snapshot.column(column.name) is None)
    ]
    return len(moments) > 1


def _primary_key(snapshot: Snapshot, found: list[Column], columns: tuple[MappedColumn, ...]) -> tuple[int, ...] | None:
    """The key's column ids; None where their order is not known."""
    ids = tuple(column.id for column, mapped in zip(found, columns, strict=True) if mapped.primary_key)
    if set(ids) == set(snapshot.primary_key):
        return snapshot.primary_key
    return ids if len(ids) <= 1 else None


def _within(keys: tuple[UniqueKey, ...], ids: set[int]) -> tuple[UniqueKey, ...]:
    return tuple(key for key in keys if ids.issuperset(key.columns))


def _type(mapped: MappedColumn, flavor: str) -> ColumnType | None:
    make = _TYPES.get(mapped.type)
    return None if make is None else make(mapped, flavor)


def _number(name: str) -> Callable[[MappedColumn, str], ColumnType]:
    return lambda mapped, _: ColumnType(name=name, unsigned=bool(mapped.unsigned))


def _fraction(name: str) -> Callable[[MappedColumn, str], ColumnType]:
    return lambda mapped, _: ColumnType(name=name, fraction=mapped.metadata)


def _plain(name: str) -> Callable[[MappedColumn, str], ColumnType]:
    return lambda _mapped, _flavor: ColumnType(name=name)


def _decimal(mapped: MappedColumn, _: str) -> ColumnType:
    digits, scale = mapped.metadata >> 8, mapped.metadata & 0xFF
    return ColumnType(name="decimal", precision=digits, scale=scale, unsigned=bool(mapped.unsigned))


def _bit(mapped: MappedColumn, _: str) -> ColumnType:
    return ColumnType(name="bit", length=(mapped.metadata >> 8) * 8 + (mapped.metadata & 0xFF))


def _text(name: str, length_bytes: int | None, mapped: MappedColumn, flavor: str) -> ColumnType:
    of = collation(mapped.charset or 0, flavor)
    length = None if length_bytes is None else length_bytes // bytes_per_character(of.charset)
    return ColumnType(name=name, length=length, charset=of.charset, collation=of.name)


def _is_binary(mapped: MappedColumn, flavor: str) -> bool:
    return mapped.charset is not None and collation(mapped.charset, flavor).charset == "binary"


def _varchar(mapped: MappedColumn, flavor: str) -> ColumnType | None:
    if mapped.charset is None:
        return None
    if not _is_binary(mapped, flavor):
        return _text("varchar", mapped.metadata, mapped, flavor)
    # MariaDB's VECTOR looks the same.
    return None if flavor == "mariadb" else ColumnType(name="varbinary", length=mapped.metadata)


def _char(mapped: MappedColumn, flavor: str) -> ColumnType | None:
    if mapped.charset is None:
        return None
    size = mapped.metadata & 0xFF | ((mapped.metadata >> 8 ^ _C.STRING) & 0x30) << 4
    if not _is_binary(mapped, flavor):
        return _text("char", size, mapped, flavor)
    # MariaDB's UUID, INET6 and INET4 look the same.
    return None if flavor == "mariadb" else ColumnType(name="binary", length=size)


def _blob(mapped: MappedColumn, flavor: str) -> ColumnType | None:
    if mapped.charset is None:
        return None
    size = ("tiny", "", "medium", "long")[mapped.metadata - 1]
    if _is_binary(mapped, flavor):
        return ColumnType(name=f"{size}blob")
    of = collation(mapped.charset, flavor)
    if flavor == "mariadb" and (size, of.name) == ("long", "utf8mb4_bin"):
        return None  # as its JSON is
    return _text(f"{size}text", None, mapped, flavor)


def _labels(name: str) -> Callable[[MappedColumn, str], ColumnType | None]:
    def make(mapped: MappedColumn, flavor: str) -> ColumnType | None:
        if mapped.labels is None or mapped.charset is None or read_as_one(mapped.labels):
            return None
        return replace(_text(name, None, mapped, flavor), labels=mapped.labels)

    return make


def _vector(mapped: MappedColumn, _: str) -> ColumnType | None:
    return None if mapped.dimension is None else ColumnType(name="vector", length=mapped.dimension)


def _geometry(mapped: MappedColumn, _: str) -> ColumnType | None:
    return None if mapped.geometry is None else ColumnType(name=GEOMETRIES[mapped.geometry])


_TYPES: dict[int, Callable[[MappedColumn, str], ColumnType | None]] = {
    _C.TINY: _number("tinyint"),
    _C.SHORT: _number("smallint"),
    _C.INT24: _number("mediumint"),
    _C.LONG: _number("int"),
    _C.LONGLONG: _number("bigint"),
    _C.FLOAT: _number("float"),
    _C.DOUBLE: _number("double"),
    _C.NEWDECIMAL: _decimal,
    _C.BIT: _bit,
    _C.YEAR: _plain("year"),
    _C.DATE: _plain("date"),
    _C.TIME2: _fraction("time"),
    _C.DATETIME2: _fraction("datetime"),
    _C.TIMESTAMP2: _fraction("timestamp"),
    _C.VARCHAR: _varchar,
    _C.STRING: _char,
    _C.BLOB: _blob,
    _C.JSON: _plain("json"),
    _C.ENUM: _labels("enum"),
    _C.SET: _labels("set"),
    _C.GEOMETRY: _geometry,
    _C.VECTOR: _vector,
}
