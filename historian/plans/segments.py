"""Which schema versions a plan needs, and where a table's rows are cut into segments.

Rows of one segment can be brought to one schema by column id. A segment ends where that cannot be: rows go without row
events, the key changes, or the server computes values that the log does not hold. In topics it ends where a table is renamed, too:
rows under each name have a partition of their own, and within a segment partitions have no order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from historian.errors import PositionUnknown
from historian.history.prefix import holds
from historian.history.versions import Version, in_force
from historian.names import TableName
from historian.plans.plans import PlannedTable, PlannedVersion, Quarantine
from historian.plans.type_options import NO_TYPE_OPTIONS, TypeOptions
from historian.positions import FilePosition, LogPosition
from historian.positions.places import Place
from historian.schema.edits import (
    AddColumn,
    ChangeAttributes,
    ChangeType,
    CreateTable,
    DropTable,
    Edit,
    RenameTable,
    TruncateTable,
)
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Column, Snapshot
from historian.schema.type_compatibility import is_compatible

if TYPE_CHECKING:
    from historian.history.history import History

__all__ = ["brings", "cuts", "numbers", "planned_tables", "resumed_table", "retracts", "stopped_table"]

_Captured = Callable[[TableName], bool]
_Aside = Callable[[TableName, TableName], bool]


def retracts(edit: Edit) -> bool:
    """Whether all rows of the table go by *edit*, without row events."""
    return isinstance(edit, (TruncateTable, DropTable))


def cuts(edit: Edit, before: Snapshot) -> bool:
    """Whether rows from before *edit* cannot be brought to the schema after it by column id.

    A change of the primary key cuts too; compare snapshots for that, since the key can lose columns by other edits.
    """
    if isinstance(edit, ChangeType):
        return not is_compatible(edit.old, edit.new)
    if isinstance(edit, AddColumn):
        return not edit.column.initial_known
    if isinstance(edit, ChangeAttributes):
        held = before.column_by_id(edit.column.id)
        return held is not None and (
            held.generation_expression != edit.column.generation_expression or numbers(held, edit.column)
        )
    if isinstance(edit, ResumeTable):
        return edit.loses_rows
    return retracts(edit)


def numbers(old: Column, new: Column) -> bool:
    """Whether the server gives numbers of its own to rows that have 0 or NULL in a column, when *old* becomes *new*."""
    return new.auto_increment and not old.auto_increment


def brings(old: Snapshot, new: Snapshot) -> bool:
    """Whether rows written under *old* can be brought to *new*, the same table's, by column id."""
    if old.primary_key != new.primary_key:
        return False
    for column in new.columns:
        held = old.column_by_id(column.id)
        if held is None:
            if not column.initial_known:
                return False
        elif not is_compatible(held.type, column.type) or held.generation_expression != column.generation_expression:
            return False
    return True


def planned_tables(  # noqa: PLR0913 each by name, and each is wanted
    history: History,
    *,
    base: int,
    last: int,
    captured: _Captured,
    touched: Collection[int],
    quarantines: Mapping[int, Quarantine],
    start: LogPosition | None = None,
    sets_aside: _Aside = lambda _table, _new: False,
    type_options: TypeOptions = NO_TYPE_OPTIONS,
) -> tuple[PlannedTable, ...]:
    """The captured tables of a plan with the versions they need, by table id.

    Args:
        history: holds all entries up to *last*.
        base: number of the last entry at or before the plan's start.
        last: number of the last entry in the plan.
        captured: by a table's name.
        touched: ids of tables with rows in the plan; tables with edits there are added.
        quarantines: by table id; a table stopped at or before *start* has left and is not planned.
        start: where the plan starts.
        sets_aside: whether a captured table of the first name is still one under the second, for a moment.
        type_options: how values are carried.
    """
    edited = {version.table_id for number in range(base + 1, last + 1) for version in history.versions_by(number)}
    tables = []
    for table_id in sorted({*touched, *edited}):
        stop = quarantines.get(table_id)
        if stop is not None and start is not None and _is_behind(start, stop.place):
            continue
        known = in_force(version for version in history.versions_of(table_id) if version.number <= last)
        chain = list(type_options.applied(known))
        planned = _planned(chain, base, _wanted(chain, captured, sets_aside), stop)
        if planned is not None:
            tables.append(planned)
    return tuple(tables)


def resumed_table(chain: list[Version], base: int, captured: _Captured, stop: Quarantine | None) -> PlannedTable | None:
    """A stopped table's part in a plan of its own: *chain* holds its version before the stop, and those from there on.

    Args:
        chain: of one table, choices applied; those behind *base* are said or read anew.
        base: number of the last entry that was there before.
        captured: by a table's name.
        stop: where it stops again.
    """
    return _planned(chain, base, _wanted(chain, captured, lambda _table, _new: False), stop)


def stopped_table(history: History, table_id: int, base: int, stop: Quarantine, options: TypeOptions) -> PlannedTable:
    """The part of a table in a plan before which it stopped, as it was with the entry *base*: it says so, and no more."""
    held = [version for version in options.applied(history.versions_of(table_id)) if version.number <= base]
    return PlannedTable(table_id=table_id, versions=(_version(held[-1], None, (), 0),), quarantine=stop)


def _is_behind(start: LogPosition, place: Place) -> bool:
    try:
        return holds(start, place, "")
    except PositionUnknown:
        # Without GTID the stop was noted on some server's file before this one was read.
        return True


def _planned(chain: list[Version], base: int, wanted: frozenset[int], stop: Quarantine | None) -> PlannedTable | None:
    held = [version for version in chain if version.number <= base]
    versions: list[PlannedVersion] = []
    in_force: Snapshot | None = None
    if held and held[-1].number in wanted:
        in_force = held[-1].snapshot
        versions.append(_version(held[-1], None, (), 0))
    was_wanted = any(version.number in wanted for version in held)
    for version in chain[len(held) :]:
        place = _place(version)
        if stop is not None and not _is_before(place, stop.place):
            break
        if in_force is None and version.snapshot is not None and _resumes(version):
            known = next((v for v in reversed(held) if v.number in wanted), None)
            in_force = None if known is None else known.snapshot
            versions += [] if known is None else [_version(known, None, (), 0)]
        if in_force is None:
            if version.number not in wanted or version.snapshot is None:
                continue
            in_force = version.snapshot
            versions.append(_version(version, place, (CreateTable(snapshot=in_force),), 0))
            reason = f"{version.name} is captured again; its changes meanwhile were left out" if was_wanted else None
        else:
            reason = _left(version, wanted)
            if reason is None:
                versions.append(
                    _version(version, place, version.edits, versions[-1].segment + _is_cut(version, in_force))
                )
                in_force = version.snapshot
        if reason is not None:
            stop = Quarantine(place=place, reason=reason)
            break
    return PlannedTable(table_id=chain[0].table_id, versions=tuple(versions), quarantine=stop) if versions else None


def _resumes(version: Version) -> bool:
    return any(isinstance(edit, ResumeTable) for edit in version.edits)


def _wanted(chain: list[Version], captured: _Captured, sets_aside: _Aside) -> frozenset[int]:
    """Numbers of the versions under which the table's rows are wanted."""
    numbers: set[int] = set()
    name: TableName | None = None
    for version in chain:
        if version.snapshot is None:
            continue
        if captured(version.name):
            name = version.name
        elif name is None or not sets_aside(name, version.name):
            name = None
            continue
        numbers.add(version.number)
    return frozenset(numbers)


def _left(version: Version, wanted: frozenset[int]) -> str | None:
    """Why a captured table stops at *version*, if it does."""
    if version.unknown is not None:
        return version.unknown
    if version.snapshot is not None and version.number not in wanted:
        return f"renamed to {version.name}, which is not captured"
    return None


def _is_cut(version: Version, before: Snapshot) -> bool:
    if version.snapshot is not None and version.snapshot.primary_key != before.primary_key:
        return True
    place = version.entry.place
    if place is not None and _is_of_topics(place) and any(isinstance(edit, RenameTable) for edit in version.edits):
        return True
    return any(cuts(edit, before) for edit in version.edits)


def _version(version: Version, place: Place | None, edits: tuple[Edit, ...], segment: int) -> PlannedVersion:
    return PlannedVersion(
        version=version.number,
        place=place,
        edits=edits,
        snapshot=version.snapshot,
        segment=segment,
        statement=version.entry.statement,
        event_time_us=version.entry.event_time_us,
    )


def _place(version: Version) -> Place:
    """Where the version begins; a capture, which is no event, begins with whatever follows its position."""
    position = version.entry.position
    return version.entry.place or Place(gtid="", file=position.file, offset=position.offset, ordinal=0)


def _is_before(place: Place, other: Place) -> bool:
    """Whether *place* lies before *other*; both were read from one server's files in one walk, or from topics.

    A table of topics stops in all partitions at once, behind what was read of them.
    """
    if _is_of_topics(place):  # partitions share no order
        return place.file == other.file and place.offset < other.offset
    at, limit = FilePosition(place.file, place.offset), FilePosition(other.file, other.offset)
    return limit.covers(at) and at != limit


def _is_of_topics(place: Place) -> bool:
    return ":" in place.file
