"""CREATE TABLE and the databases it inherits from, against a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.definitions import CharsetClause
from historian.ddl.parsing.statements import CreateTable
from historian.ddl.resolving.columns import built_column, completed_spec, with_promoted_timestamp
from historian.ddl.resolving.foreign_keys import added_foreign_keys
from historian.ddl.resolving.keys import added_keys, as_snapshot_keys, primary_columns
from historian.ddl.resolving.refused import Refused
from historian.ddl.types.column_types import Charset, charset_clause, resolves_default_charset
from historian.names import TableName
from historian.schema.generated_columns import under_ids, with_sources
from historian.schema.snapshots import Catalog, Column, Database, Snapshot, UniqueKey
from historian.schema.system_versioning import keys_with_row_end

__all__ = [
    "copied_table",
    "created_table",
    "database_defaults",
    "follows_inline_references",
    "made_database",
]


def _server_defaults(catalog: Catalog, context: StatementContext) -> Charset:
    """Charset and collation of a database that is created without its own."""
    if context.charset:
        return context.charset, context.collation
    return catalog.charset, catalog.collation


def database_defaults(name: str, catalog: Catalog, context: StatementContext) -> Charset:
    """Charset and collation of a table that is created without its own; the server's where the database is not known."""
    database = catalog.databases.get(name)
    if database is None:
        return _server_defaults(catalog, context)
    return database.charset, database.collation


def made_database(
    name: str, clause: CharsetClause, old: Database | None, catalog: Catalog, context: StatementContext
) -> Database:
    """The database that CREATE or ALTER DATABASE makes; *old* where it was there."""
    server = _server_defaults(catalog, context)
    inherited = server if old is None else (old.charset, old.collation)
    if old is not None and context.flavor == "mariadb" and not resolves_default_charset(context):
        server = inherited  # ALTER DATABASE ... CHARACTER SET DEFAULT changes nothing
    charset, collation = charset_clause(clause, inherited, context, server)
    return Database(name=name, charset=charset, collation=collation)


def follows_inline_references(context: StatementContext) -> bool:
    """Whether REFERENCES in a column definition makes a foreign key: MySQL reads over it up to 8.4, MariaDB up to 10.4."""
    since = 100500 if context.flavor == "mariadb" else 90000
    return context.version == 0 or context.version >= since


def created_table(statement: CreateTable, catalog: Catalog, context: StatementContext) -> Snapshot:
    """The table that CREATE TABLE with columns makes, with ids from the catalog's counters."""
    inherited = database_defaults(statement.table.database, catalog, context)
    charset, collation = charset_clause(statement.charset, inherited, context, inherited)
    primary = primary_columns(statement.keys) or ()
    in_primary = {name.lower() for name in primary}
    specs = [completed_spec(spec, context) for spec in statement.columns]
    built = [
        built_column(spec, column_id, (charset, collation), context, in_primary_key=spec.name.lower() in in_primary)
        for column_id, spec in enumerate(specs, catalog.next_column_id)
    ]
    columns = with_sources(with_promoted_timestamp(built, {column.id for column in built}, (), context))
    named = {column.name.lower(): column for column in columns}
    if len(named) != len(columns):
        raise Refused("two columns have the same name")

    def column_of(name: str) -> Column:
        if name.lower() not in named:
            raise Refused(f"a key is over {name!r}, which is no column of the table")
        return named[name.lower()]

    primary_key = tuple(column_of(name).id for name in primary)
    inline = follows_inline_references(context)
    keys = added_keys((), statement.keys, column_of, primary=primary_key, inline_references=inline)
    unique, other = as_snapshot_keys(keys, columns)
    primary_key, unique = keys_with_row_end(columns, primary_key, unique)
    return Snapshot(
        table_id=catalog.next_table_id,
        name=statement.table,
        columns=columns,
        primary_key=primary_key,
        unique_keys=unique,
        other_keys=other,
        charset=charset,
        collation=collation,
        system_versioned=statement.system_versioned,
        foreign_keys=added_foreign_keys(statement.table, statement.keys, column_of, inline_references=inline),
    )


def copied_table(name: TableName, source: Snapshot, catalog: Catalog) -> Snapshot:
    """The table that CREATE TABLE … LIKE makes: the same columns and keys under new ids."""
    first = catalog.next_column_id
    ids = {column.id: first + place for place, column in enumerate(source.columns)}
    columns = tuple(replace(under_ids(column, ids), initial=None, initial_known=True) for column in source.columns)
    return replace(
        source,
        table_id=catalog.next_table_id,
        name=name,
        columns=columns,
        primary_key=tuple(ids[column] for column in source.primary_key),
        unique_keys=tuple(_copied_key(key, ids) for key in source.unique_keys),
        other_keys=tuple(_copied_key(key, ids) for key in source.other_keys),
        foreign_keys=(),
    )


def _copied_key(key: UniqueKey, ids: Mapping[int, int]) -> UniqueKey:
    return replace(key, columns=tuple(ids.get(column, 0) for column in key.columns))
