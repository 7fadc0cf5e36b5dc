"""The edits that lead from one schema of a table to another one that a message has. Messages tell columns by name.

A column that has another name is another column: its values go on where a rename is known, and no message tells of one.
"""

from __future__ import annotations

from dataclasses import replace

from connectors.readers.base import SchemaMet
from connectors.tracking.topics.told import fits_told, key_names
from historian.schema.applying import apply_all
from historian.schema.edits import (
    AddColumn,
    ChangeAttributes,
    ChangeType,
    CreateTable,
    DropColumn,
    Edit,
    MoveColumn,
    SetPrimaryKey,
)
from historian.schema.snapshots import Catalog, Column, Snapshot

__all__ = ["edits_to", "fits"]


def fits(snapshot: Snapshot, met: SchemaMet) -> bool:
    """Whether rows of *met* are those of *snapshot*: the same columns in order, types and key; defaults may differ.

    Where *met* tells less, as far as it tells.
    """
    if met.certainty != "exact":
        return fits_told(snapshot, met)
    mine = tuple((column.name, column.type, column.nullable) for column in snapshot.columns)
    theirs = tuple((column.name, column.type, column.nullable) for column in met.columns)
    return mine == theirs and key_names(snapshot) == met.key


def edits_to(met: SchemaMet, catalog: Catalog) -> tuple[Edit, ...]:
    """What makes the table of *met* in *catalog* one that *met* fits. *met* is exact, or :func:`.told.completed`."""
    before = catalog.tables.get(met.table)
    if before is None:
        return (CreateTable(snapshot=_created(met, catalog)),)
    table, edits = met.table, list[Edit]()
    held = {column.name: column for column in before.columns}
    wanted = {column.name for column in met.columns}
    dropped = [column for column in before.columns if column.name not in wanted]
    if any(column.id in before.primary_key for column in dropped):
        edits.append(SetPrimaryKey(table=table, columns=()))
    edits += [DropColumn(table=table, column_id=column.id, name=column.name) for column in dropped]
    next_id, after = catalog.next_column_id, 0
    order = [column.id for column in before.columns if column.name in wanted]
    ids: dict[str, int] = {}
    for column in met.columns:
        old = held.get(column.name)
        if old is None:
            added = replace(column, id=next_id)
            edits.append(AddColumn(table=table, column=added, after=after))
            order.insert(order.index(after) + 1 if after else 0, next_id)
            next_id += 1
            after = added.id
        else:
            edits += _changes(met, old, column)
            at = order.index(after) + 1 if after else 0
            if order[at] != old.id:
                edits.append(MoveColumn(table=table, column_id=old.id, after=after))
                order.remove(old.id)
                order.insert(order.index(after) + 1 if after else 0, old.id)
            after = old.id
        ids[column.name] = after
    key = tuple(ids[name] for name in met.key or ())
    present = apply_all(tuple(edits), catalog).tables[table].primary_key
    if key != present:
        edits.append(SetPrimaryKey(table=table, columns=key))
    return tuple(edits)


def _changes(met: SchemaMet, old: Column, new: Column) -> list[Edit]:
    edits: list[Edit] = []
    if old.type != new.type:
        edits.append(ChangeType(table=met.table, column_id=old.id, old=old.type, new=new.type))
    if old.nullable != new.nullable:
        column = replace(old, type=new.type, nullable=new.nullable, default=new.default)
        edits.append(ChangeAttributes(table=met.table, column=column))
    return edits


def _created(met: SchemaMet, catalog: Catalog) -> Snapshot:
    columns = tuple(
        replace(column, id=number, initial=None, initial_known=True)
        for number, column in enumerate(met.columns, catalog.next_column_id)
    )
    ids = {column.name: column.id for column in columns}
    return Snapshot(
        table_id=catalog.next_table_id,
        name=met.table,
        columns=columns,
        primary_key=tuple(ids[name] for name in met.key or ()),
        charset="utf8mb4",
        collation="utf8mb4_bin",
    )
