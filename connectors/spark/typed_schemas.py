"""Which schema the rows of a typed table have, and which edits its rows cannot be carried over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from historian import codec
from historian.changelog.operations import physical_name
from historian.changelog.projection import are_comparable
from historian.schema.edits import DropTable, Edit, TruncateTable
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Column, Snapshot
from historian.schema.type_compatibility import is_compatible

if TYPE_CHECKING:
    from historian.store import Store

__all__ = [
    "ALL_VERSIONS",
    "FittingRules",
    "TypedColumn",
    "TypedSchema",
    "Versions",
    "last_schema",
    "remember",
    "remembered",
    "schema_of",
]


class _Version(Protocol):
    """What a version of the history and one of a plan have in common."""

    @property
    def edits(self) -> tuple[Edit, ...]: ...

    @property
    def snapshot(self) -> Snapshot | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedColumn:
    """A column of typed rows.

    Attributes:
        name: that it has in the rows.
        upto: number of the last version that is known to have it. Rows of later ones that lack it have NULL there.
    """

    name: str
    column: Column
    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedSchema:
    """The schema of typed rows, as it is remembered under a stream's name.

    Attributes:
        version: number of the version that *snapshot* is of; 0: an earlier release chose it, and did not say.
        begin: number of the version that rows begin with. What its edit did to rows from before is known to the reader.
        dropped: columns behind those of *snapshot* that rows had before it.
        pinned: the place was named: columns that are added later are left out on purpose.
    """

    snapshot: Snapshot
    version: int = 0
    begin: int = 0
    dropped: tuple[TypedColumn, ...] = ()
    pinned: bool = False

    @property
    def columns(self) -> tuple[TypedColumn, ...]:
        """All columns in their order."""
        held = (TypedColumn(name=each.name, column=each, upto=self.version) for each in self.snapshot.columns)
        return (*held, *self.dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingRules:
    """Which edits typed rows can be carried over.

    Attributes:
        rescues: what a column of the rows cannot hold stands in another one.
        only: names of the columns that are wanted, in lower case; None: all.
    """

    rescues: bool = False
    only: frozenset[str] | None = None

    def misfit(self, schema: TypedSchema, number: int, version: _Version) -> str | None:
        """Why rows of the *version* of that *number* do not all fit *schema*; None where they do.

        Types from behind the schema's own place must keep every value. Values of earlier ones are tried one by one, so that
        only types that have nothing in common do not fit.
        """
        if number > schema.begin:
            lost = next((e for e in version.edits if isinstance(e, ResumeTable) and e.loses_rows), None)
            if lost is not None:
                return f"what changed behind {lost.unknown_since} is not known"
            gone = next((edit for edit in version.edits if isinstance(edit, (DropTable, TruncateTable))), None)
            if gone is not None:
                return f"rows went without row events ({gone.kind})"
        if version.snapshot is None or self.rescues:
            return None
        return next(self._misfits(schema, number, version.snapshot), None)

    def _misfits(self, schema: TypedSchema, number: int, snapshot: Snapshot) -> Iterator[str]:
        is_later = number > schema.version
        fits = is_compatible if is_later else are_comparable
        wanted = {each.column.id: each for each in schema.columns}
        for column in snapshot.columns:
            target = wanted.get(column.id)
            if target is None:
                if is_later and not schema.pinned and schema.version and self.only is None:
                    yield f"column {column.name} was added"
            elif self.only is not None and target.name.lower() not in self.only:
                continue
            elif not fits(column.type, target.column.type):
                yield f"column {column.name} is {column.type}, the rows' {target.column.type}"


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of a typed table whose rows are wanted of a plan: from the number *begin* up to before *end*; None: no bound."""

    begin: int | None = None
    end: int | None = None

    def hold(self, number: int) -> bool:
        """Whether *number* is one of them."""
        return (self.begin is None or number >= self.begin) and (self.end is None or number < self.end)


ALL_VERSIONS = Versions()


class _Numbered(_Version, Protocol):
    """A version that knows its number."""

    @property
    def number(self) -> int: ...


def schema_of(
    chain: Sequence[_Numbered], number: int, *, begin: int, dropped: bool = False, pinned: bool = False
) -> TypedSchema:
    """The schema of the version *number* in a table's *chain* of versions, for rows from version *begin* on.

    Args:
        dropped: columns that rows had before and the schema lacks stand behind its own.
        pinned: see :class:`TypedSchema`.
    """
    snapshot = next(each.snapshot for each in chain if each.number == number)
    if snapshot is None:
        raise ValueError("the table is gone with that version")
    gone: dict[int, tuple[Column, int]] = {}
    for version in chain if dropped else ():
        if version.snapshot is not None and begin <= version.number < number:
            gone |= {column.id: (column, version.number) for column in version.snapshot.columns}
    for column in snapshot.columns:
        gone.pop(column.id, None)
    taken = {column.name.lower() for column in snapshot.columns}
    more = []
    for column, upto in gone.values():
        name = column.name if column.name.lower() not in taken else f"{column.name}_{physical_name(column.id)}"
        taken.add(name.lower())
        more.append(TypedColumn(name=name, column=column, upto=upto))
    return TypedSchema(snapshot=snapshot, version=number, begin=begin, dropped=tuple(more), pinned=pinned)


def last_schema(
    chain: Sequence[_Numbered], rules: FittingRules, *, begin: int, dropped: bool = False
) -> TypedSchema | None:
    """The last schema that all rows from version *begin* up to it can be carried to; None where no version has any."""
    versions = [version for version in chain if version.number >= begin]
    for at in range(len(versions) - 1, -1, -1):
        if versions[at].snapshot is None:
            continue
        schema = schema_of(chain, versions[at].number, begin=begin, dropped=dropped)
        if all(rules.misfit(schema, each.number, each) is None for each in versions[: at + 1]):
            return schema
    return None


def remembered(store: Store, name: str) -> tuple[TypedSchema, ...]:
    """The schemas that the stream *name* has had, in order; it goes on under the last one."""
    found: list[TypedSchema] = []
    while (body := store.stream(_key(name, len(found)))) is not None:
        if "columns" in json.loads(body):
            # An earlier release remembered the snapshot alone.
            found.append(TypedSchema(snapshot=codec.load(Snapshot, body), pinned=True))
        else:
            found.append(codec.load(TypedSchema, body))
    return tuple(found)


def remember(store: Store, name: str, schema: TypedSchema, *, after: int) -> None:
    """Keeps *schema* as the one of the stream *name* behind *after* others. Raises :class:`StoreError` where it has another one."""
    store.remember_stream(_key(name, after), codec.dump(TypedSchema, schema))


def _key(name: str, number: int) -> str:
    # No name of a stream has a line break (`connectors.spark.options`).
    return name if number == 0 else f"{name}\n{number}"
