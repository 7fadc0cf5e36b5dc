"""Schemas of shards become one: columns meet by name when a shard comes, and by identity from then on.

What one shard's statement changes is followed when it is the first of its kind, and is nothing when the others do the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from historian.errors import TableStopped, ValueUnrepresentable
from historian.names import TableName
from historian.plans.plans import PlannedVersion
from historian.plans.shards import Into
from historian.schema.edits import AddColumn, ChangeType, DropColumn, Edit, RenameColumn
from historian.schema.gaps import ResumeTable
from historian.schema.generated_columns import under_ids
from historian.schema.snapshots import Column, Snapshot
from historian.schema.type_compatibility import is_compatible, retyped
from historian.values.texts import initial_scalar
from sinks.shards.group import Group, Member

__all__ = ["Reconciler", "conflict"]

NEXT = "make the shards alike and replicate them into another lake, or leave the shard out (sinks[].tables)"


def conflict(
    what: str, shard: object, statement: str = "", *, column: str = "", expected: object = None, found: object = None
) -> TableStopped:
    """The error that stops the table of a group: it names shard, column and statement."""
    where = f"shard {shard}{'.' + column if column else ''}{': ' + statement if statement else ''}"
    return TableStopped(what, where=where, expected=expected, found=found, next_step=NEXT)


class Reconciler:
    """Takes what happens to the shards of one group, in order.

    Every method raises :class:`TableStopped` where shards do not fit together.

    Args:
        into: what the configuration says of the group.
        group: as it was; None: its first shard comes yet.
    """

    def __init__(self, into: Into, group: Group | None) -> None:
        self._into = into
        self._shards = into.shard_columns
        self._snapshot = None if group is None else group.snapshot
        self._members = {} if group is None else dict(group.members)
        self._previous = {} if group is None else dict(group.previous)
        self._edits: list[Edit] = []
        self._taken: tuple[TableName | None, str] = (None, "")

    @property
    def snapshot(self) -> Snapshot:
        """The group's schema; there was a shard."""
        assert self._snapshot is not None  # noqa: S101 asked behind a shard
        return self._snapshot

    def is_member(self, table_id: int) -> bool:
        """Whether the table is a shard now."""
        return table_id in self._members

    def member(self, table_id: int) -> Member:
        """A shard."""
        return self._members[table_id]

    def group(self, number: int) -> Group:
        """The group as it is now, by the version of that number."""
        return Group(number=number, snapshot=self.snapshot, members=dict(self._members), previous=dict(self._previous))

    def edits(self) -> tuple[Edit, ...]:
        """What happened to the group's schema since this was asked last."""
        found, self._edits = tuple(self._edits), []
        return found

    def begin(self, first: Snapshot) -> None:
        """The group, where it had no schema yet, has that of its first shard."""
        if self._snapshot is not None:
            return
        self._snapshot = replace(
            first,
            name=self._into.name,
            columns=(*self._shards, *map(_known, first.columns)),
            primary_key=(*(column.id for column in self._shards), *first.primary_key),
            unique_keys=(),
            other_keys=(),
        )

    def join(self, snapshot: Snapshot, statement: str = "") -> None:
        """A table comes in."""
        name, values = snapshot.name, self._into.values(snapshot.name)
        self._taken = name, statement
        for other in self._members.values():
            if other.values == values:
                raise self._conflict(
                    "two shards are not told apart by the shard columns", found=f"{other.name} has them too"
                )
        self.begin(snapshot)
        if not snapshot.primary_key:
            raise self._conflict("a shard has no primary key", expected="the same one on all shards")
        self._refuse_shard_names(snapshot)
        columns: dict[int, int] = {}
        for column in snapshot.columns:
            held = self._named(column, snapshot)
            self._map(columns, column, held, snapshot)
        self._members[snapshot.table_id] = Member(name=name, values=values, columns=columns)
        self._check_key(snapshot)
        self._settle()

    def follow(self, before: Snapshot, version: PlannedVersion) -> None:
        """A shard's schema changes from *before* to that of *version*."""
        after = version.snapshot
        assert after is not None  # noqa: S101 a shard that goes is not followed
        self._taken = after.name, version.statement
        if any(isinstance(edit, ResumeTable) for edit in version.edits):
            raise self._conflict("a shard goes on behind a part of the log that is not known")
        if self._into.values(before.name) != self._into.values(after.name):
            raise self._conflict("a shard gets a name that shard columns have otherwise", found=f"{before.name} before")
        self._refuse_shard_names(after)
        self._drop(before, after)
        self._rename(before, after)
        self._retype(before, version)
        columns = self._columns(after)
        for column in after.columns:
            if before.column_by_id(column.id) is None:
                self._add(columns, column, after)
        self._members[after.table_id] = replace(self._members[after.table_id], columns=columns)
        self._check_key(after)

    def leave(self, table_id: int) -> None:
        """A shard is dropped. Columns that no shard has any more go with the next change, so that this one is about rows alone."""
        del self._members[table_id]

    def written(self, snapshot: Snapshot) -> Snapshot:
        """A shard's *snapshot* with the ids of the group's columns."""
        columns = self._columns(snapshot)
        lacking = [column.name for column in snapshot.columns if column.id not in columns]
        if lacking:
            raise conflict("a shard has columns of which nothing was told", snapshot.name, found=", ".join(lacking))
        return replace(
            snapshot,
            columns=tuple(under_ids(column, columns) for column in snapshot.columns),
            primary_key=(),
            unique_keys=(),
            other_keys=(),
        )

    def target(self, table_id: int) -> Snapshot:
        """The group's schema with what rows of a shard hold in columns that it lacks: shard columns among them."""
        member = self._members[table_id]
        values = dict(zip((column.id for column in self._shards), member.values, strict=True))
        columns = []
        for column in self.snapshot.columns:
            if column.id in values:
                columns.append(replace(column, initial=values[column.id]))
            else:
                columns.append(replace(column, initial=None) if column.id in member.dropped else column)
        return replace(self.snapshot, columns=tuple(columns))

    def _conflict(self, what: str, *, column: str = "", expected: object = None, found: object = None) -> TableStopped:
        """The error of the shard, and the statement on it, that are being taken."""
        return conflict(what, *self._taken, column=column, expected=expected, found=found)

    def _columns(self, snapshot: Snapshot) -> dict[int, int]:
        return dict(self._members[snapshot.table_id].columns)

    def _held(self, column_id: int) -> Column:
        found = self.snapshot.column_by_id(column_id)
        assert found is not None  # noqa: S101 every shard's columns are mapped to some that are there
        return found

    def _named(self, column: Column, snapshot: Snapshot) -> Column | None:
        """The group's column that a shard's is when it comes: by its present name, or one that it had before."""
        wanted = column.name.lower()
        found = [held for held in self.snapshot.columns if held.name.lower() == wanted]
        found += [
            held
            for held in self.snapshot.columns
            if wanted in self._previous.get(held.id, ()) and held not in found and snapshot.column(held.name) is None
        ]
        if len(found) > 1:
            raise self._conflict(
                "a column's name is that of several columns of the other shards",
                column=column.name,
                found=", ".join(held.name for held in found),
            )
        return found[0] if found else None

    def _map(self, columns: dict[int, int], column: Column, held: Column | None, snapshot: Snapshot) -> None:
        if held is None:
            made = _known(column)
            at = next((i for i, c in enumerate(snapshot.columns) if c.id == column.id), 0)
            behind = columns[snapshot.columns[at - 1].id] if at else self._shards[-1].id
            places = [c.id for c in self.snapshot.columns]
            cut = places.index(behind) + 1
            whole = self.snapshot.columns
            self._snapshot = replace(self.snapshot, columns=(*whole[:cut], made, *whole[cut:]))
            self._edits.append(AddColumn(table=self._into.name, column=made, after=behind))
            columns[column.id] = column.id
            return
        if held.id in columns.values():
            raise self._conflict("two columns of this shard match one column of the other shards", column=column.name)
        columns[column.id] = held.id
        self._fit(held, column)

    def _fit(self, held: Column, column: Column) -> None:
        """Brings the group's column to a type that holds the values of a shard's."""
        if held.type == column.type or is_compatible(column.type, held.type):
            return
        if not is_compatible(held.type, column.type):
            raise self._conflict(
                "a column has different types in the shards, and neither holds every value of the other",
                column=column.name,
                expected=held.type,
                found=column.type,
            )
        self._put(retyped(held, column.type))
        self._edits.append(ChangeType(table=self._into.name, column_id=held.id, old=held.type, new=column.type))

    def _add(self, columns: dict[int, int], column: Column, after: Snapshot) -> None:
        """A column that is added to a shard that was there."""
        if not column.initial_known:
            raise self._conflict(
                "the server computes a column's values in rows that are there already", column=column.name
            )
        held = self.snapshot.column(column.name)
        taken = set(columns.values())
        if held is None:
            previous = [c for c, names in self._previous.items() if column.name.lower() in names and c not in taken]
            if previous:
                raise self._conflict(
                    "a column is added by a name that one of the other shards had, which this shard lacks",
                    column=column.name,
                    found=", ".join(self._held(c).name for c in previous),
                )
        elif held.id in self._members[after.table_id].dropped:
            raise self._conflict(
                "a column is added again that other shards still have",
                column=column.name,
                expected="that all shards drop it first",
            )
        elif _initial(held) != _initial(
            retyped(column, held.type) if is_compatible(column.type, held.type) else column
        ):
            raise self._conflict(
                "rows that are there read something else in an added column than those of the other shards",
                column=column.name,
                expected=held.initial,
                found=column.initial,
            )
        self._map(columns, column, held, after)

    def _drop(self, before: Snapshot, after: Snapshot) -> None:
        member = self._members[after.table_id]
        gone = [column.id for column in before.columns if after.column_by_id(column.id) is None]
        if gone:
            columns = {own: held for own, held in member.columns.items() if own not in gone}
            dropped = (*member.dropped, *(member.columns[own] for own in gone))
            self._members[after.table_id] = replace(member, columns=columns, dropped=dropped)
        self._settle()

    def _settle(self) -> None:
        """Columns that no shard has any more go."""
        there = {held for member in self._members.values() for held in member.columns.values()}
        there |= {column.id for column in self._shards}
        gone = [column for column in self.snapshot.columns if column.id not in there]
        if not gone:
            return
        self._edits += [DropColumn(table=self._into.name, column_id=c.id, name=c.name) for c in gone]
        self._snapshot = replace(self.snapshot, columns=tuple(c for c in self.snapshot.columns if c.id in there))
        for column in gone:
            self._previous.pop(column.id, None)
        for table_id, member in self._members.items():
            self._members[table_id] = replace(member, dropped=tuple(c for c in member.dropped if c in there))

    def _rename(self, before: Snapshot, after: Snapshot) -> None:
        columns = self._columns(after)
        renamed: dict[int, str] = {}
        for column in after.columns:
            old = before.column_by_id(column.id)
            if old is None or old.name.lower() == column.name.lower():
                continue
            held = self._held(columns[column.id])
            if column.name.lower() == held.name.lower() or column.name.lower() in self._previous.get(held.id, ()):
                # Another shard did it before; if it went on from there, this one follows in its time.
                if old.name.lower() != held.name.lower():
                    continue
            elif old.name.lower() != held.name.lower():
                raise self._conflict(
                    "a column gets another name than on the other shards",
                    column=old.name,
                    expected=held.name,
                    found=column.name,
                )
            renamed[held.id] = column.name
        if not renamed:
            return
        whole = tuple(replace(c, name=renamed.get(c.id, c.name)) for c in self.snapshot.columns)
        names = sorted(c.name.lower() for c in whole)
        for one, other in pairwise(names):
            if one == other:
                raise self._conflict("a column gets a name that another column of the other shards has", column=one)
        for column_id, name in renamed.items():
            old_name = self._held(column_id).name
            self._previous[column_id] = (*self._previous.get(column_id, ()), old_name.lower())
            self._edits.append(RenameColumn(table=self._into.name, column_id=column_id, old=old_name, new=name))
        self._snapshot = replace(self.snapshot, columns=whole)

    def _retype(self, before: Snapshot, version: PlannedVersion) -> None:
        after = version.snapshot
        assert after is not None  # noqa: S101 see follow
        columns = self._columns(after)
        casts = {e.column_id: e for e in version.edits if isinstance(e, ChangeType)}
        for column in after.columns:
            old = before.column_by_id(column.id)
            if old is None:
                continue
            cast = casts.get(column.id)
            rewritten = not is_compatible(old.type, column.type) or (
                cast is not None and not is_compatible(cast.old, cast.new)
            )
            if rewritten or old.generation_expression != column.generation_expression:
                raise self._conflict(
                    "a shard's values are rewritten by the server",
                    column=column.name,
                    expected=f"a type that holds every value of {old.type} as it is",
                    found=column.type,
                )
            if old.type != column.type:
                self._fit(self._held(columns[column.id]), column)

    def _check_key(self, snapshot: Snapshot) -> None:
        columns = self._columns(snapshot)
        own = [columns[column] for column in snapshot.primary_key]
        wanted = self.snapshot.primary_key[len(self._shards) :]
        if set(own) != set(wanted):
            raise self._conflict(
                "a shard has another primary key", expected=self._names(wanted), found=self._names(own) or "none"
            )

    def _names(self, columns: Iterable[int]) -> str:
        return ", ".join(self._held(column).name for column in columns)

    def _refuse_shard_names(self, snapshot: Snapshot) -> None:
        for shard in self._shards:
            if snapshot.column(shard.name) is not None:
                raise self._conflict("a column is called like a shard column", column=shard.name)

    def _put(self, column: Column) -> None:
        self._snapshot = replace(
            self.snapshot, columns=tuple(column if c.id == column.id else c for c in self.snapshot.columns)
        )


def _known(column: Column) -> Column:
    """*column* as the group's: what only one shard's server knows of rows from before holds for none of the others'."""
    return column if column.initial_known else replace(column, initial=None, initial_known=True)


def _initial(column: Column) -> object:
    """What rows from before *column* read in it; where it has no value, its text."""
    try:
        return initial_scalar(column).as_py()
    except ValueUnrepresentable:
        return column.initial
