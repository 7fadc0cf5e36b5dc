"""Keys of a table while a statement is resolved: how they are named, and which go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from historian.ddl.parsing.definitions import KeySpec
from historian.schema.snapshots import GEOMETRIES, Column, ColumnType, Snapshot, UniqueKey

__all__ = ["Key", "added_keys", "as_snapshot_keys", "keys_of", "primary_columns", "takes_part"]

_FUNCTIONAL = "functional_index"
_IN_PARTS = frozenset(("char", "varchar", "binary", "varbinary"))


class Key(NamedTuple):
    """A key but the primary one. ``unique``: over columns alone, so that it tells rows apart."""

    key: UniqueKey
    unique: bool

    @property
    def name(self) -> str:
        """The key's name."""
        return self.key.name


def keys_of(snapshot: Snapshot) -> list[Key]:
    """The keys of a table, unique ones first."""
    return [Key(key, True) for key in snapshot.unique_keys] + [Key(key, False) for key in snapshot.other_keys]


def as_snapshot_keys(
    keys: Iterable[Key], columns: Iterable[Column]
) -> tuple[tuple[UniqueKey, ...], tuple[UniqueKey, ...]]:
    """Unique and other keys as a snapshot of these *columns* holds them: the former in their order, the latter by name."""
    kinds = {column.id: column.type for column in columns}
    fitted = [Key(_fitted(key.key, kinds), key.unique) for key in keys]
    return (
        tuple(key.key for key in fitted if key.unique),
        tuple(sorted((key.key for key in fitted if not key.unique), key=lambda key: key.name)),
    )


def _fitted(key: UniqueKey, kinds: Mapping[int, ColumnType]) -> UniqueKey:
    """The key without prefixes that take the whole of their column."""
    if not key.prefixes:
        return key
    prefixes = tuple(
        prefix if column and takes_part(kinds[column], prefix) else 0
        for column, prefix in zip(key.columns, key.prefixes, strict=True)
    )
    return replace(key, prefixes=prefixes if any(prefixes) else ())


def takes_part(kind: ColumnType, prefix: int) -> bool:
    """Whether a key part of that length is less than the whole column."""
    if kind.name in _IN_PARTS:
        return prefix < (kind.length or 0)
    return kind.name.endswith(("text", "blob")) or kind.name in (*GEOMETRIES, "geometrycollection")


def primary_columns(specs: Iterable[KeySpec]) -> tuple[str, ...] | None:
    """Names of the columns that the primary key among *specs* is over; None where there is none."""
    for spec in specs:
        if spec.kind == "primary":
            return tuple(column for column in spec.columns if column is not None)
    return None


def added_keys(
    keys: Sequence[Key],
    specs: Iterable[KeySpec],
    column_of: Callable[[str], Column],
    *,
    primary: Sequence[int],
    inline_references: bool,
) -> list[Key]:
    """The keys of a table after *specs* are added in order; unnamed ones are called after their first column.

    A foreign key brings a key of its own where no other begins with its columns, and that one goes when another does.
    *inline_references*: REFERENCES in a column definition counts. *primary*: columns of the primary key behind the statement.
    """
    wanted = []
    for spec in specs:
        if spec.kind != "primary" and (inline_references or not (spec.kind == "foreign" and spec.inline)):
            parts = [None if column is None else column_of(column) for column in spec.columns]
            wanted.append((spec, parts, tuple(0 if part is None else part.id for part in parts)))
    every = [
        *(key.key for key in keys),
        *(
            UniqueKey(name="", columns=columns, prefixes=spec.prefixes, generated=spec.kind == "foreign")
            for spec, _, columns in wanted
        ),
        UniqueKey(name="", columns=tuple(primary)),
    ]
    stays = [
        not key.generated or not any(_serves(other, key, later=place > at) for place, other in enumerate(every))
        for at, key in enumerate(every)
    ]
    result = [key for key, left in zip(keys, stays, strict=False) if left]
    names = _Names(key.name for key in result)
    for (spec, parts, columns), left in zip(wanted, stays[len(keys) :], strict=False):
        base = _FUNCTIONAL if parts[0] is None else parts[0].name
        if spec.kind == "foreign":
            if left:
                name = names.take(names.free(spec.name or base))
                result.append(Key(UniqueKey(name=name, columns=columns, generated=True), False))
            continue
        key = UniqueKey(name=names.take(spec.name or names.free(base)), columns=columns, prefixes=spec.prefixes)
        result.append(Key(key, spec.kind == "unique" and 0 not in columns))
    return result


def _serves(other: UniqueKey, key: UniqueKey, *, later: bool) -> bool:
    """Whether *other* makes a *key* that a foreign key brought needless. Of two such keys over the same columns the *later* one stays."""
    if other is key or other.columns[: len(key.columns)] != key.columns or any(other.prefixes[: len(key.columns)]):
        return False
    return not other.generated or later or len(other.columns) > len(key.columns)


class _Names:
    """Names of keys, compared without regard to case."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {name.lower() for name in taken}
        self._next: dict[str, int] = {}

    def take(self, name: str) -> str:
        self._taken.add(name.lower())
        return name

    def free(self, base: str) -> str:
        """*base*, or with the first number from 2 on that makes it a name of its own."""
        lower = base.lower()
        if lower not in self._taken and lower != "primary":
            return base
        number = self._next.get(lower, 2)
        while f"{lower}_{number}" in self._taken:
            number += 1
        self._next[lower] = number
        return f"{base}_{number}"
