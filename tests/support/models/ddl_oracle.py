"""Random statements on a real server, and after each the schema that we computed against the one the server shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pymysql

from connectors.readers.binlog.events.crosscheck import mismatch
from connectors.tracking.capture.catalog import capture_catalog
from databases.servers import Server
from databases.statement_log import StatementLog
from historian.ddl import StatementContext, resolve
from historian.names import TableName
from historian.schema.applying import apply_all
from historian.schema.edits import Edit
from historian.schema.snapshots import Catalog
from models.ddl_comparison import Comparison, is_lost
from models.ddl_grammar import DATABASES, DdlGrammar, is_ours
from models.ddl_text import described

__all__ = ["Oracle"]

_REFUSED = (
    "damages the labels",
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
        self.comparison = Comparison(server, self.observer, is_ours)
        self.accepted = self.rejected = self.refused = 0
        for database in DATABASES:
            self._try(f"CREATE DATABASE `{database}` CHARACTER SET utf8mb4")
        self._try(f"USE `{DATABASES[0]}`")
        assert not list(self._follow("CREATE DATABASE"))

    @property
    def compared(self) -> int:
        """Columns that were compared as they are printed."""
        return self.comparison.compared

    @property
    def values(self) -> int:
        """Values of added columns that were compared."""
        return self.comparison.values

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
        findings += [line for line in self.comparison.structure(self.catalog, found) if not is_lost(line)]
        printed = set(self.comparison.printed(self.catalog))
        findings += sorted(printed - self.printed)
        self.printed = printed
        if not findings:
            findings += self.comparison.initial_values(edits, self.catalog)
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
            if any("\\x" in label for column in found.columns for label in column.labels or ()):
                continue  # labels that are no text in their charset, which the server prints as question marks
            self.mapped += 1
            difference = mismatch(snapshot, found.columns, self.comparison.form.flavor)
            if difference is not None:
                yield f"TABLE_MAP: {difference}"


def _brief(context: StatementContext) -> str:
    """What the context says that is not the default."""
    default = StatementContext()
    said = {name: getattr(context, name) for name in StatementContext.__slots__}
    return ", ".join(f"{name}={value}" for name, value in said.items() if value != getattr(default, name))


def _is_partial_drop(sql: str) -> bool:
    """DROP TABLE of a table that is there and one that is not: an error, and yet logged with both names."""
    return re.match(r"DROP TABLES? (?!IF)", sql, re.IGNORECASE) is not None
