"""The history of a source's tables: which schema was in force at a position of its log.

A version holds for rows whose log prefix contains its DDL. Nothing is guessed: a question that the history cannot
answer exactly is an error that says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from historian.edits import CreateTable, apply_all
from historian.errors import PositionAhead, PositionExpired, PositionUnknown, StoreError, UnknownTable
from historian.plans import Place
from historian.positions import LogPosition
from historian.prefix import Prefix, covers
from historian.schema import Catalog, Snapshot, TableName
from historian.timeline import Gap, TimelineEntry
from historian.versions import Binding, Version, step, touched_names

__all__ = ["History"]

V = TypeVar("V")


class History:
    """All versions of all tables of one source, built from its timeline in order. Grows by :meth:`record`.

    Args:
        empty: the catalog before the first entry; it carries the server's defaults.
    """

    def __init__(self, empty: Catalog | None = None) -> None:
        self._empty = Catalog() if empty is None else empty
        self._entries: list[TimelineEntry] = []
        self._places: dict[tuple[str, str, int], TimelineEntry] = {}
        self._made: list[tuple[Version, ...]] = []
        self._by_id: dict[int, list[Version]] = {}
        self._by_name: dict[TableName, list[Binding]] = {}
        self._tables: dict[TableName, Snapshot] = dict(self._empty.tables)
        self._unknown: dict[TableName, str] = dict(self._empty.unknown)
        self._rest = replace(self._empty, tables={}, unknown={})
        self._catalog: Catalog | None = self._empty
        self._earlier: tuple[int, Catalog] = (0, self._empty)
        self._gaps: tuple[Gap, ...] = ()
        self._resolved: LogPosition | None = None
        self._known_resolved: LogPosition | None = None
        self._servers: set[str] = set()

    @classmethod
    def of(
        cls,
        entries: Iterable[TimelineEntry],
        *,
        resolved: LogPosition | None = None,
        gaps: Iterable[Gap] = (),
        empty: Catalog | None = None,
    ) -> History:
        """The history of a whole timeline. Raises :class:`StoreError` where its numbers have holes."""
        history = cls(empty)
        for entry in entries:
            history.record(entry)
        for gap in gaps:
            history.add_gap(gap)
        if resolved is not None:
            history.resolve(resolved)
        return history

    @property
    def last_number(self) -> int:
        """Number of the last entry; 0 where there is none."""
        return len(self._entries)

    @property
    def first_number(self) -> int:
        """Number of the entry that the history begins with; 0 where there is none."""
        return min(1, len(self._entries))

    @property
    def origin(self) -> LogPosition:
        """Where the history begins. Raises :class:`StoreError` while nothing is recorded."""
        if not self._entries:
            raise StoreError("the history has no entry yet", expected="an entry that says where it begins")
        return self._entries[0].position

    @property
    def resolved(self) -> LogPosition:
        """Up to where the log has been read for statements; the origin at first."""
        return self.origin if self._resolved is None else self._resolved

    @property
    def entries(self) -> tuple[TimelineEntry, ...]:
        """The whole timeline."""
        return tuple(self._entries)

    def entry(self, number: int) -> TimelineEntry | None:
        """The entry of that number, or None."""
        return self._entries[number - 1] if 1 <= number <= len(self._entries) else None

    def recorded(self, place: Place, server: str) -> TimelineEntry | None:
        """The entry of the statement at *place* of *server*'s log, or None. A GTID is the same on every server."""
        return self._places.get(_key(place, server))

    def record(self, entry: TimelineEntry) -> None:
        """Appends *entry*. Recording a statement again, under whatever number, changes nothing.

        Raises:
            StoreError: the number is taken by another entry, or leaves a hole.
            EditConflict: an edit does not fit; the history is unchanged.
        """
        known = self.entry(entry.number)
        if known is not None and known != entry and not self._replayed(entry):
            raise StoreError(
                "a timeline entry is there already, with other content",
                where=f"entry {entry.number}",
                expected=f"{known.statement or known.edits!r} at {known.place or known.position}",
                found=f"{entry.statement or entry.edits!r} at {entry.place or entry.position}",
            )
        if known == entry or self._replayed(entry):
            return
        if entry.number != self.last_number + 1:
            raise StoreError(
                "the timeline has a hole", where="the next entry", expected=self.last_number + 1, found=entry.number
            )
        self._take(entry)
        self._entries.append(entry)
        if entry.place is not None:
            self._places[_key(entry.place, entry.server)] = entry

    def resolve(self, position: LogPosition) -> None:
        """Notes that the log has been read for statements up to *position*; an earlier one changes nothing.

        Raises:
            StoreError: neither of the resolved position and *position* contains the other.
        """
        if self._resolved is None or covers(position, self._resolved):
            self._resolved = position
        elif not covers(self._resolved, position):
            raise StoreError(
                "two readings of the log diverge", where="resolved position", expected=self._resolved, found=position
            )

    def add_gap(self, gap: Gap) -> None:
        """Notes a stretch of the log that was not read."""
        if gap not in self._gaps:
            self._gaps = (*self._gaps, gap)

    @property
    def catalog(self) -> Catalog:
        """All tables after the last entry."""
        if self._catalog is None:
            self._catalog = replace(self._rest, tables=dict(self._tables), unknown=dict(self._unknown))
        return self._catalog

    def catalog_at(self, number: int) -> Catalog:
        """All tables after the entry of that number; 0: before the first. Cheap for ascending numbers."""
        if number == self.last_number:
            return self.catalog
        if not 0 <= number < self.last_number:
            raise StoreError("no such timeline entry", expected=f"0 to {self.last_number}", found=number)
        reached, catalog = self._earlier if self._earlier[0] <= number else (0, self._empty)
        for entry in self._entries[reached:number]:
            catalog = apply_all(entry.edits, catalog)
        self._earlier = (number, catalog)
        return catalog

    def versions(self, table: TableName) -> tuple[Version, ...]:
        """What the name *table* stood for over time, oldest first; the end of a dropped table is a version too."""
        return tuple(bound.version for bound in self._by_name.get(table, ()) if bound.version is not None)

    def versions_of(self, table_id: int) -> tuple[Version, ...]:
        """All versions of a table under all its names, oldest first."""
        return tuple(self._by_id.get(table_id, ()))

    def versions_since(self, table_id: int, number: int) -> tuple[Version, ...]:
        """What became of a table after the version that a reader planned with; empty: it is still in force."""
        return tuple(version for version in self.versions_of(table_id) if version.number > number)

    def versions_by(self, number: int) -> tuple[Version, ...]:
        """The versions that the entry of that number made."""
        return self._made[number - 1] if 1 <= number <= len(self._made) else ()

    def timeline(self, table: TableName) -> tuple[TimelineEntry, ...]:
        """Entries after which the name *table* stood for something else than before, or for nothing."""
        return tuple(bound.entry for bound in self._by_name.get(table, ()))

    def at(
        self, table: TableName, position: LogPosition, ordinal: int | None = None, gtid: str | None = None
    ) -> Version:
        """The version of *table* in force at the end of the log prefix *position*, or for one row event behind it.

        Args:
            table: its name at that position.
            position: everything before the row's transaction.
            ordinal: of the row's event in its transaction, which begins at *position*.
            gtid: of the row's transaction; None in a log without GTIDs; there *position* may be of the event itself.

        Raises:
            PositionAhead: the log has not been read that far; retry later.
            PositionExpired: before the first version of that name.
            PositionUnknown: inside a gap, behind a statement that was not understood, or in a prefix that holds a later
                statement on the table but not an earlier one.
            UnknownTable: no table of that name there.
        """
        self._check_server(position, table)
        prefix = Prefix(position, gtid, ordinal)
        self._check_readable(prefix, table)
        bindings = self._by_name.get(table)
        if not bindings:
            raise UnknownTable("no such table in the history", where=str(table))
        bound = next((b for b in reversed(bindings) if prefix.holds(b.entry)), None)
        if bound is None:
            first = bindings[0].entry
            raise PositionExpired(
                "the position lies before the table's first version",
                where=f"{table} at {prefix}",
                expected=f"a position behind {first.place.gtid or first.position if first.place else first.position}",
            )
        version = bound.version
        if bound.unknown is not None:
            raise PositionUnknown(
                "the table's schema is not known there", where=f"{table} at {prefix}", found=bound.unknown
            )
        if version is None or version.snapshot is None:
            raise UnknownTable(
                "the table is gone there", where=f"{table} at {prefix}", found=bound.entry.statement or None
            )
        self._check_whole(version, prefix)
        return version

    def _check_server(self, position: LogPosition, table: TableName) -> None:
        """Refuses a file that several servers may have had; a position that a person wrote names none."""
        if position.gtids or position.server or not position.file:
            return
        servers = self._servers | {self.resolved.server} - {""}
        if len(servers) < 2:
            return
        raise PositionUnknown(
            "the history is of several servers, and the position does not say whose file it means",
            where=f"{table} at {position}",
            expected="GTIDs, or a position on one of " + ", ".join(sorted(servers)),
        )

    def _check_readable(self, prefix: Prefix, table: TableName) -> None:
        where = f"{table} at {prefix}"
        if prefix.position != self._known_resolved:
            if not covers(prefix.position, self.origin):
                raise PositionExpired(
                    "the position lies before the history's begin",
                    where=where,
                    expected=f"a position behind {self.origin}",
                )
            if not covers(self.resolved, prefix.position):
                raise PositionAhead("the log has not been read up to there", where=where, found=f"{self.resolved} read")
            self._known_resolved = prefix.position
        if prefix.transaction_beyond(self.resolved):
            raise PositionAhead("the log has not been read up to there", where=where, found=f"{self.resolved} read")
        for gap in self._gaps:
            before = covers(gap.start, prefix.position) and not prefix.transaction_beyond(gap.start)
            if not before and not covers(prefix.position, gap.end):
                raise PositionUnknown(
                    "the position lies inside a gap of the history",
                    where=where,
                    found=f"nothing read between {gap.start} and {gap.end}: {gap.reason}",
                )

    def _check_whole(self, version: Version, prefix: Prefix) -> None:
        """Refuses a prefix that lacks a statement which *version* was computed from."""
        for earlier in reversed(self._by_id[version.table_id]):
            if earlier.number > version.number:
                continue
            if not prefix.holds(earlier.entry):
                raise PositionUnknown(
                    "the position holds a later statement on the table but not an earlier one",
                    where=f"{version.name} at {prefix}",
                    expected=f"{earlier.entry.place.gtid if earlier.entry.place else earlier.entry.position} "
                    f"({earlier.entry.statement})",
                )
            if any(isinstance(edit, CreateTable) for edit in earlier.edits):
                return

    def _replayed(self, entry: TimelineEntry) -> bool:
        if entry.place is None:
            return False
        known = self.recorded(entry.place, entry.server)
        return known is not None and (known.number != entry.number or known == entry)

    def _take(self, entry: TimelineEntry) -> None:
        names = {name for edit in entry.edits for name in touched_names(edit)}
        tables = {name: self._tables[name] for name in names if name in self._tables}
        unknown = {name: self._unknown[name] for name in names if name in self._unknown}
        made = step(entry, replace(self._rest, tables=tables, unknown=unknown))
        self._made.append(made.versions)
        self._servers.add(entry.server)
        for version in made.versions:
            self._by_id.setdefault(version.table_id, []).append(version)
        for name, binding in made.bindings.items():
            self._by_name.setdefault(name, []).append(binding)
        for name in names:
            _set(self._tables, name, made.catalog.tables.get(name))
            _set(self._unknown, name, made.catalog.unknown.get(name))
        self._rest = replace(made.catalog, tables={}, unknown={})
        self._catalog = None


def _set(mapping: dict[TableName, V], name: TableName, value: V | None) -> None:
    if value is None:
        mapping.pop(name, None)
    else:
        mapping[name] = value


def _key(place: Place, server: str) -> tuple[str, str, int]:
    return ("", place.gtid, place.ordinal) if place.gtid else (server, place.file, place.offset)
