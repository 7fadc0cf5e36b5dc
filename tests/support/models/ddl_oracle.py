"""Random statements on a real server, and after each the schema that we computed against the one the server shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pymysql

from connectors.readers.binlog.events.crosscheck import mismatch
from connectors.tracking.capture import capture_catalog
from databases.servers import Server
from databases.statement_log import StatementLog
from historian.ddl import StatementContext, resolve
from historian.ddl.types.information_schema import ServerForm, table_form
from historian.names import TableName
from historian.schema.comparison import differences
from historian.schema.edits import AddColumn, Edit, apply_all
from historian.schema.snapshots import Catalog, Column, Snapshot, UniqueKey
from models.ddl_grammar import DATABASES, DdlGrammar, is_ours
from models.ddl_text import described

__all__ = ["Oracle"]

_BYTES = frozenset(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry", "point", "vector"))

_PRINTED = """SELECT table_schema, table_name, column_name, column_type, is_nullable, column_default, character_set_name,
collation_name, column_key, extra FROM information_schema.columns WHERE table_schema IN %s
ORDER BY table_schema, table_name, ordinal_position"""

_DESCENDING = """SELECT DISTINCT table_schema, table_name FROM information_schema.statistics
WHERE table_schema IN %s AND non_unique = 0 AND collation = 'D'"""

_LOST = re.compile(r"(?:enum|set)\(.*\?|set\((?:.*,)?''[,)]")
"""What servers print for a member, or a part of one, that is no text in its charset any more: a question mark, or nothing."""
_BEYOND_ASCII = re.compile(r"0x(?:..)*[89A-F].(?:..)*")
_SAID_OTHERWISE = re.compile(r"_\w+'|[xX]'|0x|N'")

_REFUSED = (
    "damages the members",
    "gives it a size of its own",
    "may not find a long",
    "depends on a setting",
    "error 1217",
    "error 1451",
    "without its character set",
)
"""Reasons for not following a statement that are as they should be."""


class Oracle:
    """One session on one server; ``step`` runs a statement and gives what was found wrong."""

    def __init__(self, server: Server, seed: int) -> None:
        self.connection = server.connect(use_unicode=False)  # some statements answer with bytes that are no text
        self.observer = server.connect(init_command="SET time_zone = '+00:00'")
        for database in DATABASES:
            self._try(f"DROP DATABASE IF EXISTS `{database}`")
        self.log = StatementLog(server)
        self.catalog = capture_catalog(self.observer, 1, 1)
        self.grammar = DdlGrammar(seed, server.flavor)
        self.grammar.is_old = server.name == "mysql57"
        self.writer = server.connect(init_command="SET sql_mode = ''")
        self.mapped = 0
        self.printed: set[str] = set()
        self.form = ServerForm(flavor=server.flavor, version=_number(server.version))
        self.compared = 0
        self.accepted = self.rejected = self.refused = self.values = 0
        for database in DATABASES:
            self._try(f"CREATE DATABASE `{database}` CHARACTER SET utf8mb4")
        self._try(f"USE `{DATABASES[0]}`")
        assert not list(self._follow("CREATE DATABASE"))

    def close(self) -> None:
        for database in DATABASES:
            self._try(f"DROP DATABASE IF EXISTS `{database}`")
        self.connection.close()
        self.writer.close()
        self.observer.close()

    def step(self) -> Iterator[str]:
        """Runs one statement; yields each finding as text."""
        chance = self.grammar.random.random()
        if chance < 0.12:
            setting = self.grammar.session()
            if self._try(setting) and setting.startswith("USE"):
                self.grammar.database = setting[5:-1]
            return
        sql = self.grammar.statement(self.catalog)
        for table in self._tables(self.catalog):
            if table.table.lower() in sql.lower():
                self._insert(table)
        if self._try(sql):
            self.accepted += 1
        else:
            self.rejected += 1
        yield from self._follow(sql)

    def _try(self, sql: str, connection: pymysql.Connection[Any] | None = None) -> bool:
        try:
            with (connection or self.connection).cursor() as cursor:
                cursor.execute(sql)
        except pymysql.MySQLError:
            return False
        return True

    def _insert(self, table: TableName, connection: pymysql.Connection[Any] | None = None) -> None:
        """One row, so that an added column's value, or a TABLE_MAP, can be seen."""
        name = f"`{table.database}`.`{table.table.replace('`', '``')}`"
        self._try(f"INSERT INTO {name} () VALUES ()", connection)

    def _tables(self, catalog: Catalog) -> list[TableName]:
        return [name for name in catalog.tables if is_ours(name)]

    def _follow(self, sql: str) -> Iterator[str]:
        findings: list[str] = []
        before = self.catalog
        edits: list[Edit] = []
        refused = False
        statements = list(self.log.new())
        for statement in statements:
            resolution = resolve(statement.sql, statement.context, self.catalog)
            edits += resolution.edits
            if resolution.kind == "not_understood" and any(reason in resolution.reason for reason in _REFUSED):
                refused = True
            elif resolution.kind not in ("ddl", "irrelevant", "rows") and not _is_partial_drop(statement.sql):
                findings.append(f"{resolution.kind} {resolution.tables}: {resolution.reason}")
            self.catalog = apply_all(resolution.edits, self.catalog)
        found = capture_catalog(self.observer, self.catalog.next_table_id, self.catalog.next_column_id)
        if refused and not findings:
            self.refused += 1
            self.catalog = found
            return
        findings += [line for line in _catalog_differences(self.catalog, found) if not _LOST.search(line)]
        printed = set(self._printed_differences())
        findings += sorted(printed - self.printed)
        self.printed = printed
        if not findings:
            findings += self._initial_values(edits)
        findings += self._mapped_differences(sql)
        for finding in findings:
            tables = [
                f"{name}: {described(before.tables[name])}"
                for name in self._tables(before)
                if name.table.lower() in sql.lower()
            ]
            logged = [f"{statement.sql} {_brief(statement.context)}" for statement in statements]
            yield "\n    ".join((sql, finding, f"tables before: {tables}", *logged))
        if findings:
            self.catalog = found

    def _mapped_differences(self, sql: str) -> Iterator[str]:
        """What the TABLE_MAPs of new rows say against our tables."""
        list(self.log.new())
        self.log.maps.clear()
        for name in self._tables(self.catalog):
            if name.table.lower() in sql.lower():
                self._insert(name, self.writer)
        list(self.log.new())
        for found in self.log.maps:
            snapshot = self.catalog.tables.get(found.table)
            if snapshot is None:
                continue
            if any("\\x" in member for column in found.columns for member in column.members or ()):
                continue  # members that are no text in their charset, which the server prints as question marks
            self.mapped += 1
            difference = mismatch(snapshot, found.columns, self.form.flavor)
            if difference is not None:
                yield f"TABLE_MAP: {difference}"

    def _printed_differences(self) -> Iterator[str]:
        """Our tables in the server's words against its own."""
        printed: dict[TableName, list[dict[str, Any]]] = {}
        with self.observer.cursor() as cursor:
            cursor.execute(_PRINTED, [DATABASES])
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
            cursor.execute(_DESCENDING, [DATABASES])
            descending = {TableName(*row) for row in cursor.fetchall()} if self.form.flavor == "mariadb" else set()
        for name in self._tables(self.catalog):
            snapshot = self.catalog.tables[name]
            ours = table_form(snapshot, self.form)["columns"]
            for column, left, right in zip(snapshot.columns, ours, printed.get(name, ()), strict=False):
                self.compared += 1
                for what, value in right.items():
                    if what == "key" and name in descending and not snapshot.primary_key:
                        continue
                    if left[what] != value and not _is_free(what, value, column, snapshot, self.form.flavor):
                        yield f"{name}.{column.name} {what}: we print {left[what]!r}, the server {value!r}"

    def _initial_values(self, edits: list[Edit]) -> Iterator[str]:
        for edit in edits:
            if not isinstance(edit, AddColumn) or not edit.column.initial_known:
                continue
            snapshot = next((t for t in self.catalog.tables.values() if t.column_by_id(edit.column.id)), None)
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
        elif column.type.name == "bit":
            shown = f"CONCAT('b''', BIN({name} + 0), '''')"
        elif column.type.name in ("float", "double"):
            shown = f"{name} + 0e0"
        table = f"`{snapshot.name.database}`.`{snapshot.name.table.replace('`', '``')}`"
        with self.observer.cursor() as cursor:
            cursor.execute(f"SELECT {shown} FROM {table}")
            return tuple(cursor.fetchall())


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
    if what == "type" and ("x'" in theirs or _LOST.search(str(column.type))):
        return True  # members that are no text
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


def _brief(context: StatementContext) -> str:
    """What the context says that is not the default."""
    default = StatementContext()
    said = {name: getattr(context, name) for name in StatementContext.__slots__}
    return ", ".join(f"{name}={value}" for name, value in said.items() if value != getattr(default, name))


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


def _is_partial_drop(sql: str) -> bool:
    """DROP TABLE of a table that is there and one that is not: an error, and yet logged with both names."""
    return re.match(r"DROP TABLES? (?!IF)", sql, re.IGNORECASE) is not None


def _catalog_differences(expected: Catalog, found: Catalog) -> Iterator[str]:
    ours = {name: table for name, table in expected.tables.items() if is_ours(name)}
    theirs = {name: table for name, table in found.tables.items() if is_ours(name)}
    for name in sorted({*ours, *theirs}):
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
    for database in sorted(name for name in {*expected.databases, *found.databases} if is_ours(TableName(name, ""))):
        if expected.databases.get(database) != found.databases.get(database):
            yield f"{database}: expected {expected.databases.get(database)}, found {found.databases.get(database)}"


def _keys(snapshot: Snapshot, what: str) -> list[tuple[str, list[str]]]:
    names = {column.id: column.name for column in snapshot.columns}
    keys: tuple[UniqueKey, ...] = getattr(snapshot, what)
    return sorted((key.name, [names.get(column, "expression") for column in key.columns]) for key in keys)
