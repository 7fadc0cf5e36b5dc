"""Tables that had a name, or rows, until a statement: another partition may bring such rows behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from historian.schema.edits import CreateTable, DropTable, ForgetTable, RenameTable, TruncateTable
from historian.schema.gaps import ResumeTable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from connectors.readers.base import SchemaMet
    from historian.history.history import History
    from historian.history.timeline import TimelineEntry
    from historian.names import TableName
    from historian.positions.places import Place

__all__ = ["FormerTables", "Left"]


@dataclass(frozen=True, slots=True)
class Left:
    """A table that had a name, or rows, until a statement renamed, dropped or emptied it.

    Attributes:
        number: of the statement's entry; ``statement``: its text.
        has_rows: those from before the statement go on being its rows.
        by_stop: it had stopped, so nobody reads them.
        ends_name: no table has the name behind the statement.
        has_place: the statement's moment is that of its place in the source's log, which no row from before it shares.
    """

    table_id: int
    number: int
    has_rows: bool
    place: Place
    event_time_us: int
    statement: str = ""
    ends_name: bool = False
    by_stop: bool = False
    has_place: bool = False


@dataclass(frozen=True, slots=True)
class _Given:
    """That a statement gave a name to a table; ``table_id`` 0: nobody knows to which."""

    number: int
    event_time_us: int
    table_id: int = 0


class FormerTables:
    """What statements ended, along one walk over *history*. It is looked up when somebody asks first."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._new: list[TimelineEntry] = []
        self._left: dict[TableName, list[Left]] | None = None
        self._ended: dict[int, list[Left]] = {}
        self._given: dict[TableName, list[_Given]] = {}
        self._ids: dict[TableName, int] = {}
        self._stopped: dict[TableName, int] = {}

    def of(self, met: SchemaMet, has_passed: Callable[[Left], bool], owner: int | None = None) -> Left | None:
        """The table that the row of *met* is of, where a statement that another partition brought before has ended that.

        None where none has: the row is of the table that has the name now. *has_passed*: whether the row's partition has met a statement before it,
        where each partition has each statement. *owner*: the one table whose columns it has, of those that had the name in its moment.
        """

        def is_from_before(each: Left) -> bool:
            if each.place.file == met.place.file:
                # Behind the statement in its own partition a row is a later one, whatever its time says.
                return met.place.offset < each.place.offset
            if each.event_time_us == met.event_time_us and not each.has_place:
                if met.has_statements:
                    return not has_passed(each)
                if owner is not None and each.ends_name:
                    return each.table_id == owner
                # Where the name was free then, no table but the former one can have the row.
                return each.ends_name and not self._given_since(met, each)
            return each.event_time_us > met.event_time_us

        found = next((each for each in self._looked_up().get(met.table, ()) if is_from_before(each)), None)
        if found is None or not found.has_rows:
            return found
        # Under its other name it may have lost its rows since.
        ended = self._ended.get(found.table_id, ())
        return next((each for each in ended if each.number > found.number), found)

    def of_one_moment(self, met: SchemaMet) -> list[Left]:
        """What statements of other partitions ended at the very moment of a row of *met*, where nothing says that it is from before them, or from behind."""
        if met.has_statements:
            return []
        return [
            each
            for each in self._looked_up().get(met.table, ())
            if each.event_time_us == met.event_time_us
            and not each.has_place
            and each.place.file != met.place.file
            and (not each.ends_name or self._given_since(met, each))
        ]

    def named_in_moment(self, met: SchemaMet, left: Collection[Left]) -> set[int]:
        """The tables that had the name of *met* about statements of its moment, which are those of *left*; none where not all are known."""
        ids = {each.table_id for each in left}
        ids |= {each.table_id for former in left for each in self._given_since(met, former)}
        return set() if 0 in ids or not all(each.ends_name for each in left) else ids

    def left_at(self, name: TableName, time_us: int) -> list[Left]:
        """What statements of the moment *time_us* ended under *name*."""
        return [each for each in self._looked_up().get(name, ()) if each.event_time_us == time_us]

    def _given_since(self, met: SchemaMet, left: Left) -> list[_Given]:
        """How the name of *left* was given again by the moment of *met*, or may have been."""
        given = self._given.get(met.table, ())
        return [each for each in given if each.number >= left.number and each.event_time_us <= met.event_time_us]

    def stopped(self, name: TableName) -> int | None:
        """The table that had the name when its schema was no longer known, and no other has it since."""
        self._looked_up()
        return self._stopped.get(name)

    def note(self, entry: TimelineEntry) -> None:
        """Notes the next entry of the walk, which is of a statement."""
        if self._left is None:
            self._new.append(entry)
        else:
            self._leave(entry, self._left)

    def _looked_up(self) -> dict[TableName, list[Left]]:
        if self._left is None:
            self._left = {}
            for entry in (*self._history.entries, *self._new):
                self._leave(entry, self._left)
        return self._left

    def _leave(self, entry: TimelineEntry, left: dict[TableName, list[Left]]) -> None:
        moved: int | None = None
        for edit in entry.edits:
            if isinstance(edit, ForgetTable):
                self._given.setdefault(edit.table, []).append(_Given(entry.number, entry.event_time_us))
            if isinstance(edit, CreateTable):
                self._gets(edit.snapshot.name, edit.snapshot.table_id, entry, left)
            elif isinstance(edit, ForgetTable) and not edit.reason:
                moved = self._lost(edit.table, entry, left)
            elif isinstance(edit, ForgetTable) and moved is not None:
                # A stopped table that is renamed is forgotten under one name, then under the other.
                self._stopped[edit.table] = self._ids[edit.table] = moved
                moved = None
            elif isinstance(edit, ForgetTable) and edit.table in self._ids:
                self._stopped[edit.table] = self._ids[edit.table]
            elif isinstance(edit, ResumeTable):
                self._resumed(edit, left)
            elif isinstance(edit, (DropTable, RenameTable, TruncateTable)) and entry.place is not None:
                ended = Left(
                    edit.table_id,
                    entry.number,
                    isinstance(edit, RenameTable),
                    entry.place,
                    entry.event_time_us,
                    statement=entry.statement,
                    ends_name=not isinstance(edit, TruncateTable),
                    has_place=bool(entry.source),
                )
                left.setdefault(edit.table, []).append(ended)
                if isinstance(edit, RenameTable):
                    self._gets(edit.new, edit.table_id, entry, left)
                else:
                    self._ended.setdefault(edit.table_id, []).append(ended)

    def _gets(self, name: TableName, table_id: int, entry: TimelineEntry, left: dict[TableName, list[Left]]) -> None:
        """Notes that a table gets a name."""
        self._lost(name, entry, left)
        self._ids[name] = table_id
        self._given.setdefault(name, []).append(_Given(entry.number, entry.event_time_us, table_id))

    def _lost(self, name: TableName, entry: TimelineEntry, left: dict[TableName, list[Left]]) -> int | None:
        """Notes that a table that stopped, if one had the name, has no row under it from there on, though no edit drops it; gives its id."""
        stopped = self._stopped.pop(name, None)
        if stopped is not None and entry.place is not None:
            left.setdefault(name, []).append(
                Left(stopped, entry.number, False, entry.place, entry.event_time_us, by_stop=True)
            )
        return stopped

    def _resumed(self, edit: ResumeTable, left: dict[TableName, list[Left]]) -> None:
        """Notes that a table goes on. Where someone said what it was from its stop on, its rows are read, and what becomes of them is told again."""
        table_id = edit.snapshot.table_id
        self._stopped = {name: each for name, each in self._stopped.items() if each != table_id and name != edit.table}
        if edit.unknown_since is None:
            for name, former in left.items():
                left[name] = [each for each in former if each.table_id != table_id or not each.by_stop]
