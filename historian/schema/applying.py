"""Applies edits to a catalog: a pure function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatch
from typing import TypeVar

from historian.errors import EditConflict
from historian.names import TableName
from historian.schema.edits import (
    AddColumn,
    AddUniqueKey,
    ChangeAttributes,
    ChangeType,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropTable,
    DropUniqueKey,
    Edit,
    ForgetTable,
    MoveColumn,
    RenameColumn,
    RenameTable,
    SetDatabase,
    SetForeignKeys,
    SetOtherKeys,
    SetPrimaryKey,
    SetSystemVersioning,
    SetTableCharset,
    TruncateTable,
)
from historian.schema.gaps import ResumeTable, SkipLog
from historian.schema.snapshots import Catalog, Column, Snapshot, UniqueKey
from historian.schema.type_compatibility import retyped

__all__ = ["apply", "apply_all"]

V = TypeVar("V")


def apply_all(edits: tuple[Edit, ...], catalog: Catalog) -> Catalog:
    """The catalog after *edits*, in order. Raises :class:`EditConflict` where one does not fit."""
    for edit in edits:
        catalog = apply(edit, catalog)
    return catalog


@singledispatch
def apply(edit: object, catalog: Catalog) -> Catalog:  # noqa: ARG001 the dispatch decides
    """The catalog after *edit*; pure. Raises :class:`EditConflict` where it does not fit."""
    raise TypeError(f"not an edit: {type(edit).__name__}")


@apply.register
def _(edit: SetDatabase, catalog: Catalog) -> Catalog:
    return replace(catalog, databases={**catalog.databases, edit.database.name: edit.database})


@apply.register
def _(edit: DropDatabase, catalog: Catalog) -> Catalog:
    return replace(catalog, databases={k: v for k, v in catalog.databases.items() if k != edit.name})


@apply.register
def _(edit: CreateTable, catalog: Catalog) -> Catalog:
    snapshot = edit.snapshot
    if snapshot.name in catalog.tables:
        raise EditConflict("CREATE of a table that exists", where=str(snapshot.name))
    highest = max((column.id for column in snapshot.columns), default=0)
    return replace(
        catalog,
        tables={**catalog.tables, snapshot.name: snapshot},
        unknown=_without(catalog.unknown, snapshot.name),
        next_table_id=max(catalog.next_table_id, snapshot.table_id + 1),
        next_column_id=max(catalog.next_column_id, highest + 1),
    )


@apply.register
def _(edit: DropTable, catalog: Catalog) -> Catalog:
    _of_id(catalog, edit.table, edit.table_id, "DROP")
    return replace(catalog, tables=_without(catalog.tables, edit.table))


@apply.register
def _(edit: TruncateTable, catalog: Catalog) -> Catalog:
    _of_id(catalog, edit.table, edit.table_id, "TRUNCATE")
    return catalog


@apply.register
def _(edit: RenameTable, catalog: Catalog) -> Catalog:
    snapshot = _of_id(catalog, edit.table, edit.table_id, "RENAME")
    if edit.new in catalog.tables:
        raise EditConflict("RENAME to a name that is taken", where=f"{edit.table} to {edit.new}")
    tables = dict(_without(catalog.tables, edit.table))
    tables[edit.new] = replace(snapshot, name=edit.new)
    return replace(catalog, tables=tables, unknown=_without(catalog.unknown, edit.new))


@apply.register
def _(edit: ForgetTable, catalog: Catalog) -> Catalog:
    return replace(
        catalog,
        tables=_without(catalog.tables, edit.table),
        unknown={**catalog.unknown, edit.table: edit.reason} if edit.reason else _without(catalog.unknown, edit.table),
    )


@apply.register
def _(edit: ResumeTable, catalog: Catalog) -> Catalog:
    snapshot = edit.snapshot
    held = catalog.tables.get(snapshot.name)
    if held is not None and held.table_id != snapshot.table_id:
        raise EditConflict(
            "a table is resumed under a name that is taken", where=str(snapshot.name), found=f"table id {held.table_id}"
        )
    others = {name: table for name, table in catalog.tables.items() if table.table_id != snapshot.table_id}
    return replace(
        catalog,
        tables={**others, snapshot.name: snapshot},
        unknown={name: why for name, why in catalog.unknown.items() if name not in (edit.table, snapshot.name)},
        next_column_id=max(catalog.next_column_id, *(column.id + 1 for column in snapshot.columns)),
    )


@apply.register
def _(edit: SkipLog, catalog: Catalog) -> Catalog:  # noqa: ARG001 the catalog after it is what other edits say
    return catalog


@apply.register
def _(edit: AddColumn, catalog: Catalog) -> Catalog:
    snapshot = _of(catalog, edit.table, edit)
    if snapshot.column(edit.column.name) is not None:
        raise EditConflict("ADD of a column that exists", where=f"{edit.table}.{edit.column.name}")
    changed = replace(snapshot, columns=_insert(snapshot, snapshot.columns, edit.column, edit.after))
    catalog = _put(catalog, changed)
    return replace(catalog, next_column_id=max(catalog.next_column_id, edit.column.id + 1))


@apply.register
def _(edit: DropColumn, catalog: Catalog) -> Catalog:
    snapshot = _of(catalog, edit.table, edit)
    _column(snapshot, edit.column_id, edit.name)
    gone = edit.column_id
    return _put(
        catalog,
        replace(
            snapshot,
            columns=tuple(column for column in snapshot.columns if column.id != gone),
            primary_key=tuple(c for c in snapshot.primary_key if c != gone),
            unique_keys=_keys_without(snapshot.unique_keys, gone),
            other_keys=_keys_without(snapshot.other_keys, gone),
        ),
    )


@apply.register
def _(edit: RenameColumn, catalog: Catalog) -> Catalog:
    snapshot = _of(catalog, edit.table, edit)
    column = _column(snapshot, edit.column_id, edit.old)
    return _put(catalog, _with_column(snapshot, replace(column, name=edit.new)))


@apply.register
def _(edit: ChangeType, catalog: Catalog) -> Catalog:
    snapshot = _of(catalog, edit.table, edit)
    column = _column(snapshot, edit.column_id, str(edit.new))
    if column.type != edit.old:
        raise EditConflict(
            "change of a type that the column does not have",
            where=f"{edit.table}.{column.name}",
            expected=edit.old,
            found=column.type,
        )
    return _put(catalog, _with_column(snapshot, retyped(column, edit.new)))


@apply.register
def _(edit: ChangeAttributes, catalog: Catalog) -> Catalog:
    snapshot = _of(catalog, edit.table, edit)
    _column(snapshot, edit.column.id, edit.column.name)
    return _put(catalog, _with_column(snapshot, edit.column))


@apply.register
def _(edit: MoveColumn, catalog: Catalog) -> Catalog:
    snapshot = _of(catalog, edit.table, edit)
    column = _column(snapshot, edit.column_id, f"id {edit.column_id}")
    others = tuple(c for c in snapshot.columns if c.id != edit.column_id)
    return _put(catalog, replace(snapshot, columns=_insert(snapshot, others, column, edit.after)))


@apply.register
def _(edit: SetPrimaryKey, catalog: Catalog) -> Catalog:
    snapshot = _of(catalog, edit.table, edit)
    for column_id in edit.columns:
        _column(snapshot, column_id, f"id {column_id}")
    return _put(catalog, replace(snapshot, primary_key=edit.columns))


@apply.register
def _(edit: AddUniqueKey, catalog: Catalog) -> Catalog:
    snapshot = _of(catalog, edit.table, edit)
    return _put(catalog, replace(snapshot, unique_keys=(*snapshot.unique_keys, edit.key)))


@apply.register
def _(edit: DropUniqueKey, catalog: Catalog) -> Catalog:
    snapshot = _of(catalog, edit.table, edit)
    kept = tuple(key for key in snapshot.unique_keys if key.name != edit.name)
    return _put(catalog, replace(snapshot, unique_keys=kept))


@apply.register
def _(edit: SetOtherKeys, catalog: Catalog) -> Catalog:
    return _put(catalog, replace(_of(catalog, edit.table, edit), other_keys=edit.keys))


@apply.register
def _(edit: SetTableCharset, catalog: Catalog) -> Catalog:
    snapshot = _of(catalog, edit.table, edit)
    return _put(catalog, replace(snapshot, charset=edit.charset, collation=edit.collation))


@apply.register
def _(edit: SetSystemVersioning, catalog: Catalog) -> Catalog:
    return _put(catalog, replace(_of(catalog, edit.table, edit), system_versioned=edit.system_versioned))


@apply.register
def _(edit: SetForeignKeys, catalog: Catalog) -> Catalog:
    return _put(catalog, replace(_of(catalog, edit.table, edit), foreign_keys=edit.keys))


def _without(mapping: Mapping[TableName, V], key: TableName) -> Mapping[TableName, V]:
    return {k: v for k, v in mapping.items() if k != key}


def _keys_without(keys: tuple[UniqueKey, ...], gone: int) -> tuple[UniqueKey, ...]:
    left = (key.without(gone) for key in keys)
    return tuple(key for key in left if key is not None)


def _of(catalog: Catalog, name: TableName, edit: object) -> Snapshot:
    snapshot = catalog.tables.get(name)
    if snapshot is None:
        raise EditConflict(f"{type(edit).__name__} on a table that is not there", where=str(name))
    return snapshot


def _of_id(catalog: Catalog, name: TableName, table_id: int, verb: str) -> Snapshot:
    snapshot = catalog.tables.get(name)
    if snapshot is None or snapshot.table_id != table_id:
        found = "no such table" if snapshot is None else f"table id {snapshot.table_id}"
        raise EditConflict(f"{verb} of another table", where=str(name), expected=f"table id {table_id}", found=found)
    return snapshot


def _put(catalog: Catalog, snapshot: Snapshot) -> Catalog:
    return replace(catalog, tables={**catalog.tables, snapshot.name: snapshot})


def _column(snapshot: Snapshot, column_id: int, name: str) -> Column:
    column = snapshot.column_by_id(column_id)
    if column is None:
        raise EditConflict(
            "no such column",
            where=f"{snapshot.name}.{name}",
            expected=f"column id {column_id}",
            found=[f"{c.id} {c.name}" for c in snapshot.columns],
        )
    return column


def _with_column(snapshot: Snapshot, column: Column) -> Snapshot:
    return replace(snapshot, columns=tuple(column if c.id == column.id else c for c in snapshot.columns))


def _insert(snapshot: Snapshot, columns: tuple[Column, ...], column: Column, after: int) -> tuple[Column, ...]:
    if after == 0:
        return (column, *columns)
    at = next((i for i, c in enumerate(columns) if c.id == after), None)
    if at is None:
        raise EditConflict("no column to stand behind", where=str(snapshot.name), expected=f"column id {after}")
    return (*columns[: at + 1], column, *columns[at + 1 :])
