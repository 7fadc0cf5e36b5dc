"""Two snapshots of one table side by side: the schema that is expected, and the one that was found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from historian.schema.snapshots import BYTE_TYPES, Column, ColumnType, Snapshot, UniqueKey

__all__ = ["as_printed", "differences"]

_LOSSY_BYTE = 0x3F
"""The question mark, which servers print for bytes that are no text."""
_LOSSY_BYTES = re.compile(r"(?:[^\0-\uffff]|\\x[0-9a-f]{2}|\?)+")
"""What MariaDB prints as question marks in labels of bytes."""
_LOSSY_TEXT = re.compile("[?\U00010000-\U0010ffff]+")
"""What servers print as question marks: characters of four bytes in UTF-8."""


def as_printed(label: str, charset: str | None) -> str:
    """A label as far as servers print it: a question mark for each run of what they do not tell."""
    return (_LOSSY_BYTES if charset == "binary" else _LOSSY_TEXT).sub("?", label)


def differences(expected: Snapshot, found: Snapshot) -> tuple[str, ...]:
    """What differs, a line each, such as ``column b: expected int, found bigint``; empty where nothing does.

    Ids are not compared, nor what touches no value and is not printed alike or in full by all servers, or changes without
    being told:

    - the text of expressions, the moment of a TIMESTAMP's default, and any default of a TIMESTAMP that is NOT NULL
    - bytes behind the first zero byte of a binary default, and defaults of columns that only the log's rows told of
    - question marks in labels and defaults, and characters that servers print as such
    - names of keys, and keys that are not unique
    - how MariaDB stores a column's values, and whether it keeps rows from before its changes
    """
    lines = list(_columns(expected, found))
    pairs = (
        ("primary key", _names(expected, expected.primary_key), _names(found, found.primary_key)),
        ("unique keys", _unique(expected), _unique(found)),
        ("default charset", expected.charset, found.charset),
        ("default collation", expected.collation, found.collation),
        ("system versioning", _yes(expected), _yes(found)),
    )
    lines += [
        f"{what}: expected {wanted or 'none'}, found {seen or 'none'}" for what, wanted, seen in pairs if wanted != seen
    ]
    return tuple(lines)


def _columns(expected: Snapshot, found: Snapshot) -> Iterator[str]:
    seen = {column.name: column for column in found.columns}
    wanted = {column.name for column in expected.columns}
    for column in expected.columns:
        other = seen.get(column.name)
        if other is None:
            yield f"column {column.name}: expected {column.type}, found no such column"
        else:
            for what, left, right in _column(column, other):
                yield f"column {column.name}{what}: expected {left}, found {right}"
    for column in found.columns:
        if column.name not in wanted:
            yield f"column {column.name}: expected no such column, found {column.type}"
    order = [column.name for column in expected.columns if column.name in seen]
    order_found = [column.name for column in found.columns if column.name in wanted]
    if order != order_found:
        yield f"order of columns: expected {', '.join(order)}, found {', '.join(order_found)}"


def _column(expected: Column, found: Column) -> Iterator[tuple[str, object, object]]:
    if _printed(expected.type) != _printed(found.type):
        left, right = str(expected.type), str(found.type)
        if left == right:
            left, right = f"{left} {expected.type.collation}", f"{right} {found.type.collation}"
        yield "", left, right
    if expected.nullable != found.nullable:
        yield "", _nullability(expected), _nullability(found)
    if not (_is_implicit(expected, found) or _is_untold(expected) or _is_hidden(expected) or _is_hidden(found)):
        if _default(expected) != _default(found):
            yield " default", _shown(expected), _shown(found)
        if expected.on_update != found.on_update:
            yield " on update", expected.on_update or "no", found.on_update or "no"
    pairs: tuple[tuple[str, object, object], ...] = (
        (" auto_increment", expected.auto_increment, found.auto_increment),
        (" generated", expected.generated, found.generated),
        (" invisible", expected.invisible, found.invisible),
    )
    for what, wanted, seen in pairs:
        if wanted != seen:
            yield what, wanted or "no", seen or "no"


def _is_implicit(expected: Column, found: Column) -> bool:
    """A NOT NULL TIMESTAMP, whose default without ``explicit_defaults_for_timestamp`` any ALTER may change, or not."""
    return all(column.type.name == "timestamp" and not column.nullable for column in (expected, found))


def _is_untold(expected: Column) -> bool:
    """A column that only a TABLE_MAP told of, which says nothing of defaults."""
    return not expected.initial_known and expected.default is None


def _is_hidden(column: Column) -> bool:
    """A default that the server marks and does not show: an expression, one that was dropped, or one printed with losses."""
    return column.default == "" and column.default_is_expression


def _nullability(column: Column) -> str:
    return "NULL" if column.nullable else "NOT NULL"


def _shown(column: Column) -> str:
    if column.default is None:
        return "none"
    return column.default if column.default_is_expression else repr(column.default)


def _printed(kind: ColumnType) -> ColumnType:
    """The type with its labels as far as they can be compared."""
    if not kind.labels:
        return kind
    return replace(kind, labels=tuple(as_printed(label, kind.charset) for label in kind.labels))


def _default(column: Column) -> str | None:
    """The default as far as it can be compared."""
    if column.default is None:
        return None
    if column.default_is_expression:
        return "an expression"
    if column.type.name == "timestamp" and not column.default.startswith("0000-00-00"):
        return "a moment"
    if column.type.charset == "binary" and (column.default.startswith("0x") or _LOSSY_BYTES.search(column.default)):
        return "bytes that are no text"
    if column.type.name in BYTE_TYPES and column.default.startswith("0x"):
        raw = bytes.fromhex(column.default[2:])
        printed = next((at for at, byte in enumerate(raw) if byte in (0, _LOSSY_BYTE) or byte > 0x7E), len(raw))
        return f"0x{raw[:printed].hex()}"
    return _LOSSY_TEXT.sub("?", column.default)


def _yes(snapshot: Snapshot) -> str:
    return "yes" if snapshot.system_versioned else "no"


def _names(snapshot: Snapshot, ids: tuple[int, ...]) -> str:
    names = {column.id: column.name for column in snapshot.columns}
    return ", ".join(names.get(column, f"id {column}") for column in ids)


def _unique(snapshot: Snapshot) -> str:
    return "; ".join(sorted(_key(snapshot, key) for key in snapshot.unique_keys))


def _key(snapshot: Snapshot, key: UniqueKey) -> str:
    return f"({_names(snapshot, key.columns)})"
