"""Why a table looks as it does at a position: the statement behind it, and what that changed; and the life of a column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from historian.errors import UnknownTable
from historian.names import TableName
from historian.schema.diff import Difference, diff
from historian.schema.snapshots import Column

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.history.versions import Version
    from historian.names import TableName
    from historian.positions import LogPosition
    from historian.schema.snapshots import Snapshot

__all__ = ["Explanation", "LineageStep", "column_named", "explain", "explained", "lineage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What made a version, and from what.

    Attributes:
        version: the version; its ``entry`` has statement, database, time, server and place.
        before: the table's schema until then; None where there was none, or none that was known.
        changes: what led from there to the version's schema, see :class:`historian.schema.diff.Difference`; "captured" for a
            table that was read from a database, "unknown" where a statement was not understood. Empty where only rows
            changed, as with TRUNCATE.
    """

    version: Version
    before: Snapshot | None
    changes: tuple[Difference, ...]


def explain(
    history: History, table: TableName, position: LogPosition, ordinal: int | None = None, gtid: str | None = None
) -> Explanation:
    """What made the schema that *table* has at *position*; arguments and errors as :meth:`History.at`."""
    return explained(history, history.at(table, position, ordinal, gtid))


def explained(history: History, version: Version) -> Explanation:
    """What made that version of the history."""
    earlier = [known for known in history.versions_of(version.table_id) if known.number < version.number]
    before = earlier[-1].snapshot if earlier else None
    return Explanation(version=version, before=before, changes=_changes(before, version))


def _changes(before: Snapshot | None, version: Version) -> tuple[Difference, ...]:
    if version.unknown is not None:
        return (Difference(change="unknown", before=str(version.name), after=version.unknown),)
    if before is None and version.entry.place is None:
        return (Difference(change="captured", after=str(version.name)),)
    return diff(before, version.snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageStep:
    """What a column was from a version on.

    Attributes:
        version: that made it so; its ``entry`` has the statement, its ``name`` the table's name from here on.
        column: None where the column or its table went, or where the table's schema is not known (``version.unknown``).
    """

    version: Version
    column: Column | None


def lineage(history: History, column_id: int, table_id: int) -> tuple[LineageStep, ...]:
    """Each change of a column's name, type or other attributes and of its table's name, oldest first.

    The first step made the column, or captured it; one without a column ends it, or says that it was not known for a
    while. Where the column stands in its table, and in which keys, does not count.
    """
    return tuple(_steps(history.versions_of(table_id), column_id))


def _steps(versions: tuple[Version, ...], column_id: int) -> Iterator[LineageStep]:
    last: tuple[TableName, Column | None] | None = None
    for version in versions:
        column = None if version.snapshot is None else version.snapshot.column_by_id(column_id)
        if column is None and (last is None or last[1] is None):
            continue
        now = (version.name, column)
        if now != last:
            yield LineageStep(version=version, column=column)
        last = now


def column_named(history: History, table: TableName, name: str, at: LogPosition | None = None) -> tuple[int, int]:
    """Ids of the column and of its table, as :func:`lineage` takes them.

    Args:
        table, name: at that position; without one, when the table last had a column of that name.
        at: tells columns apart that had the name one after the other, and so for tables.

    Raises:
        UnknownTable: no such table, or no such column in it.
        PositionAhead, PositionExpired, PositionUnknown: as :meth:`History.at`.
    """
    versions = history.versions(table) if at is None else (history.at(table, at),)
    if not versions:
        raise UnknownTable("no such table in the history", where=str(table))
    for version in reversed(versions):
        snapshot = version.snapshot
        column = None if snapshot is None else snapshot.column(name)
        if column is not None:
            return column.id, version.table_id
    snapshots = [version.snapshot for version in versions if version.snapshot is not None]
    known = ", ".join(column.name for column in snapshots[-1].columns) if snapshots else None
    raise UnknownTable(
        "no such column in the table",
        where=f"{table} {name}" if at is None else f"{table} {name} at {at}",
        expected=None if known is None else f"one of {known}",
    )
