"""What a server holds, as Python, for comparison with a lake."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pymysql
from pymysql.constants import FIELD_TYPE, FLAG

from connectors.config import TableFilter
from databases.servers import Server
from historian.names import TableName, quoted
from workload.session import CONVERTERS

__all__ = ["Rows", "server_rows"]

Rows = tuple[tuple[str, ...], Counter[tuple[Any, ...]]]
"""Names of columns in order, and each row with how often it is there."""

_COLUMNS = """SELECT t.table_schema, t.table_name, c.column_name FROM information_schema.tables t
JOIN information_schema.columns c ON BINARY c.table_schema = BINARY t.table_schema AND BINARY c.table_name = BINARY t.table_name
WHERE t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')
AND t.table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')
ORDER BY 1, 2, c.ordinal_position"""


_CANNOT_MERGE = (1168, 1472)
"""Errors of a MERGE table that stands for tables that are gone, of other kinds, or for itself: it shows no rows."""


def _day(text: str) -> date | None:
    with contextlib.suppress(ValueError):
        return date.fromisoformat(text)
    return None  # a zero date, which a lake has as NULL unless told otherwise


def _moment(text: str) -> datetime | None:
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text)
    return None


_CONVERTERS = {
    **CONVERTERS,
    FIELD_TYPE.DATE: _day,
    FIELD_TYPE.DATETIME: _moment,
    FIELD_TYPE.TIMESTAMP: _moment,
}


def server_rows(
    server: Server, captured: TableFilter, *, where: str = "", computed: Mapping[str, str] | None = None
) -> dict[TableName, Rows]:
    """All captured tables of the server with those of their rows for which *where* holds, *computed* columns behind their own."""
    further = dict(computed or {})
    condition = f" WHERE {where}" if where else ""
    held: dict[TableName, Rows] = {}
    with contextlib.closing(server.connect(conv=_CONVERTERS)) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(_COLUMNS)
        columns: dict[TableName, list[str]] = {}
        for database, table, column in cursor.fetchall():
            columns.setdefault(TableName(database, table), []).append(column)
        for name, names in columns.items():
            if captured(name):
                listed = ", ".join([*map(quoted, names), *further.values()])
                try:
                    cursor.execute(f"SELECT {listed} FROM {name.quoted}{condition}")
                except pymysql.MySQLError as error:
                    if error.args[0] not in _CANNOT_MERGE:
                        raise
                    continue
                of_labels = [flags & (FLAG.ENUM | FLAG.SET) for flags in _flags(cursor)]
                held[name] = (*names, *further), Counter(_read(row, of_labels) for row in cursor.fetchall())
    return held


def _flags(cursor: pymysql.cursors.Cursor) -> list[int]:
    """What the server says of an answer's columns."""
    return [field.flags for field in cursor._result.fields]  # type: ignore[union-attr]


def _read(row: tuple[Any, ...], of_labels: list[int]) -> tuple[Any, ...]:
    """The row with labels of bytes as docs/reference/types.md has them."""
    return tuple(
        value.decode("utf-8", "backslashreplace") if is_label and isinstance(value, bytes) else value
        for value, is_label in zip(row, of_labels, strict=True)
    )
