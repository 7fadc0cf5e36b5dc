"""Which tables a statement is on, as far as its first words tell: for statements that are not parsed, or cannot be."""

from __future__ import annotations

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.cursor import Cursor, ParseError
from historian.ddl.parsing.lexer import END, Tokens
from historian.names import TableName

__all__ = ["ddl_tables", "dml_tables"]

_DDL_WORDS = frozenset(("TABLE", "TABLES", "IF", "NOT", "EXISTS"))
_DML_WORDS = frozenset(
    (
        *("DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO", "LOW_PRIORITY", "QUICK", "ONLY"),
        *("CONCURRENT", "LOCAL", "DATA", "XML", "INFILE", "URL"),
    )
)
_ENDS = frozenset(("SET", "WHERE", "ORDER", "LIMIT", "USING", "RETURNING", "ON", END, ";"))
_JOINS = frozenset(("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "OUTER", "NATURAL", "STRAIGHT_JOIN"))


def ddl_tables(tokens: Tokens, context: StatementContext, verb: tuple[str, str]) -> tuple[TableName, ...]:
    """Tables that a DDL statement of that verb names at its beginning, or all of a RENAME or DROP."""
    cursor = Cursor(tokens, context)
    try:
        if verb[1] == "INDEX":
            while cursor.key not in ("ON", END):
                cursor.at += 1
            cursor.expect("ON")
            return (cursor.table_name(),)
        if verb[1] != "TABLE":
            return ()
        if not _forward_to(cursor, "TABLE", "TABLES") and verb[0] != "TRUNCATE":
            return ()
    except ParseError:
        return ()
    found: list[TableName] = []
    try:
        while cursor.accept_any(_DDL_WORDS):
            pass
        found.append(cursor.table_name())
        while verb[0] in ("RENAME", "DROP"):
            if not cursor.accept(",") and not cursor.accept("TO"):
                break
            found.append(cursor.table_name())
    except ParseError:
        pass
    return tuple(dict.fromkeys(found))


def _forward_to(cursor: Cursor, *words: str) -> bool:
    start = cursor.at
    while cursor.key != END:
        if cursor.key in words:
            return True
        cursor.at += 1
    cursor.at = start + 1
    return False


def dml_tables(tokens: Tokens, context: StatementContext) -> tuple[TableName, ...]:
    """Tables that INSERT, REPLACE, UPDATE, DELETE or LOAD may change; with several joined, all of them."""
    cursor = Cursor(tokens, context)
    verb = cursor.key
    found: list[TableName] = []
    try:
        if verb == "WITH" and not _behind_common_tables(cursor):
            return ()
        verb = cursor.key
        cursor.at += 1
        if verb == "LOAD":
            if _forward_to(cursor, "TABLE"):
                cursor.at += 1
                found.append(cursor.table_name())
        elif verb in ("INSERT", "REPLACE"):
            while cursor.accept_any(_DML_WORDS):
                pass
            found.append(cursor.table_name())
        elif verb == "UPDATE":
            _references(cursor, found)
        elif verb == "DELETE":
            if _forward_to(cursor, "FROM"):
                cursor.at += 1
            _references(cursor, found)
            if cursor.accept("USING"):
                found.clear()  # the names before are aliases of those behind
                _references(cursor, found)
    except ParseError:
        pass
    return tuple(dict.fromkeys(found))


def _behind_common_tables(cursor: Cursor) -> bool:
    while cursor.key not in ("UPDATE", "DELETE", "INSERT", "REPLACE", END):
        if cursor.key == "(":
            cursor.skip_parentheses()
        else:
            cursor.at += 1
    return cursor.key != END


def _references(cursor: Cursor, found: list[TableName]) -> None:
    """Table references up to SET, WHERE, …: each name at the beginning, behind a comma or a JOIN."""
    expects_table = True
    while True:
        if cursor.key in _ENDS and cursor.key != "ON":
            return
        if cursor.key == "(":
            if expects_table and cursor.following() not in ("SELECT", "WITH", "VALUES"):
                cursor.at += 1
            else:
                cursor.skip_parentheses()
                expects_table = False
            continue
        if cursor.accept(",") or cursor.accept_any(_JOINS):
            expects_table = True
        elif expects_table and cursor.accept_any(_DML_WORDS):
            continue
        elif expects_table and cursor.is_name():
            found.append(cursor.table_name())
            if cursor.accept(".", "*"):
                pass
            expects_table = False
        else:
            cursor.at += 1
