"""Names that tables had up to a place in the log, and which tables a tool for online schema changes has set aside there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeGuard

from historian.history.online_schema_changes import OnlineChanges
from historian.history.versions import touched_names
from historian.names import TableName
from historian.positions import LogPosition
from historian.schema.edits import CreateTable, Edit, RenameTable
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.history.timeline import TimelineEntry

__all__ = ["TableNames", "creates"]


class TableNames:
    """Asks the history and the entries of one walk.

    Args:
        new_entries: of the walk, in order; it goes on to add to them.
        captured, online_changes: as of the walk.
    """

    def __init__(
        self,
        history: History,
        new_entries: Sequence[TimelineEntry],
        captured: Callable[[TableName], bool],
        online_changes: OnlineChanges,
    ) -> None:
        self._history, self._new_entries = history, new_entries
        self._captured, self._online_changes = captured, online_changes

    def is_new(self, table_id: int) -> bool:
        """Whether the table was created in this walk."""
        return any(creates(edit, table_id) for edit in self._new_edits())

    def first_snapshot(self, table_id: int) -> Snapshot | None:
        """The schema that a table was created with."""
        recorded = (edit for version in self._history.versions_of(table_id) for edit in version.edits)
        for edit in chain(recorded, self._new_edits()):
            if creates(edit, table_id):
                return edit.snapshot
        return None

    def last_named(self, name: TableName) -> int | None:
        """Id of the table that last had a name."""
        renamed = [edit.table_id for edit in self._new_edits() if isinstance(edit, RenameTable) and edit.table == name]
        versions = self._history.versions(name)
        return renamed[-1] if renamed else versions[-1].table_id if versions else None

    def last_entry(self, name: TableName) -> int:
        """Number of the last entry about a name, whether it is a table's or a trigger's; 0 where there is none."""
        news = (e.number for e in reversed(self._new_entries) if any(name in touched_names(edit) for edit in e.edits))
        return next(news, 0) or self._history.last_about(name)

    def last_changed(self, table: Snapshot) -> LogPosition | None:
        """Before the transaction of the last edit of *table*, which has its name since it was created."""
        entries = self.entries(table)
        return entries[-1].position if entries else None

    def entries(self, table: Snapshot) -> list[TimelineEntry]:
        """What edited *table*, which has its name since it was created, in order."""
        recorded = [version.entry for version in self._history.versions_of(table.table_id)]
        news = (entry for entry in self._new_entries if any(table.name in touched_names(edit) for edit in entry.edits))
        return [*recorded, *news]

    def set_aside(self, table_id: int, number: int) -> TableName | None:
        """The captured name that a table had before a tool set it aside; None where none has. *number*: of the last entry."""
        recorded = [v.snapshot for v in self._history.versions_of(table_id) if v.number <= number]
        names = [snapshot.name for snapshot in recorded if snapshot is not None]
        for edit in self._new_edits():
            if creates(edit, table_id):
                names.append(edit.snapshot.name)
            elif isinstance(edit, RenameTable) and edit.table_id == table_id:
                names.append(edit.new)
        was: TableName | None = None
        for name in names:
            if self._captured(name):
                was = name
            elif was is None or not self._online_changes.sets_aside(was, name):
                was = None
        return None if was is None or self._captured(names[-1]) else was

    def set_aside_from(self, name: TableName, number: int) -> int:
        """Id of the table that a tool has set aside from a captured name, which nothing has since; 0 where it has not."""
        table_id = self.last_named(name) or 0
        return table_id if self.set_aside(table_id, number) == name else 0

    def set_aside_before(self, edits: Sequence[Edit], number: int) -> dict[int, TableName]:
        """Tables that were set aside until *edits* rename them, or give their previous names to others: captured names by id."""
        given = [edit.new for edit in edits if isinstance(edit, RenameTable)]
        given += [edit.snapshot.name for edit in edits if isinstance(edit, CreateTable)]
        ids = {edit.table_id for edit in edits if isinstance(edit, RenameTable)}
        ids |= {self.last_named(name) or 0 for name in given if self._captured(name)}
        return {table_id: name for table_id in ids if (name := self.set_aside(table_id, number)) is not None}

    def _new_edits(self) -> Iterator[Edit]:
        return (edit for entry in self._new_entries for edit in entry.edits)


def creates(edit: Edit, table_id: int) -> TypeGuard[CreateTable]:
    """Whether *edit* is the CREATE of that table."""
    return isinstance(edit, CreateTable) and edit.snapshot.table_id == table_id
