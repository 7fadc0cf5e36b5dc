"""Schemas of which messages tell a part: whether a version fits what is told, and what a version is made of it.

What a message does not tell is not guessed. It is taken from the version before, or the table stops with what to configure.
"""

from __future__ import annotations

from dataclasses import replace

from connectors.readers.base import SchemaMet
from historian.schema.snapshots import BYTE_TYPES, GEOMETRIES, INTEGER_TYPES, TEXT_TYPES, Column, ColumnType, Snapshot
from historian.values.arrow_types import is_readable

__all__ = ["TooLittleTold", "completed", "fits_told", "key_names"]

_DECLARE = "declare the table by source.schema, a file of CREATE TABLE statements"
_NUMBERS = ("decimal", "float", "double")
_TAKES: dict[str, tuple[str, ...]] = {
    "bit": ("bit", "json"),
    "bigint": (*INTEGER_TYPES, *_NUMBERS, "year", "bit", "json", "enum", "set", "date", "datetime", "time"),
    "double": (*_NUMBERS, "json"),
    "json": ("json", "set", "vector", *GEOMETRIES, "geometrycollection"),
    "mixed": (*_NUMBERS, "json"),
}
"""Types of columns that take values of a kind in some format; text may be of any type."""

_CARRIED: dict[str, tuple[str, ...]] = {
    "tinyint": ("bit",),
    "bigint": ("decimal",),
    "decimal": ("double", "longtext"),
    "double": ("float",),
    **dict.fromkeys(("geometry", "geometrycollection", *GEOMETRIES), ("geometry", "point")),
}
"""Types of columns with the types that Debezium's connectors may carry them as; what does not fit exactly stops the table."""


class TooLittleTold(Exception):
    """No version can be made of what a message tells; its text is the reason, for people."""


def fits_told(snapshot: Snapshot, met: SchemaMet) -> bool:
    """Whether rows of *met* are those of *snapshot*, as far as *met* tells."""
    if met.key is not None and met.key != key_names(snapshot):
        return False
    held = {column.name: column for column in snapshot.columns}
    if met.certainty != "names" and held.keys() != {column.name for column in met.columns}:
        return False
    return all(
        column.name in held and _agrees(held[column.name].type, column.type, met.certainty) for column in met.columns
    )


def completed(met: SchemaMet, before: Snapshot | None) -> SchemaMet:
    """*met* with all that a version needs: what it does not tell is as in *before*, the table's last version.

    Raises:
        TooLittleTold: that would be a guess.
    """
    names = {column.name for column in met.columns}
    if met.certainty == "names" and before is not None:
        names |= {column.name for column in before.columns}
    if lacking := sorted({*(met.key or ())} - names):
        raise TooLittleTold(f"its key has {', '.join(lacking)}, which its rows lack\n  {met.advice or _DECLARE}")
    if met.certainty == "exact":
        return met
    held = {} if before is None else {column.name: column for column in before.columns}
    told = {column.name: column for column in met.columns}
    for name, column in told.items():
        _check(met, held.get(name), column)
    if met.certainty == "names":
        kept = list(held.values())
    else:
        kept = [
            column if _agrees(column.type, told[name].type, met.certainty) else replace(column, type=told[name].type)
            for name, column in held.items()
            if name in told
        ]
    columns = [*kept, *(column for name, column in told.items() if name not in held)]
    key = met.key if met.key is not None else () if before is None else key_names(before)
    return replace(met, columns=tuple(replace(column, id=0) for column in columns), key=key, certainty="exact")


def _check(met: SchemaMet, held: Column | None, told: Column) -> None:
    advice = met.advice or _DECLARE
    if held is not None and _agrees(held.type, told.type, met.certainty):
        return
    if held is not None and met.certainty == "names":
        kind = "values of several kinds" if told.type.name == "mixed" else f"values that are {told.type}"
        raise TooLittleTold(f"{told.name} is {held.type}, and messages have {kind} in it\n  {advice}")
    if told.type.name == "mixed":
        raise TooLittleTold(f"{told.name} has values of several kinds, and no message tells its type\n  {advice}")
    if not is_readable(told.type) or _lacks(told.type):
        found = f"its type is told as {told.type}" if told.type.name else "no message tells its type"
        raise TooLittleTold(f"what values {told.name} takes is not known: {found}\n  {advice}")


def _lacks(kind: ColumnType) -> bool:
    """Whether a type lacks what decides its values: its name alone was told."""
    if kind.name == "decimal":
        return kind.precision is None
    return (kind.name in ("enum", "set") and not kind.labels) or (kind.name == "bit" and kind.length is None)


def _agrees(held: ColumnType, told: ColumnType, certainty: str) -> bool:
    if not told.name:
        return True
    if certainty == "columns":
        return _family(held) == _family(told) or _carries(held, told)
    if certainty == "names":
        return told.name not in _TAKES or held.name in _TAKES[told.name]
    if certainty == "type_names":
        return _family(held) == _family(told) and held.unsigned == told.unsigned
    if _lacks(told):
        return (held.name, held.unsigned) == (told.name, told.unsigned)
    return _bare(held) == _bare(told)


def _carries(held: ColumnType, told: ColumnType) -> bool:
    """Whether values of a column that a statement made come as *told*, or are none of it for sure."""
    if {held.name, told.name} <= {*INTEGER_TYPES}:
        return True
    if (held.name, told.name) == ("float", "double"):
        return held.precision is not None  # FLOAT(M,D)
    return told.name in _CARRIED.get(held.name, ()) and not (held.name == "bigint" and told.scale)


def _family(kind: ColumnType) -> str:
    return "text" if kind.name in TEXT_TYPES else "bytes" if kind.name in BYTE_TYPES else kind.name


def _bare(kind: ColumnType) -> ColumnType:
    """*kind* without what no message tells, and without how it is displayed."""
    shown = kind.name in INTEGER_TYPES or kind.name == "year"
    length = None if shown else kind.length
    return replace(kind, charset=None, collation=None, zerofill=False, length=length)


def key_names(snapshot: Snapshot) -> tuple[str, ...]:
    """The names of the primary key's columns, in its order."""
    names = {column.id: column.name for column in snapshot.columns}
    return tuple(names[column_id] for column_id in snapshot.primary_key)
