"""What became of a statement, and how names in statements are those of a catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from historian.ddl.parsing.context import StatementContext
from historian.names import TableName
from historian.schema.edits import Edit, ForgetTable, RenameTable
from historian.schema.snapshots import Catalog

__all__ = [
    "IRRELEVANT",
    "NOTHING",
    "SYSTEM_DATABASES",
    "Resolution",
    "is_temporary",
    "known_name",
    "named",
    "refused",
    "tracked",
    "unknown_reason",
]

SYSTEM_DATABASES = frozenset(("mysql", "information_schema", "performance_schema", "sys", "ndbinfo"))
"""Databases whose tables are never tracked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a statement does to a catalog.

    Attributes:
        edits: resolved, in order; ids come from the catalog's counters. Apply them all, whatever ``kind`` says.
        kind: "irrelevant": cannot change a table. "ddl": understood. "dml": changes rows without row events. "rows": a
            DDL that is understood and does so to ``tables``, once its edits are applied. "not_understood": the schema of
            ``tables`` is not known behind it; other tables have their edits.
        tables: of "dml", "rows" and "not_understood", those that the statement touches, as far as can be told.
        conditional: tables in ``edits`` whose CREATE says IF NOT EXISTS and is logged whether it did anything or not. It
            proves that the table begins here only where the catalog is known to hold every table.
        reason: of "dml", "rows" and "not_understood", a clause for people.
        filled: of "rows", whether all that may have happened is that NULLs became values.
    """

    edits: tuple[Edit, ...] = ()
    kind: Literal["irrelevant", "ddl", "dml", "rows", "not_understood"]
    tables: tuple[TableName, ...] = ()
    conditional: tuple[TableName, ...] = ()
    reason: str = ""
    filled: bool = False

    @property
    def unknown_behind(self) -> tuple[TableName, ...]:
        """Those of ``tables`` under whose names there may be one that is not known: no edit gives the name away, or to a table that is."""
        settled: dict[TableName, bool] = {}
        for edit in self.edits:
            if isinstance(edit, RenameTable):
                settled[edit.new] = True
            elif isinstance(edit, ForgetTable):
                settled[edit.table] = not edit.reason
        return tuple(table for table in self.tables if not settled.get(table, False))


IRRELEVANT = Resolution(kind="irrelevant")
NOTHING = Resolution(kind="ddl")


def is_temporary(table: TableName, context: StatementContext) -> bool:
    """Whether the name means a temporary table here: each statement on one is marked."""
    return context.uses_temporary and table in context.temporary


def tracked(tables: tuple[TableName, ...]) -> tuple[TableName, ...]:
    """Those of the tables that are followed: tables of the server itself are not."""
    return tuple(table for table in tables if table.database.lower() not in SYSTEM_DATABASES)


def named(tables: tuple[TableName, ...], catalog: Catalog, context: StatementContext) -> tuple[TableName, ...]:
    """The names as the catalog has them."""
    return tuple(known_name(table, catalog, context) for table in tables)


def known_name(table: TableName, catalog: Catalog, context: StatementContext) -> TableName:
    """The name as the catalog has it, where the server compares names without regard to case but keeps it."""
    if context.lower_case_table_names != 2 or table in catalog.tables:
        return table
    wanted = (table.database.lower(), table.table.lower())
    found = (name for name in catalog.tables if (name.database.lower(), name.table.lower()) == wanted)
    return next(found, table)


def refused(table: TableName, reason: str, *others: TableName) -> Resolution:
    """A statement that is not followed, by its *reason*: the schema of the tables is not known behind it."""
    return Resolution(kind="not_understood", tables=tuple(dict.fromkeys((table, *others))), reason=reason)


def unknown_reason(table: TableName, catalog: Catalog) -> str:
    """A clause for people on a table that the catalog does not know."""
    reason = catalog.unknown.get(table)
    return f"the schema of {table} is not known" + (f": {reason}" if reason else "")
