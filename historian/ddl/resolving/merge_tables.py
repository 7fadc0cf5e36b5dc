"""Statements that make MERGE tables, change which tables they stand for, or empty those."""

from __future__ import annotations

from collections.abc import Sequence

from historian.ddl.parsing.actions import Action, MergedTables, RenameTo, tells_merge_table
from historian.ddl.parsing.context import StatementContext
from historian.ddl.resolving.resolution import NOTHING, Resolution, named
from historian.names import TableName
from historian.schema.edits import ForgetTable
from historian.schema.merge_tables import is_merge, merge_reason, merged_tables
from historian.schema.snapshots import Catalog

__all__ = ["altered_merge_table", "emptied_merge_table", "made_merge_table"]


def made_merge_table(
    table: TableName, merged: tuple[TableName, ...], catalog: Catalog, context: StatementContext
) -> Resolution:
    """What a statement does that makes *table* a MERGE table: it stops, as it has no rows of its own."""
    reason = merge_reason(named(merged, catalog, context))
    return Resolution(
        kind="not_understood", edits=(ForgetTable(table=table, reason=reason),), tables=(table,), reason=reason
    )


def altered_merge_table(
    table: TableName, actions: Sequence[Action], catalog: Catalog, context: StatementContext
) -> Resolution | None:
    """What ALTER TABLE does to a MERGE table: it gets another name, or stands for other tables. None: *table* is none."""
    merged = [name for action in actions if isinstance(action, MergedTables) for name in action.tables]
    reason = catalog.unknown.get(table, "")
    if not is_merge(reason):
        makes_one = any(map(tells_merge_table, actions))
        return made_merge_table(table, tuple(merged), catalog, context) if makes_one else None
    new = next((action.table for action in actions if isinstance(action, RenameTo)), table)
    (name,) = named((new,), catalog, context)
    if any(isinstance(action, MergedTables) for action in actions):
        reason = merge_reason(named(tuple(merged), catalog, context))
    if (name, reason) == (table, catalog.unknown[table]):
        return NOTHING
    return Resolution(kind="ddl", edits=(ForgetTable(table=table, reason=""), ForgetTable(table=name, reason=reason)))


def emptied_merge_table(table: TableName, catalog: Catalog) -> Resolution | None:
    """What TRUNCATE does to a MERGE table: those that it stands for lose their rows. None: *table* is none."""
    reason = catalog.unknown.get(table)
    if not is_merge(reason):
        return None
    return Resolution(kind="rows", tables=merged_tables(reason), reason=f"TRUNCATE of {table}, and {reason}")
