"""Keys of a table while a statement is resolved: how they are named, and which go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from historian.ddl.statements import KeySpec
from historian.schema import Column, Snapshot, UniqueKey

__all__ = ["Key", "added_keys", "as_snapshot_keys", "keys_of", "primary_columns"]

_FUNCTIONAL = "functional_index"


class Key(NamedTuple):
    """A key but the primary one. ``unique``: over whole columns, so that it tells rows apart."""

    name: str
    columns: tuple[int, ...]
    unique: bool


def keys_of(snapshot: Snapshot) -> list[Key]:
    """The keys of a table, unique ones first."""
    unique = [Key(key.name, key.columns, unique=True) for key in snapshot.unique_keys]
    return unique + [Key(key.name, key.columns, unique=False) for key in snapshot.other_keys]


def as_snapshot_keys(keys: Iterable[Key]) -> tuple[tuple[UniqueKey, ...], tuple[UniqueKey, ...]]:
    """Unique and other keys as a snapshot holds them, sorted by name so that equal schemas are equal values."""
    ordered = sorted(keys)
    return (
        tuple(UniqueKey(name=key.name, columns=key.columns) for key in ordered if key.unique),
        tuple(UniqueKey(name=key.name, columns=key.columns) for key in ordered if not key.unique),
    )


def primary_columns(specs: Iterable[KeySpec]) -> tuple[str, ...] | None:
    """Names of the columns that the primary key among *specs* is over; None where there is none."""
    for spec in specs:
        if spec.kind == "primary":
            return tuple(column for column in spec.columns if column is not None)
    return None


def added_keys(
    keys: Sequence[Key], specs: Iterable[KeySpec], column_of: Callable[[str], Column], *, inline_references: bool
) -> list[Key]:
    """The keys of a table after *specs* are added in order; unnamed ones are called after their first column.

    A foreign key brings a key of its own where no other begins with its columns. *inline_references*: REFERENCES in a
    column definition counts.
    """
    result = list(keys)
    foreign: list[tuple[str, tuple[int, ...]]] = []
    for spec in specs:
        if spec.kind == "primary" or (spec.kind == "foreign" and spec.inline and not inline_references):
            continue
        parts = [column_of(column) for column in spec.columns if column is not None]
        columns = tuple(column.id for column in parts)
        base = _FUNCTIONAL if spec.columns[0] is None else parts[0].name
        if spec.kind == "foreign":
            foreign.append((spec.name or base, columns))
            continue
        whole = len(columns) == len(spec.columns)
        result.append(Key(spec.name or _free_name(base, result), columns, unique=spec.kind == "unique" and whole))
    for name, columns in foreign:
        if not any(key.columns[: len(columns)] == columns for key in result):
            result.append(Key(_free_name(name, result), columns, unique=False))
    return result


def _free_name(base: str, keys: Sequence[Key]) -> str:
    taken = {key.name.lower() for key in keys}
    if base.lower() not in taken and base.lower() != "primary":
        return base
    number = 2
    while f"{base}_{number}".lower() in taken:
        number += 1
    return f"{base}_{number}"
