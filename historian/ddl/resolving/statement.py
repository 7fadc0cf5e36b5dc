"""A statement against a catalog: the edits it makes, or why it cannot be followed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.cursor import ParseError
from historian.ddl.parsing.lexer import LexError, tokenize
from historian.ddl.parsing.parser import parse
from historian.ddl.parsing.statements import (
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    CreateSequence,
    CreateTable,
    DropDatabase,
    DropTables,
    NoTable,
    RenameTables,
    Statement,
    TruncateTable,
)
from historian.ddl.parsing.touched_tables import ddl_tables, dml_tables
from historian.ddl.parsing.triage import FIRST_TOKENS, triage
from historian.ddl.parsing.wrappers import unwrapped, without_comments
from historian.ddl.resolving.databases import (
    alter_database,
    create_database,
    create_sequence,
    drop_database,
    no_table,
)
from historian.ddl.resolving.renames import rename_tables
from historian.ddl.resolving.resolution import (
    IRRELEVANT,
    Resolution,
    is_temporary,
    named,
    tracked,
)
from historian.ddl.resolving.tables import alter_table, create_table, drop_tables, truncate
from historian.ddl.resolving.unnamed_tables import changes_unnamed
from historian.names import TableName
from historian.schema.applying import apply_all
from historian.schema.edits import TruncateTable as TruncateTableEdit
from historian.schema.merge_tables import merged_tables
from historian.schema.snapshots import Catalog

__all__ = ["resolve"]

_DML_TOKENS = 2000
_REFERENCED = (1217, 1451)
"""Errors of a DROP that leaves those of its tables that a foreign key refers to, and does not say which."""
_GLANCE_TOKENS = 2
"""Enough for most statements."""
_EMPTIED = re.compile(r"DELETE FROM `(?:[^`]|``)+`\.`(?:[^`]|``)+`")
"""What a server logs of a MEMORY table that its restart has emptied."""


def resolve(sql: str, context: StatementContext, catalog: Catalog) -> Resolution:
    """What the statement does to *catalog*. Pure; never raises, whatever the text.

    A table that the catalog does not know, or knows as unknown, gets no edits and is in ``tables``.
    """
    try:
        kind, verb = triage(tokenize(sql, context, limit=_GLANCE_TOKENS))
        if kind == "wrapper":
            return _wrapped(sql, context, catalog)
        if kind == "unknown":
            kind, verb = triage(tokenize(sql, context, limit=FIRST_TOKENS))
        if kind == "irrelevant":
            return IRRELEVANT
        if kind == "dml":
            return _dml(sql, context, catalog)
        if kind == "unknown":
            return _unknown(sql, context, catalog)
        return _ddl(without_comments(sql), context, catalog, verb)
    except Exception as error:  # noqa: BLE001 one strange statement must stop its table, never the pipeline
        tables = _said(sql, context, catalog)
        return Resolution(kind="not_understood", tables=tables, reason=f"{type(error).__name__}: {error}")


def _said(sql: str, context: StatementContext, catalog: Catalog) -> tuple[TableName, ...]:
    """Known tables that a statement may be on: those whose names stand in it, however it is written."""
    try:
        words = {value.lower() for value in tokenize(sql, context, limit=_DML_TOKENS).values}
    except LexError:
        words = {word.lower() for word in re.findall(r"[^\s`\"'.,;()]+", sql)}
    return tuple(sorted(name for name in catalog.tables if name.table.lower() in words))


def _wrapped(sql: str, context: StatementContext, catalog: Catalog) -> Resolution:
    inner = unwrapped(sql, context)
    if inner is None:
        return IRRELEVANT
    found = resolve(inner.sql, context, catalog)
    if not inner.reason or found.kind == "irrelevant":
        return found
    before, after = catalog.tables, apply_all(found.edits, catalog).tables
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    changed |= {edit.table for edit in found.edits if isinstance(edit, TruncateTableEdit)}
    return Resolution(kind="not_understood", tables=tuple(sorted({*changed, *found.tables})), reason=inner.reason)


def _unknown(sql: str, context: StatementContext, catalog: Catalog) -> Resolution:
    """A statement that begins like none that is known: nobody can say that it leaves the tables alone that it names."""
    tables = _said(sql, context, catalog)
    return Resolution(kind="not_understood", tables=tables, reason=f"an unknown statement: {sql[:80]!r}")


def _dml(sql: str, context: StatementContext, catalog: Catalog) -> Resolution:
    tokens = tokenize(sql, context, limit=_DML_TOKENS)
    touched = named(dml_tables(tokens, context), catalog, context)
    real = tuple(table for table in touched if not is_temporary(table, context))
    reason = f"rows changed without row events by {sql[:80]!r}"
    if changes_unnamed(tokens, touched, catalog, context):
        reason += ", through a view, a trigger or a function: which tables it changed is not in the log"
        return Resolution(
            kind="dml", tables=tuple(dict.fromkeys((*tracked(real), *sorted(catalog.tables)))), reason=reason
        )
    if touched and not real:
        return IRRELEVANT
    tables = tracked(real)
    emptied = catalog.tables.get(tables[0]) if len(tables) == 1 and _EMPTIED.fullmatch(sql) else None
    if emptied is not None:
        return Resolution(kind="ddl", edits=(TruncateTableEdit(table=emptied.name, table_id=emptied.table_id),))
    merged = (name for table in tables for name in merged_tables(catalog.unknown.get(table)))
    tables = tuple(dict.fromkeys((*tables, *named(tuple(merged), catalog, context))))
    return Resolution(kind="dml", tables=tables, reason=reason)


def _ddl(sql: str, context: StatementContext, catalog: Catalog, verb: tuple[str, str]) -> Resolution:
    try:
        statement = parse(tokenize(sql, context), context, verb)
    except (ParseError, LexError) as error:
        first = tokenize(sql, context, limit=FIRST_TOKENS)
        tables = named(ddl_tables(first, context, verb), catalog, context)
        if tables and not tracked(tables):
            return IRRELEVANT
        return Resolution(kind="not_understood", tables=tables, reason=f"cannot be parsed: {error}")
    if isinstance(statement, (AlterTable, TruncateTable)) and is_temporary(statement.table, context):
        return IRRELEVANT
    if context.error_code:
        return _failed(statement, catalog, context)
    return _RESOLVE[type(statement)](statement, catalog, context)


def _failed(statement: Statement, catalog: Catalog, context: StatementContext) -> Resolution:
    """A statement that failed, and is logged for what it did before.

    DROP TABLE drops the tables that are there; MariaDB's CREATE OR REPLACE has dropped the old table.
    """
    if isinstance(statement, DropTables) and context.error_code not in _REFERENCED:
        return drop_tables(replace(statement, if_exists=True), catalog, context)
    if isinstance(statement, CreateTable) and statement.or_replace:
        return drop_tables(DropTables(tables=(statement.table,), if_exists=True), catalog, context)
    tables = named(_tables_of(statement), catalog, context)
    return Resolution(
        kind="not_understood", tables=tables, reason=f"it failed with error {context.error_code} half-way"
    )


def _tables_of(statement: Statement) -> tuple[TableName, ...]:
    if isinstance(statement, RenameTables):
        return tuple(name for pair in statement.pairs for name in pair)
    if isinstance(statement, (CreateTable, AlterTable, TruncateTable)):
        return (statement.table,)
    return statement.tables if isinstance(statement, DropTables) else ()


_RESOLVE: dict[type[Statement], Callable[[Any, Catalog, StatementContext], Resolution]] = {
    CreateTable: create_table,
    AlterTable: alter_table,
    DropTables: drop_tables,
    RenameTables: rename_tables,
    TruncateTable: truncate,
    CreateSequence: create_sequence,
    NoTable: no_table,
    CreateDatabase: create_database,
    AlterDatabase: alter_database,
    DropDatabase: drop_database,
}
