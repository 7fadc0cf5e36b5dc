"""Statements on a real server, one after the other, and after each all tables as its log makes them against those that it shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pymysql

from connectors.tracking.capture.catalog import capture_catalog
from databases.servers import Server
from databases.statement_log import StatementLog
from historian.ddl import SYSTEM_DATABASES, resolve
from historian.names import TableName
from historian.schema.applying import apply_all
from historian.schema.edits import Edit
from historian.schema.snapshots import Catalog
from models.ddl_comparison import Comparison, is_lost

__all__ = ["CONNECTION_LOST", "Finding", "FollowedSession", "findings_of"]

_ANSWER_S = 15
_SETTINGS = "lock_wait_timeout = 2"
CONNECTION_LOST = (2006, 2013)
"""Errors of a client whose server has crashed, or does not answer in time."""
_NOBODY = TableName("", "")

_KNOWN = (
    "damages the labels",
    "cannot say all labels",
    "gives it a size of its own",
    "may not find a long",
    "depends on a setting",
    "error 1217",
    "error 1451",
    "without its character set",
    "holds no rows of its own",
    "it is a MERGE table",
    "it is a sequence, not a table",
    "what the text means is not in the log",
    "rows changed without row events",  # MariaDB logs them so of tables that are versioned by transaction ids
    "its columns come from a query",
    "at their place, between others",
)
"""Reasons for not following a table that are as they should be: docs name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A statement that is refused (``kind`` refused), or after which something differs (structure, printed, value)."""

    kind: str
    reason: str
    statement: str
    known: bool = False

    @property
    def group(self) -> str:
        """The reason without names, numbers and what is quoted."""
        text = re.sub(r"^[\w.]+: |'(?:[^'\\]|\\.)*'|\"[^\"]*\"|`[^`]*`", "…", self.reason)
        text = re.sub(r"\b(?:test|mysqltest\w*|db\w*|d\d)\.\S+", "TABLE", text)
        return re.sub(r"\d+", "0", text)[:150]


class FollowedSession:
    """A connection to a server without databases of its own but ``test``, and the catalog as the log makes it.

    ``counts``: what was run and compared; ``rejected``: errors of the server; ``findings``: what was not right. *rows*: a table that is
    altered gets a row before.
    """

    def __init__(self, server: Server, *, rows: bool = True) -> None:
        server.clear()
        server.sql("CREATE DATABASE test")
        self.connection = _connected(server, use_unicode=False, database="test")
        self.observer = _connected(server, "time_zone = '+00:00'")
        self.writer = _connected(server, "sql_mode = ''")
        self.log = StatementLog(server)
        self.comparison = Comparison(server, self.observer, _is_ours)
        self.catalog = self._captured(Catalog())
        self.counts: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.rejected: list[str] = []
        self._rows = rows
        self._printed: set[str] = set()

    def close(self) -> None:
        for connection in (self.connection, self.observer, self.writer):
            if connection.open:
                connection.close()

    def run(self, statements: Iterable[str | bytes]) -> None:
        """Runs statements, those that the server refuses among them."""
        for sql in statements:
            text = sql if isinstance(sql, str) else sql.decode("utf-8", "surrogateescape")
            for table in self.catalog.tables if self._rows and text[:5].upper() == "ALTER" else ():
                if table.table.lower() in text.lower():
                    self._insert(table)
            error = self._error(self.connection, text)
            self.counts["rejected" if error else "accepted"] += 1
            if error:
                self.rejected.append(f"{error}: {text[:200]}")
            self._follow(text)
        self.counts["columns compared"] = self.comparison.compared
        self.counts["values compared"] = self.comparison.values

    def _error(self, connection: pymysql.Connection[Any], sql: str) -> str:
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql.encode("utf-8", "surrogateescape"))  # type: ignore[arg-type]  # it sends bytes as they are
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in CONNECTION_LOST:
                raise
            return str(error)
        except (TypeError, ValueError) as error:  # PyMySQL cannot read what the server says
            return str(error)
        return ""

    def _insert(self, table: TableName) -> None:
        name = ".".join(f"`{part.replace('`', '``')}`" for part in (table.database, table.table))
        self._error(self.writer, f"INSERT INTO {name} () VALUES ()")

    def _captured(self, catalog: Catalog) -> Catalog:
        return capture_catalog(self.observer, catalog.next_table_id, catalog.next_column_id)

    def _follow(self, sql: str) -> None:
        edits: list[Edit] = []
        found: list[Finding] = []
        logged = list(self.log.new())
        if not logged:
            return
        refused = False
        for statement in logged:
            resolution = resolve(statement.sql, statement.context, self.catalog)
            edits += resolution.edits
            self.catalog = apply_all(resolution.edits, self.catalog)
            if resolution.kind in ("not_understood", "dml") and any(map(_is_ours, resolution.tables or (_NOBODY,))):
                refused = True
                found.append(self._finding("refused", resolution.reason, statement.sql))
        if not edits and not refused and re.match(r"(?:INSERT|REPLACE|SET|USE)\b", sql, re.IGNORECASE):
            return
        self.counts["comparisons"] += 1
        theirs = self._captured(self.catalog)
        if not refused:
            lines = [line for line in self.comparison.structure(self.catalog, theirs) if not is_lost(line)]
            found += [self._finding("structure", line, logged[-1].sql) for line in lines]
            printed = set(self.comparison.printed(self.catalog))
            found += [self._finding("printed", line, logged[-1].sql) for line in sorted(printed - self._printed)]
            self._printed = printed
            if not found:
                values = self.comparison.initial_values(edits, self.catalog)
                found += [self._finding("value", line, logged[-1].sql) for line in values]
        self.findings += found
        if found:
            self.catalog = theirs

    def _finding(self, kind: str, reason: str, statement: str) -> Finding:
        known = kind == "refused" and any(words in reason for words in _KNOWN)
        return Finding(kind=kind, reason=reason, statement=statement, known=known)


def _connected(server: Server, setting: str = "", **arguments: Any) -> pymysql.Connection[Any]:
    command = "SET " + ", ".join(filter(None, (_SETTINGS, setting)))
    return server.connect(read_timeout=_ANSWER_S, init_command=command, **arguments)


def _is_ours(name: TableName) -> bool:
    return name.database.lower() not in SYSTEM_DATABASES


def findings_of(server: Server, statements: Iterable[str | bytes], *, rows: bool = True) -> list[Finding]:
    """What is not right behind statements that the server takes, each of them."""
    session = FollowedSession(server, rows=rows)
    try:
        session.run(statements)
    finally:
        session.close()
    assert session.rejected == [], session.rejected
    return session.findings
