"""The life of one column: its names and types over time, over renames of the column and of its table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from historian.errors import UnknownTable
from historian.names import TableName
from historian.schema.snapshots import Column

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.history.versions import Version
    from historian.positions import LogPosition

__all__ = ["LineageStep", "column_named", "lineage"]


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
