"""What changed from one schema of a table to another, columns told apart by identity, not by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from historian.schema.snapshots import Column, Snapshot

__all__ = ["Difference", "diff"]

_Side = str | bool | tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that changed.

    Attributes:
        change: what; "created", "dropped", "renamed table", "primary key", "unique keys", "order", "table charset" or "table
            collation" of the table; of a column "added", "dropped", "renamed", or the attribute that changed: "type",
            "charset", "collation", "nullable", "default", "default expression", "on update", "auto increment",
            "generated", "generation expression", "invisible".
        column: its name after the change, of a dropped one its last; None where it is about the table.
        before, after: texts as ``information_schema`` prints them, a tuple for lists of columns.
    """

    change: str
    column: str | None = None
    before: _Side = None
    after: _Side = None


def diff(before: Snapshot | None, after: Snapshot | None) -> tuple[Difference, ...]:
    """What led from *before* to *after*; None stands for no table. Empty where nothing changed.

    >>> t = Snapshot(table_id=1, name=TableName("shop", "t"), columns=(), charset="utf8mb4", collation="utf8mb4_bin")
    >>> diff(t, None)
    (Difference(change='dropped', column=None, before='shop.t', after=None),)
    """
    if before is None or after is None:
        if before is after:
            return ()
        return (
            Difference(
                change="created" if before is None else "dropped",
                before=None if before is None else str(before.name),
                after=None if after is None else str(after.name),
            ),
        )
    return tuple(_changes(before, after))


def _changes(before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    if before.name != after.name:
        yield Difference(change="renamed table", before=str(before.name), after=str(after.name))
    if before.columns is not after.columns:
        yield from _of_columns(before, after)
    pairs: tuple[tuple[str, _Side, _Side], ...] = (
        ("table charset", before.charset, after.charset),
        ("table collation", before.collation, after.collation),
        ("system versioning", before.system_versioned, after.system_versioned),
    )
    for what, was, now in pairs:
        if was != now:
            yield Difference(change=what, before=was, after=now)
    # A key over a renamed column is the same key.
    if before.primary_key != after.primary_key:
        yield Difference(
            change="primary key",
            before=_names(before, before.primary_key),
            after=_names(after, after.primary_key),
        )
    if before.unique_keys != after.unique_keys:
        yield Difference(change="unique keys", before=_unique(before), after=_unique(after))


def _of_columns(before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    earlier = {column.id: column for column in before.columns}
    kept = {column.id for column in after.columns}
    for column in before.columns:
        if column.id not in kept:
            yield Difference(change="dropped", column=column.name, before=str(column.type))
    # Edits leave other columns the very same.
    for column in [column for column in after.columns if earlier.get(column.id) is not column]:
        if column.id not in earlier:
            yield Difference(change="added", column=column.name, after=str(column.type))
        else:
            yield from _of_column(earlier[column.id], column)
    was_order = [column.id for column in before.columns if column.id in kept]
    order = [column.id for column in after.columns if column.id in earlier]
    if was_order != order:
        yield Difference(change="order", before=_named(after, was_order), after=_named(after, order))


def _of_column(before: Column, after: Column) -> Iterator[Difference]:
    pairs: tuple[tuple[str, _Side, _Side], ...] = (
        ("renamed", before.name, after.name),
        ("type", str(before.type), str(after.type)),
        ("charset", before.type.charset, after.type.charset),
        ("collation", before.type.collation, after.type.collation),
        ("nullable", before.nullable, after.nullable),
        ("default", before.default, after.default),
        ("default expression", before.default_is_expression, after.default_is_expression),
        ("on update", before.on_update, after.on_update),
        ("auto increment", before.auto_increment, after.auto_increment),
        ("generated", before.generated, after.generated),
        ("generation expression", before.generation_expression, after.generation_expression),
        ("invisible", before.invisible, after.invisible),
        ("compressed", before.compressed, after.compressed),
        ("without versioning", before.unversioned, after.unversioned),
    )
    for what, was, now in pairs:
        if was != now:
            yield Difference(change=what, column=after.name, before=was, after=now)


def _named(snapshot: Snapshot, ids: Iterable[int]) -> tuple[str, ...]:
    names = {column.id: column.name for column in snapshot.columns}
    return tuple(names[each] for each in ids)


def _names(snapshot: Snapshot, ids: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(column.name for i in ids if (column := snapshot.column_by_id(i)) is not None)


def _unique(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(f"{key.name} ({', '.join(_names(snapshot, key.columns))})" for key in snapshot.unique_keys)
