"""A catalog of ours against the one that a server shows: tables and keys, what is printed of them, and values of added columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from databases.servers import Server
from historian.ddl.types.information_schema import ServerForm, table_form
from historian.names import TableName
from historian.schema.comparison import differences
from historian.schema.edits import AddColumn, Edit
from historian.schema.snapshots import Catalog, Column, Snapshot, UniqueKey

if TYPE_CHECKING:
    import pymysql

__all__ = ["Comparison", "is_lost"]

_BYTES = frozenset(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry", "point", "vector"))

_PRINTED = """SELECT table_schema, table_name, column_name, column_type, is_nullable, column_default, character_set_name,
collation_name, column_key, extra FROM information_schema.columns WHERE table_schema IN %s
ORDER BY table_schema, table_name, ordinal_position"""

_DESCENDING = """SELECT DISTINCT table_schema, table_name FROM information_schema.statistics
WHERE table_schema IN %s AND non_unique = 0 AND collation = 'D'"""

_LOST = re.compile(r"(?:enum|set)\(.*\?|set\((?:.*,)?''[,)]")
"""What servers print for a label, or a part of one, that is no text in its charset any more: a question mark, or nothing."""
_UNTOLD = re.compile("is not closed|does not tell a label")
"""Of labels that are no text: MySQL 5.7 prints none from there on, others a question mark."""
_OF_BYTES = re.compile(r"expected (?:enum|set)\([^)]*\\x")
_BEYOND_ASCII = re.compile(r"0x(?:..)*[89A-F].(?:..)*")
_SAID_OTHERWISE = re.compile(r"_\w+'|[xX]'|0x|N'")


class Comparison:
    """One server's tables against ours. ``compared``, ``values``: how many columns and values were looked at.

    *is_ours*: which tables are compared.
    """

    def __init__(self, server: Server, observer: pymysql.Connection[Any], is_ours: Callable[[TableName], bool]) -> None:
        self.observer = observer
        self.is_ours = is_ours
        self.form = ServerForm(flavor=server.flavor, version=_number(server.version))
        self.compared = self.values = 0

    def structure(self, expected: Catalog, found: Catalog) -> Iterator[str]:
        """Tables, columns, keys and databases that differ."""
        ours = {name: table for name, table in expected.tables.items() if self.is_ours(name)}
        theirs = {name: table for name, table in found.tables.items() if self.is_ours(name)}
        for name in sorted({*ours, *theirs}):
            if name not in theirs and _UNTOLD.search(found.unknown.get(name, "")):
                continue
            if name not in theirs:
                yield f"{name}: we have it, the server has not"
            elif name not in ours:
                yield f"{name}: the server has it, we have not"
            else:
                for line in differences(ours[name], theirs[name]):
                    yield f"{name}: {line}"
                for what in ("unique_keys", "other_keys"):
                    left, right = _keys(ours[name], what), _keys(theirs[name], what)
                    if left != right:
                        yield f"{name}: {what} expected {left}, found {right}"
        for database in sorted(
            name for name in {*expected.databases, *found.databases} if self.is_ours(TableName(name, ""))
        ):
            if expected.databases.get(database) != found.databases.get(database):
                yield f"{database}: expected {expected.databases.get(database)}, found {found.databases.get(database)}"

    def printed(self, catalog: Catalog) -> Iterator[str]:
        """Our tables in the server's words against its own."""
        tables = [name for name in catalog.tables if self.is_ours(name)]
        databases = sorted({name.database for name in tables})
        if not databases:
            return
        printed: dict[TableName, list[dict[str, Any]]] = {}
        with self.observer.cursor() as cursor:
            cursor.execute(_PRINTED, [databases])
            for database, table, name, kind, nullable, default, charset, collation, key, extra in cursor.fetchall():
                printed.setdefault(TableName(database, table), []).append(
                    {
                        "name": name,
                        "type": _text(kind),
                        "nullable": nullable == "YES",
                        "default": _now(_text(default)),
                        "charset": charset,
                        "collation": collation,
                        "key": key,
                        "extra": extra,
                    }
                )
            cursor.execute(_DESCENDING, [databases])
            descending = {TableName(*row) for row in cursor.fetchall()} if self.form.flavor == "mariadb" else set()
        for name in tables:
            snapshot = catalog.tables[name]
            ours = table_form(snapshot, self.form)["columns"]
            for column, left, right in zip(snapshot.columns, ours, printed.get(name, ()), strict=False):
                self.compared += 1
                for what, value in right.items():
                    if what == "key" and name in descending and not snapshot.primary_key:
                        continue
                    if left[what] != value and not _is_free(what, value, column, snapshot, self.form.flavor):
                        yield f"{name}.{column.name} {what}: we print {left[what]!r}, the server {value!r}"

    def initial_values(self, edits: Iterable[Edit], catalog: Catalog) -> Iterator[str]:
        """Columns that edits add whose rows do not hold what we say."""
        for edit in edits:
            if not isinstance(edit, AddColumn) or not edit.column.initial_known:
                continue
            snapshot = next((t for t in catalog.tables.values() if t.column_by_id(edit.column.id)), None)
            if snapshot is None:
                continue
            column = snapshot.column_by_id(edit.column.id)
            assert column is not None
            for (value,) in self._values(snapshot, column):
                self.values += 1
                if not _same(value, column):
                    yield f"column {column.name} {column.type}: initial {column.initial!r}, the server has {value!r}"

    def _values(self, snapshot: Snapshot, column: Column) -> tuple[tuple[Any, ...], ...]:
        name = "`" + column.name.replace("`", "``") + "`"
        shown = f"CAST({name} AS CHAR)"
        if column.type.name in _BYTES or column.type.name.endswith(("point", "string", "polygon", "collection")):
            shown = f"CONCAT('0x', HEX({name}))"
        elif column.type.charset == "binary":
            shown = f"CAST(HEX({name}) AS CHAR)"
        elif column.type.name == "bit":
            shown = f"CONCAT('b''', BIN({name} + 0), '''')"
        elif column.type.name in ("float", "double"):
            shown = f"{name} + 0e0"
        table = f"`{snapshot.name.database}`.`{snapshot.name.table.replace('`', '``')}`"
        with self.observer.cursor() as cursor:
            cursor.execute(f"SELECT {shown} FROM {table}")
            found = tuple(cursor.fetchall())
        if column.type.charset != "binary":
            return found
        texts = (None if digits is None else bytes.fromhex(digits) for (digits,) in found)
        return tuple((None if raw is None else raw.decode("utf-8", "backslashreplace"),) for raw in texts)


def is_lost(finding: str) -> bool:
    """Whether it tells of a label that is no text in its charset any more, which servers print as a question mark or nothing."""
    return _LOST.search(finding) is not None or _OF_BYTES.search(finding) is not None


def _number(version: str) -> int:
    major, minor, patch = (int(part) for part in re.findall(r"\d+", version)[:3])
    return major * 10000 + minor * 100 + patch


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _now(default: str | None) -> str | None:
    """MariaDB keeps LOCALTIMESTAMP apart since 11.7."""
    return None if default is None else re.sub(r"^localtimestamp\b", "current_timestamp", default)


def _is_free(what: str, theirs: Any, column: Column, snapshot: Snapshot, flavor: str) -> bool:
    """Whether a difference is one of those that docs/reference/cli.md names."""
    if what == "key" and not snapshot.primary_key:
        nullable = {other.id for other in snapshot.columns if other.nullable}
        candidates = [key for key in snapshot.unique_keys if flavor == "mariadb" or nullable.isdisjoint(key.columns)]
        return len(candidates) > 1 and any(column.id in key.columns for key in candidates)
    if column.type.name == "timestamp" and not column.nullable and what in ("default", "extra"):
        return True  # see historian.schema.comparison
    if what == "extra" and column.default is None and theirs.startswith("DEFAULT_GENERATED"):
        ours = f"on update {column.on_update}" if column.on_update else ""
        return theirs.removeprefix("DEFAULT_GENERATED").lstrip() == ours  # stays when such a default is dropped
    if what == "type" and ("x'" in theirs or _LOST.search(str(column.type)) or "\\x" in str(column.type.labels)):
        return True  # labels that are no text
    return what == "default" and _is_free_default(theirs, column, flavor)


def _is_free_default(theirs: Any, column: Column, flavor: str) -> bool:
    if column.default is None:
        return flavor == "mariadb" and column.nullable and theirs is None
    if column.default_is_expression:
        if theirs is None:
            return flavor == "mysql"
        return theirs.startswith("now(") or re.fullmatch(r"CURRENT_TIMESTAMP(\(\d\))?", column.default) is None
    if theirs is None:
        return False
    if column.type.name in _BYTES and _BEYOND_ASCII.fullmatch(column.default):
        return True
    if column.type.charset == "binary" and _BEYOND_ASCII.fullmatch(theirs):
        return True
    if flavor == "mariadb" and (column.type.name.endswith(("text", "blob")) or _SAID_OTHERWISE.match(theirs)):
        return True
    return column.type.name == "timestamp"


def _same(value: Any, column: Column) -> bool:
    if column.initial is None or value is None:
        return value is None and column.initial is None
    if column.type.name in ("float", "double"):
        expected = float(column.initial)
        return abs(float(value) - expected) <= abs(expected) * (1e-5 if column.type.name == "float" else 1e-14)
    if column.type.zerofill or column.type.name == "decimal":
        return float(value) == float(column.initial)
    text = value.decode() if isinstance(value, bytes) else str(value)
    return text == column.initial


def _keys(snapshot: Snapshot, what: str) -> list[tuple[str, list[str]]]:
    names = {column.id: column.name for column in snapshot.columns}
    keys: tuple[UniqueKey, ...] = getattr(snapshot, what)
    return sorted((key.name, [names.get(column, "expression") for column in key.columns]) for key in keys)
