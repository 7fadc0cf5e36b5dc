"""Edits as lines for people, by column name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from historian.ddl.types.information_schema import ServerForm, table_form
from historian.names import TableName
from historian.schema import edits
from historian.schema.edits import Edit
from historian.schema.snapshots import Catalog, Column, Snapshot, UniqueKey

__all__ = ["edit_text"]


def edit_text(edit: Edit, before: Catalog, server: ServerForm) -> str:
    """What *edit* does to *before*, in one line, types in the words of *server*."""
    return _TEXT[type(edit)](edit, before, server)


def _column(column: Column, server: ServerForm) -> str:
    """As a definition: name, type, and what is not the default."""
    alone = Snapshot(table_id=0, name=TableName("", ""), columns=(column,), charset="", collation="")
    (form,) = table_form(alone, server)["columns"]
    words = [form["name"], form["type"]]
    if form["charset"]:
        words.append(f"{form['charset']} {form['collation']}")
    if not form["nullable"]:
        words.append("not null")
    if form["default"] not in (None, "NULL"):
        words.append(f"default {form['default'] or repr('')}")
    if column.generated:
        words.append(f"as ({column.generation_expression})")
    if form["extra"]:
        words.append(form["extra"].lower())
    return " ".join(words)


def _name(edit: Any, before: Catalog, column_id: int) -> str:
    snapshot = before.tables.get(edit.table)
    column = None if snapshot is None else snapshot.column_by_id(column_id)
    return f"column {column_id}" if column is None else column.name


def _place(edit: Any, before: Catalog) -> str:
    return "first" if edit.after == 0 else f"after {_name(edit, before, edit.after)}"


def _keys(edit: Any, before: Catalog, keys: tuple[UniqueKey, ...]) -> str:
    return ", ".join(f"{key.name} ({_parts(edit, before, key.columns)})" for key in keys) or "none"


def _parts(edit: Any, before: Catalog, columns: tuple[int, ...]) -> str:
    return ", ".join(_name(edit, before, column) if column else "an expression" for column in columns)


def _create_table(edit: edits.CreateTable, _: Catalog, server: ServerForm) -> str:
    columns = ", ".join(_column(column, server) for column in edit.snapshot.columns)
    return f"create {edit.snapshot.name}: {columns}"


_TEXT: dict[type, Callable[[Any, Catalog, ServerForm], str]] = {
    edits.SetDatabase: lambda e, _c, _s: f"database {e.database.name}: {e.database.charset} {e.database.collation}",
    edits.DropDatabase: lambda e, _c, _s: f"drop database {e.name}",
    edits.CreateTable: _create_table,
    edits.DropTable: lambda e, _c, _s: f"drop {e.table}",
    edits.TruncateTable: lambda e, _c, _s: f"empty {e.table}",
    edits.RenameTable: lambda e, _c, _s: f"rename {e.table} to {e.new}",
    edits.ForgetTable: lambda e, _c, _s: f"forget {e.table}: {e.reason}",
    edits.AddColumn: lambda e, c, s: f"add to {e.table}: {_column(e.column, s)}, {_place(e, c)}",
    edits.DropColumn: lambda e, _c, _s: f"drop from {e.table}: {e.name}",
    edits.RenameColumn: lambda e, _c, _s: f"rename in {e.table}: {e.old} to {e.new}",
    edits.ChangeType: lambda e, c, _s: f"type in {e.table}: {_name(e, c, e.column_id)} {e.old} to {e.new}",
    edits.ChangeAttributes: lambda e, _c, s: f"change {e.table}: {_column(e.column, s)}",
    edits.MoveColumn: lambda e, c, _s: f"move in {e.table}: {_name(e, c, e.column_id)} {_place(e, c)}",
    edits.SetPrimaryKey: lambda e, c, _s: f"primary key of {e.table}: {_parts(e, c, e.columns) or 'none'}",
    edits.AddUniqueKey: lambda e, c, _s: f"unique key of {e.table}: {_keys(e, c, (e.key,))}",
    edits.DropUniqueKey: lambda e, _c, _s: f"drop unique key of {e.table}: {e.name}",
    edits.SetOtherKeys: lambda e, c, _s: f"other keys of {e.table}: {_keys(e, c, e.keys)}",
    edits.SetSystemVersioning: lambda e, _c, _s: (
        f"system versioning of {e.table}: {'on' if e.system_versioned else 'off'}"
    ),
    edits.SetForeignKeys: lambda e, _c, _s: (
        f"foreign keys of {e.table} with an action: {', '.join(f'to {key.parent}' for key in e.keys) or 'none'}"
    ),
    edits.SetTableCharset: lambda e, _c, _s: f"defaults of {e.table}: {e.charset} {e.collation}",
}
