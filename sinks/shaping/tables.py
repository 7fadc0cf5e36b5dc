"""Schemas, edits and plans as the lake sees them: without what is left out, with what is hashed, cut short and computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from historian.errors import TableStopped
from historian.plans.plans import PlannedTable, PlannedVersion
from historian.schema.edits import (
    AddColumn,
    ChangeAttributes,
    ChangeType,
    CreateTable,
    DropColumn,
    Edit,
    MoveColumn,
    RenameColumn,
)
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Column, Snapshot
from historian.schema.type_compatibility import resembles
from sinks.shaping.bindings import Bindings
from sinks.shaping.columns import shaped_column, why_not
from sinks.shaping.rules import Rules

__all__ = ["TableShape", "misfits", "shape_of", "shape_table", "shape_version"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """How rows of one table are shaped.

    Attributes:
        bindings: what is done to its columns.
        computed: columns that the source does not have, in order.
        by_key: whether rows are told apart by the key in some target.
        uses: ids of the columns that expressions take values of.
        key: ids of the columns that tell rows apart in place of a primary key; (): the primary key does.
    """

    bindings: Bindings
    computed: tuple[Column, ...] = ()
    by_key: bool = True
    uses: frozenset[int] = frozenset()
    key: tuple[int, ...] = ()

    @property
    def spared(self) -> frozenset[int]:
        """Ids of the columns that neither the lake nor an expression sees."""
        return (
            frozenset(number for number, action in self.bindings.actions.items() if action.kind == "left out")
            - self.uses
        )

    def snapshot(self, snapshot: Snapshot) -> Snapshot:
        """*snapshot* as the lake sees it."""
        kept = [c for c in snapshot.columns if self.bindings.action(c).kind != "left out"]
        told = {c.id for c in kept if self.bindings.action(c).kind in ("", "hash")}
        return replace(
            snapshot,
            columns=(*(shaped_column(c, self.bindings.action(c)) for c in kept), *self.computed),
            # A changelog alone may do without the key; then its rows are told apart by all that they have.
            primary_key=snapshot.primary_key if told.issuperset(snapshot.primary_key) else (),
            unique_keys=tuple(key for key in snapshot.unique_keys if told.issuperset(key.columns)),
            other_keys=(),
        )

    def edit(self, edit: Edit) -> Edit | None:
        """*edit* as the lake sees it; None where it sees nothing of it.

        Raises:
            TableStopped: values that are there would be others under the new type.
        """
        actions = self.bindings.actions
        if isinstance(edit, (CreateTable, ResumeTable)):
            return replace(edit, snapshot=self.snapshot(edit.snapshot))
        if isinstance(edit, (AddColumn, ChangeAttributes)):
            action = self.bindings.action(edit.column)
            return None if action.kind == "left out" else replace(edit, column=shaped_column(edit.column, action))
        if isinstance(edit, (DropColumn, MoveColumn, RenameColumn, ChangeType)):
            kind = actions[edit.column_id].kind if edit.column_id in actions else ""
            if kind == "left out":
                return None
            if isinstance(edit, ChangeType) and kind in ("hash", "truncate") and resembles(edit.old, edit.new):
                if kind == "hash" and edit.old.scale != edit.new.scale:
                    raise TableStopped(
                        "a hashed number is printed with other digits",
                        where=self.bindings.came[edit.column_id][0],
                        expected=edit.old,
                        found=edit.new,
                    )
                return None
        return edit


def shape_of(snapshot: Snapshot, rules: Rules, *, by_key: bool, key: tuple[int, ...] = ()) -> TableShape:
    """How rows of a table would be shaped that came with *snapshot*; without computed columns."""
    came = {column.id: (column.name, rules.action(column.name).mark) for column in snapshot.columns}
    return TableShape(bindings=Bindings(rules, came), by_key=by_key, key=key)


def shape_table(table: PlannedTable, shape: TableShape) -> PlannedTable:
    """*table* as the lake sees it.

    Raises:
        TableStopped: a statement changes what values are made of; with the statement.
    """
    return replace(table, versions=tuple(shape_version(version, shape) for version in table.versions))


def misfits(snapshot: Snapshot, shape: TableShape) -> Sequence[tuple[str, str]]:
    """What of the rules cannot be done to a table: the key that it stands under, with the column, and why."""
    bindings = shape.bindings
    found = []
    for column in snapshot.columns:
        action = bindings.action(column)
        where = bindings.rules.place(bindings.name(column))
        reason = None if action.kind == "left out" else why_not(column, action)
        is_key = column.id in shape.key or (shape.by_key and not shape.key and column.id in snapshot.primary_key)
        if is_key and action.kind in ("left out", "mask", "truncate"):
            reason = "a mirror and a history need the key; it can be hashed"
        if not action.kind and bindings.rules.is_listed(column.name):
            where = bindings.rules.place(column.name)
            reason = f"the column was called {bindings.name(column)}, and its values are in the lake as they are"
        if reason is not None:
            found.append((where, reason))
    names = [column.name.lower() for column in snapshot.columns if bindings.action(column).kind != "left out"]
    taken = [computed.name for computed in shape.computed if computed.name.lower() in names]
    found += [(f"compute.{name}", "the table has a column of that name") for name in taken]
    if len(names) == 0 and not shape.computed:
        found.append(("columns", "no column is left"))
    return found


def shape_version(version: PlannedVersion, shape: TableShape) -> PlannedVersion:
    """One version of a table, as :func:`shape_table` has it."""
    try:
        edits = [shaped for edit in version.edits if (shaped := shape.edit(edit)) is not None]
    except TableStopped as error:
        error.where = f"{error.where}: {version.statement}"
        error.next_step = NEXT
        raise
    snapshot = None if version.snapshot is None else shape.snapshot(version.snapshot)
    return replace(version, edits=tuple(edits), snapshot=snapshot)


NEXT = "correct sinks[].tables in the configuration, and replicate the table into another lake, from the start"
