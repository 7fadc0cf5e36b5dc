"""Statements on tables against a catalog: CREATE, ALTER, DROP, TRUNCATE."""

from __future__ import annotations

from historian.ddl.parsing.actions import ChangesRows, DropForeignKey, RenameTo
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.statements import AlterTable, CreateTable, DropTables, TruncateTable
from historian.ddl.resolving.alter import altered_table
from historian.ddl.resolving.create import copied_table, created_table
from historian.ddl.resolving.merge_tables import altered_merge_table, emptied_merge_table, made_merge_table
from historian.ddl.resolving.refused import Refused
from historian.ddl.resolving.resolution import (
    IRRELEVANT,
    NOTHING,
    Resolution,
    is_temporary,
    known_name,
    named,
    refused,
    tracked,
    unknown_reason,
)
from historian.ddl.resolving.table_edits import edits_between
from historian.names import TableName
from historian.schema.edits import CreateTable as CreateTableEdit
from historian.schema.edits import DropTable, Edit, ForgetTable
from historian.schema.edits import TruncateTable as TruncateTableEdit
from historian.schema.merge_tables import is_merge
from historian.schema.snapshots import NO_TABLES, SEQUENCE, Catalog, Snapshot

__all__ = ["alter_table", "create_table", "drop_tables", "truncate"]


def create_table(statement: CreateTable, catalog: Catalog, context: StatementContext) -> Resolution:
    """What CREATE TABLE does, with columns or LIKE another table."""
    table = known_name(statement.table, catalog, context)
    if not tracked((table,)):
        return IRRELEVANT
    old = catalog.tables.get(table)
    logs_what_did_nothing = context.flavor == "mysql" and statement.if_not_exists
    if logs_what_did_nothing and catalog.unknown.get(table) in NO_TABLES:
        return NOTHING
    if old is not None and statement.if_not_exists and not statement.or_replace:
        return NOTHING
    if old is not None and not statement.or_replace:
        return refused(table, "it is created while the history holds it already: a DROP is missing from the log")
    if logs_what_did_nothing and table in catalog.unknown:
        return refused(table, f"CREATE TABLE IF NOT EXISTS may have done nothing, and {unknown_reason(table, catalog)}")
    if statement.merged is not None:
        return made_merge_table(table, statement.merged, catalog, context)
    if statement.refused or statement.select:
        query = "its columns come from a query that the log does not spell out"
        return refused(table, statement.refused or query)
    edits: list[Edit] = [] if old is None else [DropTable(table=table, table_id=old.table_id)]
    if statement.like is not None and catalog.unknown.get(statement.like) == SEQUENCE:
        return Resolution(kind="ddl", edits=(*edits, ForgetTable(table=table, reason=SEQUENCE)))
    try:
        snapshot = _new_table(statement, catalog, context)
    except Refused as why:
        return refused(table, str(why))
    edits.append(CreateTableEdit(snapshot=snapshot))
    return Resolution(kind="ddl", edits=tuple(edits), conditional=(table,) if logs_what_did_nothing else ())


def _new_table(statement: CreateTable, catalog: Catalog, context: StatementContext) -> Snapshot:
    if statement.like is None:
        return created_table(statement, catalog, context)
    if is_temporary(statement.like, context):
        raise Refused(f"it is made like {statement.like}, which is a temporary table")
    like = known_name(statement.like, catalog, context)
    source = catalog.tables.get(like)
    if source is None:
        raise Refused(unknown_reason(like, catalog))
    return copied_table(statement.table, source, catalog)


def alter_table(statement: AlterTable, catalog: Catalog, context: StatementContext) -> Resolution:
    """What ALTER TABLE, CREATE INDEX and DROP INDEX do: to the schema, and to rows without row events."""
    table = known_name(statement.table, catalog, context)
    if not tracked((table,)):
        return IRRELEVANT
    others = [action.table for action in statement.actions if isinstance(action, RenameTo)]
    of_no_table = _renamed_no_table(table, others, catalog)
    of_rows = [action for action in statement.actions if isinstance(action, ChangesRows)]
    for action in of_rows:
        others.extend(named((*action.others, *filter(None, (action.creates, action.drops))), catalog, context))
    of_no_table = of_no_table or altered_merge_table(table, statement.actions, catalog, context)
    if of_no_table is not None:
        return of_no_table
    old = catalog.tables.get(table)
    is_plain = all(isinstance(action, DropForeignKey) for action in statement.actions)
    if not statement.actions or (old is None and (is_plain or _may_lack(statement, table, catalog))):
        return NOTHING
    if old is None:
        return refused(table, unknown_reason(table, catalog), *others)
    if of_rows:
        return _changed_rows(old, of_rows[0], catalog, context)
    try:
        new, moved = altered_table(old, statement, catalog, context)
    except Refused as why:
        return refused(table, str(why), *others)
    if new.name != table and new.name in catalog.tables:
        return refused(table, f"it is renamed to {new.name}, which the history holds already", *others)
    edits = edits_between(old, new, moved)
    if statement.ignore and _has_new_key(old, new):
        reason = "ALTER IGNORE with a new unique key takes rows away without row events"
        return Resolution(kind="rows", edits=edits, tables=(new.name,), reason=reason)
    filled = _filled(old, new, context, lax=statement.ignore or not context.strict)
    if filled:
        reason = f"NULL in {filled} becomes a value of the server's without row events"
        return Resolution(kind="rows", edits=edits, tables=(new.name,), reason=reason, filled=True)
    return Resolution(kind="ddl", edits=edits)


def _may_lack(statement: AlterTable, table: TableName, catalog: Catalog) -> bool:
    return statement.if_exists and table not in catalog.unknown


def _renamed_no_table(table: TableName, names: list[TableName], catalog: Catalog) -> Resolution | None:
    """What ALTER TABLE does to a sequence, which MariaDB renames like this; None of a table."""
    kind = catalog.unknown.get(table)
    if kind not in NO_TABLES:
        return None
    renamed = [(ForgetTable(table=table, reason=""), ForgetTable(table=new, reason=kind)) for new in names]
    return Resolution(kind="ddl", edits=tuple(edit for pair in renamed for edit in pair))


def _filled(old: Snapshot, new: Snapshot, context: StatementContext, *, lax: bool) -> str:
    """The first column that becomes NOT NULL where NULL in it is no error; "": none does.

    In a TIMESTAMP NULL becomes the present time in every session, unless MySQL changes the table in place, which it does not
    where a type changes. Columns of a new key are not among them: what they hold shows in the rows that the key finds.
    """
    pairs = [(held, column) for column in new.columns if (held := old.column_by_id(column.id)) is not None]
    copied = context.flavor == "mariadb" or any(held.type != column.type for held, column in pairs)
    for held, column in pairs:
        now = column.type.name == "timestamp" and copied
        if not held.nullable or column.nullable or not (lax or now):
            continue
        if column.id not in new.primary_key or new.primary_key == old.primary_key:
            return column.name
    return ""


def _has_new_key(old: Snapshot, new: Snapshot) -> bool:
    before, after = ({(key.columns, key.prefixes) for key in table.unique_keys} for table in (old, new))
    return new.primary_key not in ((), old.primary_key) or not after <= {(old.primary_key, ()), *before}


def _changed_rows(table: Snapshot, action: ChangesRows, catalog: Catalog, context: StatementContext) -> Resolution:
    """An action on partitions or tablespaces, which stands alone in its statement."""
    if action.truncates:
        return Resolution(kind="ddl", edits=(TruncateTableEdit(table=table.name, table_id=table.table_id),))
    edits: tuple[Edit, ...] = ()
    changed = [table.name, *named(action.others, catalog, context)]
    if action.creates is not None:
        edits = (CreateTableEdit(snapshot=copied_table(action.creates, table, catalog)),)
        changed.append(action.creates)
    if action.drops is not None:
        (dropped,) = named((action.drops,), catalog, context)
        gone = catalog.tables.get(dropped)
        edits = () if gone is None else (DropTable(table=dropped, table_id=gone.table_id),)
    reason = f"{action.reason} without row events"
    return Resolution(kind="rows", edits=edits, tables=tuple(dict.fromkeys(changed)), reason=reason)


def drop_tables(statement: DropTables, catalog: Catalog, context: StatementContext) -> Resolution:
    """What DROP TABLE does."""
    edits: list[Edit] = []
    unknown: list[TableName] = []
    for table in named(tracked(statement.tables), catalog, context):
        snapshot = catalog.tables.get(table)
        if snapshot is not None:
            edits.append(DropTable(table=table, table_id=snapshot.table_id))
        elif catalog.unknown.get(table) in NO_TABLES:
            continue
        elif is_merge(catalog.unknown.get(table)):
            edits.append(ForgetTable(table=table, reason=""))
        elif table in catalog.unknown or not (statement.if_exists or context.flavor == "mariadb"):
            unknown.append(table)  # MariaDB names those that were not there beside those that it dropped
    if not unknown:
        return Resolution(kind="ddl", edits=tuple(edits))
    reason = "; ".join(unknown_reason(table, catalog) for table in unknown)
    return Resolution(kind="not_understood", edits=tuple(edits), tables=tuple(unknown), reason=reason)


def truncate(statement: TruncateTable, catalog: Catalog, context: StatementContext) -> Resolution:
    """What TRUNCATE TABLE does."""
    table = known_name(statement.table, catalog, context)
    if not tracked((table,)):
        return IRRELEVANT
    snapshot = catalog.tables.get(table)
    if snapshot is None:
        emptied = emptied_merge_table(table, catalog)
        return emptied or refused(table, unknown_reason(table, catalog))
    return Resolution(kind="ddl", edits=(TruncateTableEdit(table=table, table_id=snapshot.table_id),))
