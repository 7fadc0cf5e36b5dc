"""Tables in the words of ``information_schema.columns``: one form for commands and comparisons.

Servers differ in how they print the same column, so the form is that of one flavor and version. Not theirs to the letter:
expressions (defaults, generated columns), which servers print from their own parse and here stand as they were written. Nor
the default of a TIMESTAMP that is a moment, which some print in the time zone of who asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from historian.codec import dump
from historian.ddl.types.column_types import most_bytes, natural_width
from historian.schema.edits import Edit
from historian.schema.snapshots import BYTE_TYPES, Column, Snapshot, UniqueKey

__all__ = [
    "COMPRESSED",
    "MARIADB",
    "MYSQL",
    "WITHOUT_VERSIONING",
    "ServerForm",
    "server_form",
    "table_form",
    "tables_form",
]

_NUMBERS = frozenset(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year", "bit"))
_SHAPES = ("geometry", "point", "string", "polygon", "collection")
COMPRESSED = " /*M!100301 COMPRESSED*/"
WITHOUT_VERSIONING = "WITHOUT SYSTEM VERSIONING"
"""What MariaDB prints behind a type, and among what it calls extra."""
_LONGEST_KEY_BYTES = 3072
"""Of InnoDB."""
_ESCAPES = str.maketrans({"'": "''", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
_PLAIN_NOW = re.compile(r"CURRENT_TIMESTAMP(?:\(\d\))?")
_OPERATION = re.compile(r"(\d+)\s*([-+*/])\s*(\d+)")
_SIMPLE_STRING = re.compile(r"'[^'\\]*'")
_SYNONYMS = {"current_date": "curdate", "current_time": "curtime"}
_CALL = re.compile(r"[a-z_]+\(\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerForm:
    """Whose words are used: "mysql" or "mariadb", and the version as a number like 90700 or 110800."""

    flavor: str
    version: int


MYSQL = ServerForm(flavor="mysql", version=90700)
MARIADB = ServerForm(flavor="mariadb", version=110800)


def server_form(flavor: str, version: int = 0) -> ServerForm:
    """The form of that server; of the newest that is supported where the version is not known."""
    newest = MARIADB if flavor == "mariadb" else MYSQL
    return ServerForm(flavor=flavor, version=version) if version else newest


def tables_form(edits: Sequence[Edit], snapshots: Iterable[Snapshot], server: ServerForm) -> dict[str, Any]:
    """Edits, and tables by name, as JSON values."""
    return {
        "edits": json.loads(dump(tuple[Edit, ...], tuple(edits))),
        "tables": {str(snapshot.name): table_form(snapshot, server) for snapshot in snapshots},
    }


def table_form(snapshot: Snapshot, server: ServerForm) -> dict[str, Any]:
    """One table: its columns in order, and the names of those that the primary key is over, in key order."""
    names = {column.id: column.name for column in snapshot.columns}
    keys = _column_keys(snapshot, server)
    return {
        "columns": [_column(column, keys.get(column.id, ""), server) for column in snapshot.columns],
        "primary_key": [names[column] for column in snapshot.primary_key],
    }


def _column(column: Column, key: str, server: ServerForm) -> dict[str, Any]:
    kind = column.type
    return {
        "id": column.id,
        "name": column.name,
        "type": _type(column, server),
        "nullable": column.nullable,
        "default": _default(column, server),
        "charset": _charset_name(kind.charset, server),
        "collation": _charset_name(kind.collation, server),
        "key": key,
        "extra": _extra(column, server),
    }


def _type(column: Column, server: ServerForm) -> str:
    return _stored_type(column, server) + (COMPRESSED if column.compressed else "")


def _stored_type(column: Column, server: ServerForm) -> str:
    kind = column.type
    if kind.labels:
        return f"{kind.name}({','.join(_quoted(label) for label in kind.labels)})"
    text = str(kind)
    prints_widths = server.flavor == "mariadb" or server.version < 80019
    if not prints_widths or kind.length is not None:
        return text
    if kind.name == "year":
        return "year(4)"
    width = column.display_width or natural_width(kind.name, unsigned=kind.unsigned)
    return text if width is None else text.replace(kind.name, f"{kind.name}({width})", 1)


def _charset_name(name: str | None, server: ServerForm) -> str | None:
    if name == "binary" and server.flavor == "mysql" and server.version >= 80000:
        return None  # an ENUM or SET of bytes
    if name is not None and name.startswith("utf8mb3") and _says_utf8(server):
        return f"utf8{name[7:]}"
    return name


def _says_utf8(server: ServerForm) -> bool:
    return server.version < 100600 if server.flavor == "mariadb" else server.version < 80000


def _default(column: Column, server: ServerForm) -> str | None:
    if column.default is None:
        is_null = server.flavor == "mariadb" and column.nullable
        return "NULL" if is_null and not column.auto_increment else None
    text = column.default
    if column.default_is_expression and not text:
        return None
    if column.default_is_expression:
        return _moment(text, server) if _PLAIN_NOW.fullmatch(text) else _expression(text, server)
    if server.flavor == "mariadb":
        return _clause(text, column)
    if column.type.name in BYTE_TYPES:
        return _raw(text) if server.version < 80000 else _shortened(text, column)
    if column.type.charset == "binary" and server.version >= 80000 and text:
        return f"0x{text.encode().hex().upper()}"
    return text


def _expression(text: str, server: ServerForm) -> str:
    """The simplest expressions as servers print them; others as they were written."""
    if _CALL.fullmatch(text):
        call = text.lower().removesuffix("()")
        return _SYNONYMS.get(call, "now" if call == "current_timestamp" and server.flavor == "mysql" else call) + "()"
    if text.lower() == "current_date":
        return "curdate()"
    operation = _OPERATION.fullmatch(text)
    if operation is not None:
        return f"({' '.join(operation.groups())})"
    if server.flavor == "mysql" and _SIMPLE_STRING.fullmatch(text):
        return f"_utf8mb4\\'{text[1:-1]}\\'"
    return text


def _shortened(text: str, column: Column) -> str:
    """Hexadecimal digits without the zero bytes at the end; MySQL prints an empty VARBINARY as nothing."""
    text = f"0x{bytes.fromhex(text[2:]).rstrip(bytes(1)).hex().upper()}" if text.startswith("0x") else text
    return "" if text == "0x" and column.type.name != "binary" else text


def _clause(text: str, column: Column) -> str:
    """A default as MariaDB prints it: as it could be written."""
    if column.type.name in _NUMBERS:
        return text
    if column.type.name in BYTE_TYPES:
        text = _raw(text)
    return _quoted(text)


def _quoted(text: str) -> str:
    return f"'{text.translate(_ESCAPES)}'"


def _raw(text: str) -> str:
    return bytes.fromhex(text[2:]).decode("utf-8", "replace") if text.startswith("0x") else text


def _moment(text: str, server: ServerForm) -> str:
    if server.flavor != "mariadb":
        return text
    return text.lower() if "(" in text else f"{text.lower()}()"


def _extra(column: Column, server: ServerForm) -> str:
    mariadb = server.flavor == "mariadb"
    words = []
    if column.auto_increment:
        words.append("auto_increment")
    if column.default_is_expression and not mariadb and server.version >= 80000:
        words.append("DEFAULT_GENERATED")
    if column.on_update:
        words.append(f"on update {_moment(column.on_update, server)}")
    if column.generated:
        words.append(f"{column.generated.upper()} GENERATED")
    if column.invisible:
        words.append("INVISIBLE")
    if column.unversioned:
        words.append(WITHOUT_VERSIONING)
    return (", " if mariadb else " ").join(words)


def _column_keys(snapshot: Snapshot, server: ServerForm) -> dict[int, str]:
    """PRI, UNI or MUL by column id, as the server marks the first column of each key, and all of the primary one.

    Where a column begins several keys MySQL 8 takes the first one; older ones, and MariaDB, prefer UNI.
    """
    keys: dict[int, str] = {}
    ordered = _in_order(snapshot)
    stands_in = next((key for key in ordered if not snapshot.primary_key and _stands_in(key, snapshot, server)), None)
    if server.flavor == "mariadb" or server.version < 80000:
        ordered.sort(key=lambda key: len(key.columns) > 1)
    for column in snapshot.primary_key or (stands_in.columns if stands_in else ()):
        keys[column] = "PRI"
    for key in ordered:
        keys.setdefault(key.columns[0], "UNI" if len(key.columns) == 1 else "MUL")
    for key in snapshot.other_keys:
        keys.setdefault(key.columns[0], "MUL")
    return keys


def _in_order(snapshot: Snapshot) -> list[UniqueKey]:
    """Unique keys as servers sort them: those with columns that can be NULL later, and those over parts of columns."""
    nullable = {column.id for column in snapshot.columns if column.nullable}
    virtual = {column.id for column in snapshot.columns if column.generated == "virtual"}

    def place(key: UniqueKey) -> tuple[bool, bool, bool]:
        return not virtual.isdisjoint(key.columns), not nullable.isdisjoint(key.columns), bool(key.prefixes)

    return sorted(snapshot.unique_keys, key=place)


def _stands_in(key: UniqueKey, snapshot: Snapshot, server: ServerForm) -> bool:
    """Whether servers take the key for the primary one where there is none."""
    sizes = {
        column.id: _key_bytes(column, server)
        for column in snapshot.columns
        if not column.nullable and column.generated != "virtual"
    }
    if key.prefixes or not sizes.keys() >= set(key.columns):
        return False
    return sum(sizes[column] for column in key.columns) <= _LONGEST_KEY_BYTES


def _key_bytes(column: Column, server: ServerForm) -> int:
    """MariaDB keeps keys over a whole TEXT, BLOB or GEOMETRY, or longer ones than fit, as hashes."""
    is_hashed = column.type.name.endswith(("text", "blob", *(_SHAPES if server.flavor == "mariadb" else ())))
    return _LONGEST_KEY_BYTES + 1 if is_hashed else most_bytes(column.type)
