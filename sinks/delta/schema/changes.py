"""What a schema version changes in a table, by the kinds of :mod:`historian.plans.evolution`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from historian.plans.plans import PlannedVersion
from historian.schema.edits import AddColumn, ChangeAttributes, ChangeType, DropTable, TruncateTable
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Column, ColumnType, Snapshot
from historian.schema.type_compatibility import is_compatible, resembles
from sinks.contract.parts import ClearShard
from sinks.delta.log.columns import delta_type, widens

__all__ = ["Change", "changes", "type_change"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One edit of a table.

    Attributes:
        edit: its kind, as :data:`historian.plans.evolution.RULES` has it.
        column_id: of the history; 0 where it is about no column.
        column: the name that the column has with it, or had; "" where it is about none.
        expected, found: what would be followed, and what is there; for errors.
        added: whether the edit adds the column.
        rewritten: whether the server makes other values of those that the column holds.
    """

    edit: str
    column_id: int = 0
    column: str = ""
    expected: object = None
    found: object = None
    added: bool = False
    rewritten: bool = False

    @property
    def noted(self) -> str:
        """The kind under which a decision about it is kept: what adds a column is one edit, known values or not."""
        return "add_column" if self.added else self.edit


def type_change(old: ColumnType, new: ColumnType, *, rewritten: bool = True) -> str:
    """The kind of edit that a column's change from *old* to *new* is: widen_type, change_type, or attributes.

    Args:
        rewritten: whether the server converts what the column holds; otherwise rows stand there as they came.
    """
    if rewritten and not is_compatible(old, new):
        return "change_type"
    before, after = _in_delta(old), _in_delta(new)
    if before == after:
        return "attributes"
    return "widen_type" if widens(before, after) else "change_type"


def changes(before: Snapshot, version: PlannedVersion) -> Iterator[Change]:
    """What *version* changes in a table that was as *before*."""
    for edit in version.edits:
        if isinstance(edit, ClearShard):
            yield Change(edit=edit.edit)
        elif isinstance(edit, (TruncateTable, DropTable)):
            yield Change(edit="truncate" if isinstance(edit, TruncateTable) else "drop_table")
    after = version.snapshot
    if after is None:
        return
    if before.name != after.name:
        yield Change(edit="rename_table", found=after.name)
    computed = {e.column.id for e in version.edits if isinstance(e, AddColumn) and not e.column.initial_known}
    computed |= {e.column.id for e in version.edits if isinstance(e, ChangeAttributes) and _computes(before, e.column)}
    resumed = any(isinstance(edit, ResumeTable) for edit in version.edits)
    # A column that is shown in another form than the source's may have one type for both.
    cast = {} if resumed else {e.column_id: e for e in version.edits if isinstance(e, ChangeType)}
    for column in after.columns:
        held = before.column_by_id(column.id)
        if held is None:
            kind = "computed_values" if column.id in computed else "add_column"
            yield Change(edit=kind, column_id=column.id, column=column.name, added=True)
        else:
            yield from _column_changes(
                held, column, cast.get(column.id), computes=column.id in computed, rewritten=not resumed
            )
    for column in before.columns:
        if after.column_by_id(column.id) is None:
            yield Change(edit="drop_column", column_id=column.id, column=column.name)
    if before.primary_key != after.primary_key:
        yield Change(edit="change_key")
    if _moved(before, after):
        yield Change(edit="move_column")


def _column_changes(
    held: Column, column: Column, cast: ChangeType | None, *, computes: bool, rewritten: bool
) -> Iterator[Change]:
    if held.name != column.name:
        yield Change(edit="rename_column", column_id=column.id, column=held.name, found=column.name)
    kind, old, new = type_change(held.type, column.type, rewritten=rewritten), held.type, column.type
    others = not is_compatible(old, new)
    if cast is not None and (
        not is_compatible(cast.old, cast.new) or (old == new and not resembles(cast.old, cast.new))
    ):
        kind, old, new, others = "change_type", cast.old, cast.new, True
    if kind != "change_type" and computes:
        kind = "computed_values"
    if kind != "attributes":
        yield Change(
            edit=kind,
            column_id=column.id,
            column=column.name,
            expected=f"a type that holds every value of {old} as it is",
            found=f"{new}",
            rewritten=rewritten and others,
        )


def _moved(before: Snapshot, after: Snapshot) -> bool:
    places = {column.id: at for at, column in enumerate(before.columns)}
    stayed = [places[column.id] for column in after.columns if column.id in places]
    return any(first > second for first, second in pairwise(stayed))


def _computes(before: Snapshot, column: Column) -> bool:
    held = before.column_by_id(column.id)
    return held is not None and held.generation_expression != column.generation_expression


def _in_delta(kind: ColumnType) -> str:
    return delta_type(Column(id=1, name="", type=kind))
