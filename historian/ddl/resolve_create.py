"""CREATE TABLE and the databases it inherits from, against a catalog."""

from __future__ import annotations

from dataclasses import replace

from historian.ddl.column_types import charset_clause
from historian.ddl.context import StatementContext
from historian.ddl.keys import added_keys, as_snapshot_keys, primary_columns
from historian.ddl.resolve_columns import Inherited, built_column, with_implicit_timestamps
from historian.ddl.statements import CharsetClause, CreateTable
from historian.schema import Catalog, Database, Snapshot, TableName

__all__ = [
    "Refused",
    "copied_table",
    "created_table",
    "database_defaults",
    "follows_inline_references",
    "made_database",
]


class Refused(Exception):
    """A statement does not fit the catalog, or does what is not followed; the message is a clause for people."""


def server_defaults(catalog: Catalog, context: StatementContext) -> Inherited:
    """Charset and collation of a database that is created without its own."""
    if context.charset:
        return context.charset, context.collation
    return catalog.charset, catalog.collation


def database_defaults(name: str, catalog: Catalog, context: StatementContext) -> Inherited:
    """Charset and collation of a table that is created without its own; the server's where the database is not known."""
    database = catalog.databases.get(name)
    if database is None:
        return server_defaults(catalog, context)
    return database.charset, database.collation


def made_database(
    name: str, clause: CharsetClause, old: Database | None, catalog: Catalog, context: StatementContext
) -> Database:
    """The database that CREATE or ALTER DATABASE makes; *old* where it was there."""
    inherited = server_defaults(catalog, context)
    if old is not None and clause.charset is None:
        inherited = (old.charset, old.collation)
    charset, collation = charset_clause(clause, *inherited, context)
    return Database(name=name, charset=charset, collation=collation)


def follows_inline_references(context: StatementContext) -> bool:
    """Whether REFERENCES in a column definition makes a foreign key: MySQL reads over it up to 8.4, MariaDB up to 10.4."""
    since = 100500 if context.flavor == "mariadb" else 90000
    return context.version == 0 or context.version >= since


def created_table(statement: CreateTable, catalog: Catalog, context: StatementContext) -> Snapshot:
    """The table that CREATE TABLE with columns makes, with ids from the catalog's counters."""
    inherited = database_defaults(statement.table.database, catalog, context)
    charset, collation = charset_clause(statement.charset, *inherited, context)
    primary = primary_columns(statement.keys) or ()
    in_primary = {name.lower() for name in primary}
    specs = with_implicit_timestamps(statement.columns, context)
    columns = tuple(
        built_column(spec, column_id, (charset, collation), context, in_primary_key=spec.name.lower() in in_primary)
        for column_id, spec in enumerate(specs, catalog.next_column_id)
    )
    ids = {column.name.lower(): column.id for column in columns}
    if len(ids) != len(columns):
        raise Refused("two columns have the same name")

    def id_of(name: str) -> int:
        if name.lower() not in ids:
            raise Refused(f"a key is over {name!r}, which is no column of the table")
        return ids[name.lower()]

    keys = added_keys((), statement.keys, id_of, inline_references=follows_inline_references(context))
    unique, other = as_snapshot_keys(keys)
    return Snapshot(
        table_id=catalog.next_table_id,
        name=statement.table,
        columns=columns,
        primary_key=tuple(id_of(name) for name in primary),
        unique_keys=unique,
        other_keys=other,
        charset=charset,
        collation=collation,
    )


def copied_table(name: TableName, source: Snapshot, catalog: Catalog) -> Snapshot:
    """The table that CREATE TABLE … LIKE makes: the same columns and keys under new ids."""
    first = catalog.next_column_id
    ids = {column.id: first + place for place, column in enumerate(source.columns)}
    columns = tuple(replace(column, id=ids[column.id], initial=None, initial_known=True) for column in source.columns)
    return replace(
        source,
        table_id=catalog.next_table_id,
        name=name,
        columns=columns,
        primary_key=tuple(ids[column] for column in source.primary_key),
        unique_keys=tuple(replace(key, columns=tuple(ids[c] for c in key.columns)) for key in source.unique_keys),
        other_keys=tuple(replace(key, columns=tuple(ids[c] for c in key.columns)) for key in source.other_keys),
    )
