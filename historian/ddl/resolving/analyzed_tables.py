"""ANALYZE TABLE: it changes nothing, and tools for online schema changes show by it that a copy is whole."""

from __future__ import annotations

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.cursor import Cursor, ParseError
from historian.ddl.parsing.lexer import LexError, tokenize
from historian.names import TableName

__all__ = ["analyzed_name", "analyzed_table"]


def analyzed_name(table: TableName) -> TableName:
    """The name under which the catalog keeps that a table was analyzed.

    >>> str(analyzed_name(TableName("shop", "_t_new")))
    'shop.analyze(_t_new)'
    """
    return TableName(table.database, f"analyze({table.table})")


def analyzed_table(sql: str, context: StatementContext) -> TableName | None:
    """The first table of an ANALYZE TABLE; None: the statement is another one."""
    try:
        cursor = Cursor(tokenize(sql, context, limit=8), context)
        if not (cursor.accept("ANALYZE", "TABLE") or cursor.accept("ANALYZE", "TABLES")):
            return None
        return cursor.table_name()
    except (LexError, ParseError):
        return None
