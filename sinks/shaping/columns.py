"""Columns and their values under an action: what type, which default, which Arrow values."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import INTEGER_TYPES, TEXT_TYPES, Column, ColumnType
from historian.values.arrow_types import arrow_type
from historian.values.texts import initial_scalar
from sinks.shaping.rules import Action

__all__ = ["shaped_column", "shaped_values", "why_not"]

_TEXTS = frozenset((*TEXT_TYPES, "enum", "set", "json"))
_NUMBERS = frozenset((*INTEGER_TYPES, "decimal"))
_DIGEST = ColumnType(name="varchar", length=64, charset="ascii", collation="ascii_bin")


def why_not(column: Column, action: Action) -> str | None:
    """Why *action* cannot be done to values of *column*; None where it can."""
    kind = arrow_type(column.type)
    if action.kind == "hash" and not _has_bytes(column.type):
        return f"hash takes texts, bytes and whole or decimal numbers, not {column.type}"
    if action.kind == "truncate" and not (pa.types.is_string(kind) and column.type.name in _TEXTS):
        return f"truncate takes texts, not {column.type}"
    if action.kind == "mask":
        try:
            if initial_scalar(_masked(column, action.text)).as_py() is None and action.text is not None:
                return f"{action.text!r} is NULL as {column.type}"
        except ValueUnrepresentable:
            return f"{action.text!r} is no {column.type}"
    return None


def shaped_column(column: Column, action: Action) -> Column:
    """*column* as a lake has it under *action*, which is none that leaves it out."""
    if action.kind == "mask":
        # What is NULL stays NULL, in rows from before the column too.
        known = column.initial is not None or not (column.initial_known or column.nullable)
        return _masked(column, action.text) if known else column
    if action.kind == "hash":
        return replace(column, type=_DIGEST, initial=_initial(column, action))
    if action.kind == "truncate":
        old = column.type
        kind = ColumnType(name="varchar", length=action.characters, charset=old.charset, collation=old.collation)
        return replace(column, type=kind, initial=_initial(column, action))
    return column


def shaped_values(values: pa.Array, column: Column, action: Action) -> pa.Array:
    """The Arrow values of *column* under *action*; NULL stays NULL.

    A hash is the SHA-256, in hexadecimal digits, of the salt in UTF-8 and behind it the value. That is a text in UTF-8, bytes as they are, a
    number as the server prints it.
    """
    if action.kind == "mask":
        constant = initial_scalar(_masked(column, action.text))
        return pc.if_else(values.is_valid(), constant, pa.scalar(None, constant.type))
    if action.kind == "hash":
        return _hashed(values, action)
    return pc.utf8_slice_codeunits(values, 0, action.characters) if action.kind == "truncate" else values


def _masked(column: Column, text: str | None) -> Column:
    return replace(column, initial=text, initial_known=True)


def _initial(column: Column, action: Action) -> str | None:
    if column.initial is None or not column.initial_known:
        return column.initial
    values = pa.array([initial_scalar(column).as_py()], arrow_type(column.type))
    found = shaped_values(values, column, action)[0].as_py()
    return None if found is None else str(found)


def _hashed(values: pa.Array, action: Action) -> pa.Array:
    salted = hashlib.sha256(action.salt.text.encode())
    digests: list[str | None] = []
    for data in _bytes(values).to_pylist():
        if data is None:
            digests.append(None)
        else:
            one = salted.copy()
            one.update(data)
            digests.append(one.hexdigest())
    return pa.array(digests, pa.string())


def _bytes(values: pa.Array) -> pa.Array:
    if pa.types.is_decimal(values.type):
        texts = [None if value is None else f"{value:f}".encode() for value in values.to_pylist()]
        return pa.array(texts, pa.binary())
    if pa.types.is_integer(values.type):
        values = values.cast(pa.string())
    return values.cast(pa.binary())


def _has_bytes(kind: ColumnType) -> bool:
    arrow = arrow_type(kind)
    if pa.types.is_string(arrow):
        return True
    if pa.types.is_boolean(arrow):
        return False
    return kind.name in _NUMBERS if not pa.types.is_binary(arrow) else kind.name != "bit"
