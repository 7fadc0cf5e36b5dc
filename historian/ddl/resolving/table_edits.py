"""From two snapshots of one table to the edits between them, by column id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise, takewhile

from historian.names import TableName
from historian.schema.edits import (
    AddColumn,
    AddUniqueKey,
    ChangeAttributes,
    ChangeType,
    DropColumn,
    DropUniqueKey,
    Edit,
    MoveColumn,
    RenameColumn,
    RenameTable,
    SetForeignKeys,
    SetOtherKeys,
    SetPrimaryKey,
    SetSystemVersioning,
    SetTableCharset,
)
from historian.schema.snapshots import Column, Snapshot, UniqueKey
from historian.schema.type_compatibility import retyped

__all__ = ["edits_between"]


def edits_between(old: Snapshot, new: Snapshot, moved: Iterable[int] = ()) -> tuple[Edit, ...]:
    """The edits that make *new* of *old*; none for what is the same. *moved*: ids of columns that were given a position."""
    table = old.name
    after = {column.id: column for column in new.columns}
    edits: list[Edit] = [
        DropColumn(table=table, column_id=column.id, name=column.name)
        for column in old.columns
        if column.id not in after
    ]
    kept = [column for column in old.columns if column.id in after]
    for column in kept:
        if after[column.id] is not column:
            edits += _changes(table, column, after[column.id])
    if (old.charset, old.collation) != (new.charset, new.collation):
        edits.append(SetTableCharset(table=table, charset=new.charset, collation=new.collation))
    edits += _places(table, [column.id for column in kept], new.columns, frozenset(moved))
    edits += _keys(table, old, new, frozenset(after))
    if old.system_versioned != new.system_versioned:
        edits.append(SetSystemVersioning(table=table, system_versioned=new.system_versioned))
    if set(old.foreign_keys) != set(new.foreign_keys):
        edits.append(SetForeignKeys(table=table, keys=new.foreign_keys))
    if new.name != table:
        edits.append(RenameTable(table=table, table_id=old.table_id, new=new.name))
    return tuple(edits)


def _changes(table: TableName, old: Column, new: Column) -> Iterable[Edit]:
    if old.name != new.name:
        yield RenameColumn(table=table, column_id=old.id, old=old.name, new=new.name)
    if old.type != new.type:
        yield ChangeType(table=table, column_id=old.id, old=old.type, new=new.type)
    if replace(retyped(old, new.type), name=new.name) != new:
        yield ChangeAttributes(table=table, column=new)


def _places(table: TableName, old: list[int], new: tuple[Column, ...], moved: frozenset[int]) -> list[Edit]:
    """Additions and moves. Columns that were given no position keep their order, so only the others may have to move."""
    staying = set(old)
    if moved:
        staying -= moved
        target = {column.id: place for place, column in enumerate(new)}
        for candidate in (column_id for column_id in old if column_id in moved):
            tried = [target[column_id] for column_id in old if column_id in staying or column_id == candidate]
            if all(first < second for first, second in pairwise(tried)):
                staying.add(candidate)
    known = set(old)
    edits: list[Edit] = []
    before = 0
    for column in new:
        if column.id not in known:
            edits.append(AddColumn(table=table, column=column, after=before))
        elif column.id not in staying:
            edits.append(MoveColumn(table=table, column_id=column.id, after=before))
        before = column.id
    return edits


def _keys(table: TableName, old: Snapshot, new: Snapshot, kept: frozenset[int]) -> Iterable[Edit]:
    """Keys lose dropped columns by the drop itself; what then differs is changed."""
    if tuple(column for column in old.primary_key if column in kept) != new.primary_key:
        yield SetPrimaryKey(table=table, columns=new.primary_key)
    before = _reduced(old.unique_keys, kept)
    staying = tuple(takewhile(before.__contains__, new.unique_keys))  # the order of keys counts
    for key in before:
        if key not in staying:
            yield DropUniqueKey(table=table, name=key.name)
    for key in new.unique_keys[len(staying) :]:
        yield AddUniqueKey(table=table, key=key)
    if sorted(_reduced(old.other_keys, kept), key=_name) != sorted(new.other_keys, key=_name):
        yield SetOtherKeys(table=table, keys=new.other_keys)


def _name(key: UniqueKey) -> str:
    return key.name


def _reduced(keys: tuple[UniqueKey, ...], kept: frozenset[int]) -> tuple[UniqueKey, ...]:
    result = []
    for key in keys:
        left: UniqueKey | None = key
        for column in key.columns:
            if column and column not in kept and left is not None:
                left = left.without(column)
        if left is not None:
            result.append(left)
    return tuple(result)
