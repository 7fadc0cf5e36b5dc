"""What stops a table: changes of its schema that its targets cannot follow without a wrong value."""

from __future__ import annotations

from historian.edits import AddColumn, ChangeAttributes, ChangeType, Edit
from historian.errors import TableStopped, ValueUnrepresentable
from historian.interruptions import ResumeTable
from historian.plans import PlannedVersion
from historian.segments import cuts, retracts
from historian.values import initial_scalar
from sinks.parts import Part
from sinks.variant import encoded, is_variant

__all__ = ["check", "check_whole"]


def check(part: Part) -> None:
    """Raises :class:`TableStopped`, naming the statement, where *part* holds an edit that is not followed."""
    for version in part.versions:
        for edit in version.edits:
            _check_edit(part, version, edit)
            if isinstance(edit, AddColumn):
                _check_initial(part, version, edit)
    before, after = part.base, part.last
    lost = [key for key in part.home.key_columns if after is not None and after.column_by_id(key) is None]
    if lost:
        held = None if before is None else before.column_by_id(lost[0])
        column = "" if held is None else held.name
        raise _stop(part, part.versions[-1], "a column of the configured key is dropped", where=column)
    by_key = part.home.mirror or part.home.history
    if by_key and before and after and before.primary_key != after.primary_key:
        what = "a mirrored table" if part.home.mirror else "a table with a history"
        raise _stop(part, part.versions[-1], f"the primary key of {what} changes")


def check_whole(part: Part, whose: str) -> None:
    """Raises :class:`TableStopped` where rows of *part* have absent columns, which *whose* table cannot do without."""
    if part.partial:
        raise TableStopped(
            "rows have columns that the log does not tell",
            where=part.home.name,
            expected=f"binlog_row_image=FULL, for {whose}",
            next_step="replicate the table anew under that setting, or into a lake without it",
        )


def _check_edit(part: Part, version: PlannedVersion, edit: Edit) -> None:
    if part.base is None or isinstance(edit, ResumeTable) or retracts(edit) or not cuts(edit, part.base):
        return
    if isinstance(edit, ChangeType):
        held = part.base.column_by_id(edit.column_id)
        raise _stop(
            part,
            version,
            "a column's values are rewritten by the server",
            where=f"id {edit.column_id}" if held is None else held.name,
            expected=f"a type that holds every value of {edit.old} as it is",
            found=edit.new,
        )
    column = edit.column.name if isinstance(edit, AddColumn | ChangeAttributes) else ""
    raise _stop(part, version, "the server computes a column's values in rows that are there already", where=column)


def _check_initial(part: Part, version: PlannedVersion, edit: AddColumn) -> None:
    try:
        value = initial_scalar(edit.column).as_py()
        if is_variant(edit.column.type) and value is not None:
            encoded(value)
    except ValueUnrepresentable as error:
        raise _stop(
            part,
            version,
            error.what,
            where=edit.column.name,
            expected=error.expected or edit.column.type,
            found=error.found,
        ) from error


def _stop(
    part: Part,
    version: PlannedVersion,
    what: str,
    *,
    where: str = "",
    expected: object = None,
    found: object = None,
) -> TableStopped:
    return TableStopped(
        what,
        where=f"{part.home.name}{'.' + where if where else ''}: {version.statement}",
        expected=expected,
        found=found,
        next_step="rebuild the table's targets from a new start",
    )
