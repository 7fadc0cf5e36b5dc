"""Values of keys in SQL: how they are read, and literals that mean just the stored value.

A session that uses them has been set up by :func:`prepare_session`: TIMESTAMP is read and written in UTC, and dates that the
calendar does not have may stand in literals.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from historian.names import quoted
from historian.plans.key_ranges import KeyValue
from historian.schema.snapshots import INTEGER_TYPES, Column, ColumnType

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["key_expression", "key_value", "literal", "prepare_session", "text_literal"]

LOCK_WAIT_S = 5
"""A table that is locked, or being altered, is for a later plan: the log goes on meanwhile."""
SESSION = "SET SESSION time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'"

_NUMBERS = frozenset((*INTEGER_TYPES, "bit", "year", "enum"))
_STORED = frozenset(("char", "varchar", "binary", "varbinary"))
_SAFE = re.compile(r"[0-9A-Za-z ,.:_-]*")
"""Characters that have the same bytes in all character sets but these, and that need no escape."""
_WIDE = frozenset(("ucs2", "utf16", "utf16le", "utf32"))
_TYPED = {"date": "DATE", "datetime": "TIMESTAMP", "timestamp": "TIMESTAMP", "time": "TIME"}


def prepare_session(connection: Connection[Any]) -> None:
    """Sets time zone and SQL mode of a session as statements with keys need them, and that it waits for no lock for long."""
    with connection.cursor() as cursor:
        cursor.execute(f"{SESSION}, lock_wait_timeout = {LOCK_WAIT_S}")


def key_expression(column: Column) -> str:
    """The expression that selects a key column of the table ``t`` so that :func:`key_value` understands it."""
    name = f"t.{quoted(column.name)}"
    if column.type.name in _STORED:
        return f"HEX({name})"
    if column.type.name in ("bit", "enum"):
        return f"{name} + 0"
    return name if column.type.name in _NUMBERS else f"CAST({name} AS CHAR)"


def key_value(column: Column, selected: Any) -> KeyValue:
    """The key's value that was selected by :func:`key_expression`."""
    return int(selected) if column.type.name in _NUMBERS else str(selected)


def literal(kind: ColumnType, value: KeyValue) -> str:
    """SQL that means *value* beside a column of that type, which brings its collation.

    Of ENUM it is the number, by whose order no index is searched (:mod:`connectors.backfill.keys.predicates`).
    """
    if kind.name in _NUMBERS:
        number = int(value)
        # Beside a YEAR the server takes small numbers for years of two digits.
        return f"'{number:04}'" if kind.name == "year" else str(number)
    text = str(value)
    if kind.name in _STORED:
        bytes.fromhex(text)
        return f"_{kind.charset} x'{text}'" if kind.charset else f"x'{text}'"
    if kind.name in _TYPED:
        return f"{_TYPED[kind.name]}'{_plain(text, ' -:.')}'"
    if kind.name == "decimal":
        return _plain(text, "-.")
    return f"CAST('{_plain(text, '-:.', hexadecimal=True)}' AS {kind.name.upper()})"


def text_literal(kind: ColumnType, text: str) -> str:
    """SQL that means the characters *text* in the character set of a column of that type; beside its collation it takes that."""
    if kind.charset not in _WIDE and _SAFE.fullmatch(text):
        return f"_{kind.charset}'{text}'"
    characters = f"_utf8mb4 x'{text.encode().hex()}'"
    return characters if kind.charset == "utf8mb4" else f"CONVERT({characters} USING {kind.charset})"


def _plain(text: str, marks: str, *, hexadecimal: bool = False) -> str:
    """*text*, which holds digits and those marks alone."""
    allowed = "0123456789" + marks + ("abcdefABCDEF" if hexadecimal else "")
    if not text or not set(text) <= set(allowed):
        raise ValueError(f"not a key's value: {text!r}")
    return text
