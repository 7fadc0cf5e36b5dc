"""Statements on databases, and on what is no table but takes a name of one, against a catalog."""

from __future__ import annotations

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.statements import AlterDatabase, CreateDatabase, CreateSequence, DropDatabase, NoTable
from historian.ddl.resolving.create import made_database
from historian.ddl.resolving.resolution import NOTHING, Resolution, named, tracked
from historian.ddl.resolving.unnamed_tables import function_name, triggers_name
from historian.schema.edits import DropDatabase as DropDatabaseEdit
from historian.schema.edits import DropTable, Edit, ForgetTable, SetDatabase
from historian.schema.merge_tables import is_merge
from historian.schema.snapshots import FUNCTION, NO_TABLES, SEQUENCE, TRIGGER, Catalog

__all__ = ["alter_database", "create_database", "create_sequence", "drop_database", "no_table"]

PT_OSC_TRIGGER = "pt_osc_"


def create_sequence(statement: CreateSequence, catalog: Catalog, _: StatementContext) -> Resolution:
    """Its row events look like those of a table; the catalog remembers that they are none."""
    table = catalog.tables.get(statement.name)
    if catalog.unknown.get(statement.name) == SEQUENCE or (table is not None and not statement.or_replace):
        return NOTHING
    gone = () if table is None else (DropTable(table=table.name, table_id=table.table_id),)
    return Resolution(kind="ddl", edits=(*gone, ForgetTable(table=statement.name, reason=SEQUENCE)))


def no_table(statement: NoTable, catalog: Catalog, context: StatementContext) -> Resolution:
    """The catalog remembers names that no table can have, triggers by which a tool shows itself, and what may change rows unnamed."""
    edits: list[Edit] = []
    for each in named(tracked(statement.names), catalog, context):
        name = each
        if statement.reason == FUNCTION:
            name = function_name(each)
        elif statement.reason == TRIGGER and not each.table.startswith(PT_OSC_TRIGGER):
            name = triggers_name(each.database)
        held = catalog.unknown.get(name)
        if name in catalog.tables or held not in (None, *NO_TABLES) or held == (statement.reason or None):
            continue
        edits.append(ForgetTable(table=name, reason=statement.reason))
    return Resolution(kind="ddl", edits=tuple(edits))


def create_database(statement: CreateDatabase, catalog: Catalog, context: StatementContext) -> Resolution:
    """What CREATE DATABASE does; with OR REPLACE the tables of one that was there go."""
    old = catalog.databases.get(statement.name)
    if old is not None and statement.if_not_exists:
        return NOTHING
    edits: list[Edit] = []
    if statement.or_replace:
        edits += _emptied(statement.name, catalog)
    database = made_database(statement.name, statement.charset, None, catalog, context)
    edits.append(SetDatabase(database=database))
    return Resolution(kind="ddl", edits=tuple(edits))


def alter_database(statement: AlterDatabase, catalog: Catalog, context: StatementContext) -> Resolution:
    """What ALTER DATABASE does: other defaults for tables to come."""
    old = catalog.databases.get(statement.name)
    clause = statement.charset
    if clause.charset is None and clause.collation is None:
        return NOTHING
    database = made_database(statement.name, clause, old, catalog, context)
    return NOTHING if database == old else Resolution(kind="ddl", edits=(SetDatabase(database=database),))


def drop_database(statement: DropDatabase, catalog: Catalog, _: StatementContext) -> Resolution:
    """What DROP DATABASE does: its tables go before it."""
    edits = _emptied(statement.name, catalog)
    edits += [
        ForgetTable(table=name, reason="")
        for name, reason in sorted(catalog.unknown.items())
        if name.database == statement.name and (reason in NO_TABLES or is_merge(reason))
    ]
    if statement.name in catalog.databases:
        edits.append(DropDatabaseEdit(name=statement.name))
    return Resolution(kind="ddl", edits=tuple(edits))


def _emptied(database: str, catalog: Catalog) -> list[Edit]:
    tables = sorted(table for table in catalog.tables if table.database == database)
    return [DropTable(table=table, table_id=catalog.tables[table].table_id) for table in tables]
