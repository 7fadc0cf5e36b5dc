"""Versions by table and by name, and catalogs, over one timeline; what is stored is read when it is first asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import TypeVar

from historian.history.chains import Bound, Chain, Name, bounds_of
from historian.history.stored_timeline import EditRow, StoredTimeline
from historian.history.timeline import Horizon, TimelineEntry
from historian.history.versions import Version, step, touched_names
from historian.names import TableName
from historian.schema.applying import apply, apply_all
from historian.schema.edits import DropDatabase, Edit, SetDatabase
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Catalog, Snapshot

__all__ = ["VersionIndex"]

V = TypeVar("V")
_FEW = 200
"""Entries that are replayed rather than each table's version looked up."""


class VersionIndex:
    """Grows by :meth:`take`.

    Attributes:
        resumed: names of tables that stopped once and went on.
        skips: numbers of stored entries behind which the log was not read.

    Args:
        empty: the catalog before the first entry, without tables.
        stored: what the timeline begins with.
        horizon: before which versions were forgotten.
    """

    def __init__(self, empty: Catalog, stored: StoredTimeline | None = None, horizon: Horizon | None = None) -> None:
        if horizon is not None:
            empty = replace(empty, next_table_id=horizon.next_table_id, next_column_id=horizon.next_column_id)
        self._empty = empty
        self._stored = StoredTimeline({}, (), str) if stored is None else stored
        self._entries: dict[int, TimelineEntry | None] = dict.fromkeys(self._stored.heads)
        self._of_table: dict[int, list[EditRow]] = {}
        # Most names are one table's for ever, and one number is held in less memory than a mapping.
        self._of_name: dict[TableName, tuple[int] | dict[int, None]] = {}
        self._of_none: dict[TableName, list[EditRow]] = {}
        self._of_database: list[EditRow] = []
        self.resumed: set[TableName] = set()
        self.skips: list[int] = []
        self._chains: dict[int, Chain] = {}
        self._names: dict[TableName, Name] = {}
        self._made: dict[int, tuple[Version, ...]] = {}
        self._group()
        self._rests: dict[int, Catalog] = {}
        self._rest = self._without_tables(self.last_number)
        self._tables: dict[TableName, Snapshot] | None = None
        self._unknown: dict[TableName, str] = {}
        self._catalog: Catalog | None = None
        self._earlier: tuple[int, Catalog] | None = None

    def _group(self) -> None:
        for row in self._stored.rows:
            table_id, name, kind = row[2], TableName(row[3], row[4]), row[5]
            if kind == "resume_table":
                self._note_resumed(self._stored.edit(row))
            elif kind == "skip_log":
                self.skips.append(row[0])
            if table_id:
                self._of_table.setdefault(table_id, []).append(row)
                holders = self._of_name.setdefault(name, (table_id,))
                if isinstance(holders, dict):
                    holders[table_id] = None
                elif table_id not in holders:
                    self._of_name[name] = dict.fromkeys((*holders, table_id))
            elif name.table:
                self._of_none.setdefault(name, []).append(row)
            else:
                self._of_database.append(row)

    def _note_resumed(self, edit: Edit) -> None:
        if isinstance(edit, ResumeTable):
            self.resumed |= {edit.table, edit.snapshot.name}

    @property
    def last_number(self) -> int:
        """Number of the last entry; 0 where there is none."""
        return next(reversed(self._entries), 0)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of all entries, ascending."""
        return tuple(self._entries)

    def has(self, number: int) -> bool:
        """Whether there is an entry of that number."""
        return number in self._entries

    def entry(self, number: int) -> TimelineEntry:
        """The entry of that number. Raises :class:`KeyError` where there is none."""
        entry = self._entries[number]
        if entry is None:
            entry = self._entries[number] = self._stored.entry(number)
        return entry

    def name(self, table: TableName) -> Name:
        """What the name *table* stood for over time; nothing, where it never was a table's."""
        found = self._names.get(table)
        if found is None:
            of_tables = (self._of_table[table_id] for table_id in self._of_name.get(table, ()))
            rows = sorted(chain(self._of_none.get(table, ()), *of_tables), key=itemgetter(0, 1))
            found = Name(bounds_of(table, rows, self._stored))
            if found.bounds:
                self._names[table] = found
        return found

    def chain(self, table_id: int) -> Chain:
        """The versions of a table under all its names; none where it never was."""
        found = self._chains.get(table_id)
        if found is None:
            found = Chain(self.entry, self._stored, self._of_table.get(table_id, ()))
            if found.numbers:
                self._chains[table_id] = found
        return found

    def read(self, table_id: int) -> tuple[Version, ...]:
        """The versions of a table as :meth:`chain` has them, of which nothing is kept that was not kept already."""
        if table_id in self._chains:
            return tuple(self._chains[table_id])

        def entry(number: int) -> TimelineEntry:
            return self._entries[number] or self._stored.entry(number)

        return tuple(Chain(entry, self._stored, self._of_table.get(table_id, ())))

    def made_by(self, number: int) -> tuple[Version, ...]:
        """The versions that the entry of that number made, in the order of its edits."""
        if number in self._made:
            return self._made[number]
        ids = dict.fromkeys(row[2] for row in self._stored.rows_of(number) if row[2])
        return tuple(self.chain(table_id).at(number) for table_id in ids)

    def tables(self) -> Iterator[TableName]:
        """Each name that ever stood for a table, in no order."""
        yield from {*self._of_name, *self._of_none, *self._names}

    def table_ids(self) -> tuple[int, ...]:
        """Ids of all tables that ever were, ascending."""
        return tuple(sorted({*self._of_table, *self._chains}))

    def changed(self) -> Iterator[tuple[int, int, tuple[TableName, ...]]]:
        """Each table's id, the number of the last entry on it, and its names, the last one last."""
        for table_id in self.table_ids():
            rows = self._of_table.get(table_id, ())
            names = {row[0]: TableName(row[3], row[4]) for row in rows}  # the last edit of each entry
            stored = rows[-1][0] if rows else 0
            if table_id in self._chains and self._chains[table_id].numbers[-1] > stored:
                names |= {each.number: each.name for each in self._chains[table_id] if each.number > stored}
            yield table_id, next(reversed(names)), tuple(dict.fromkeys(reversed(names.values())))[::-1]

    def database_edits(self) -> Iterator[tuple[int, SetDatabase | DropDatabase]]:
        """Edits of databases, with the numbers of their entries, in order."""
        stored = ((row[0], self._stored.edit(row)) for row in self._of_database)
        taken = ((number, edit) for number in self._made for edit in self.entry(number).edits)
        for number, edit in chain(stored, taken):
            if isinstance(edit, (SetDatabase, DropDatabase)):
                yield number, edit

    def take(self, entry: TimelineEntry) -> None:
        """Appends *entry*. Raises :class:`EditConflict`, and changes nothing, where an edit does not fit."""
        names = {name for edit in entry.edits for name in touched_names(edit)}
        tables, unknown = self._held(names, entry.number)
        made = step(entry, replace(self._rest, tables=tables, unknown=unknown))
        self._entries[entry.number] = entry
        self._made[entry.number] = made.versions
        for edit in entry.edits:
            self._note_resumed(edit)
        for version in made.versions:
            self._chains.setdefault(version.table_id, self.chain(version.table_id)).add(version)
        for name, bound in made.bindings.items():
            table_id = 0 if bound.version is None else bound.version.table_id
            self._names.setdefault(name, self.name(name)).add(Bound(entry.number, table_id, bound.unknown), entry)
        self._rest = self._rests[entry.number] = replace(made.catalog, tables={}, unknown={})
        self._catalog = None
        if self._tables is not None:
            for name in names:
                _set(self._tables, name, made.catalog.tables.get(name))
                _set(self._unknown, name, made.catalog.unknown.get(name))

    def catalog(self) -> Catalog:
        """All tables after the last entry."""
        if self._catalog is None:
            if self._tables is None:
                self._tables, self._unknown = self._held(self.tables(), self.last_number)
            self._catalog = replace(self._rest, tables=dict(self._tables), unknown=dict(self._unknown))
        return self._catalog

    def catalog_at(self, number: int) -> Catalog:
        """All tables after the entry of that number, which must not lie before the horizon."""
        if number == self.last_number:
            return self.catalog()
        if number == 0:
            return self._empty
        if self._earlier is not None and 0 <= number - self._earlier[0] <= _FEW:
            reached, catalog = self._earlier
            for following in range(reached + 1, number + 1):
                catalog = apply_all(self.entry(following).edits, catalog)
        else:
            tables, unknown = self._held(self.tables(), number)
            catalog = replace(self._without_tables(number), tables=tables, unknown=unknown)
        self._earlier = (number, catalog)
        return catalog

    def _held(self, names: Iterable[TableName], number: int) -> tuple[dict[TableName, Snapshot], dict[TableName, str]]:
        """Schemas of those *names* that are tables after the entry *number*, and why others are not known."""
        tables: dict[TableName, Snapshot] = {}
        unknown: dict[TableName, str] = {}
        for name in names:
            bounds = self.name(name).bounds
            at = bisect_right(bounds, number, key=lambda bound: bound.number)
            bound = bounds[at - 1] if at else None
            if bound is None:
                continue
            version = self.chain(bound.table_id).at(bound.number) if bound.table_id else None
            if version is not None and version.snapshot is not None and version.name == name:
                tables[name] = version.snapshot
            if bound.unknown is not None:
                unknown[name] = bound.unknown
        return tables, unknown

    def _without_tables(self, number: int) -> Catalog:
        """Databases and counters after the entry *number*."""
        if number in self._rests:
            return self._rests[number]
        catalog = self._empty
        for row in self._of_database:
            if row[0] <= number:
                catalog = apply(self._stored.edit(row), catalog)
        upto = self._stored.before(number + 1)
        return replace(
            catalog,
            next_table_id=max(catalog.next_table_id, max(map(itemgetter(2), upto), default=0) + 1),
            next_column_id=max(catalog.next_column_id, max(map(itemgetter(6), upto), default=0) + 1),
        )


def _set(mapping: dict[TableName, V], name: TableName, value: V | None) -> None:
    if value is None:
        mapping.pop(name, None)
    else:
        mapping[name] = value
