"""The history of a source's tables: which schema was in force at a position of its log.

A version holds for rows whose log prefix contains its DDL. Nothing is guessed: a question that the history cannot
answer exactly is an error that says why.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NoReturn

from historian.errors import PositionAhead, PositionExpired, PositionUnknown, StoreError, UnknownTable
from historian.history.chains import Bound, Name
from historian.history.horizon import left_of
from historian.history.index import VersionIndex
from historian.history.prefix import Prefix, covers
from historian.history.stored_timeline import StoredTimeline
from historian.history.timeline import Gap, Horizon, TimelineEntry, place_key
from historian.history.versions import Version
from historian.names import TableName
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.gaps import SkipLog
from historian.schema.snapshots import Catalog

__all__ = ["History"]

_REMEMBERED = 10_000
"""Positions that are known to lie in the history."""


class History:
    """All versions of all tables of one source, built from its timeline in order. Grows by :meth:`record`.

    Args:
        empty: the catalog before the first entry; it carries the server's defaults, and no tables.
        stored: what the timeline begins with, decoded as far as questions need it.
        horizon: where the history begins, if older versions were forgotten.
    """

    def __init__(
        self, empty: Catalog | None = None, *, stored: StoredTimeline | None = None, horizon: Horizon | None = None
    ) -> None:
        self._index = VersionIndex(Catalog() if empty is None else empty, stored, horizon)
        heads = {} if stored is None else stored.heads
        self._places = {place: number for number, (place, _) in heads.items() if place is not None}
        self._horizon = horizon
        self._gone = frozenset(() if horizon is None else horizon.gone)
        self._origin = None if horizon is None else horizon.position
        self._gaps: tuple[Gap, ...] = ()
        self._resolved: LogPosition | None = None
        self._servers_upto = 0
        self._servers: set[str] = set()
        self._readable: dict[LogPosition, None] = {}
        for number in self._index.skips:
            self._note_skips(self._index.entry(number))

    @classmethod
    def of(
        cls,
        entries: Iterable[TimelineEntry],
        *,
        resolved: LogPosition | None = None,
        gaps: Iterable[Gap] = (),
        empty: Catalog | None = None,
        horizon: Horizon | None = None,
    ) -> History:
        """The history of a whole timeline. Raises :class:`StoreError` where its numbers have holes behind *horizon*."""
        history = cls(empty, horizon=horizon)
        for entry in entries:
            if horizon is not None and entry.number <= horizon.number:
                history._append(entry)
            else:
                history.record(entry)
        for gap in gaps:
            history.add_gap(gap)
        if resolved is not None:
            history.resolve(resolved)
        return history

    @property
    def last_number(self) -> int:
        """Number of the last entry; 0 where there is none."""
        return max(self._index.last_number, 0 if self._horizon is None else self._horizon.number)

    @property
    def first_number(self) -> int:
        """Number of the entry that the history begins with, or begins behind; 0 where there is none."""
        return min(1, self.last_number) if self._horizon is None else self._horizon.number

    @property
    def origin(self) -> LogPosition:
        """Where the history begins. Raises :class:`StoreError` while nothing is recorded."""
        if self._origin is None:
            if not self._index.numbers:
                raise StoreError("the history has no entry yet", expected="an entry that says where it begins")
            self._origin = self._index.entry(self._index.numbers[0]).position
        return self._origin

    @property
    def horizon(self) -> Horizon | None:
        """Before which versions were forgotten; None where none were."""
        return self._horizon

    @property
    def resolved(self) -> LogPosition:
        """Up to where the log has been read for statements; the origin at first."""
        return self.origin if self._resolved is None else self._resolved

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Stretches of the log that were not read."""
        return self._gaps

    @property
    def entries(self) -> tuple[TimelineEntry, ...]:
        """The whole timeline."""
        return tuple(map(self._index.entry, self._index.numbers))

    @property
    def tables(self) -> Iterator[TableName]:
        """Each name that ever stood for a table, in no order."""
        return self._index.tables()

    @property
    def table_ids(self) -> tuple[int, ...]:
        """Ids of all tables that ever were, ascending."""
        return self._index.table_ids()

    def entry(self, number: int) -> TimelineEntry | None:
        """The entry of that number, or None."""
        return self._index.entry(number) if self._index.has(number) else None

    def recorded(self, place: Place, server: str) -> TimelineEntry | None:
        """The entry of the statement at *place* of *server*'s log, or None. A GTID is the same on every server."""
        number = self._places.get(place_key(place, server))
        return None if number is None else self._index.entry(number)

    def record(self, entry: TimelineEntry) -> None:
        """Appends *entry*. Recording a statement again, under whatever number, changes nothing.

        Raises:
            StoreError: the number is taken by another entry, or leaves a hole.
            EditConflict: an edit does not fit; the history is unchanged.
        """
        if self._replayed(entry):
            return
        known = self.entry(entry.number)
        if known is not None:
            raise StoreError(
                "a timeline entry is there already, with other content",
                where=f"entry {entry.number}",
                expected=f"{known.statement or known.edits!r} at {known.place or known.position}",
                found=f"{entry.statement or entry.edits!r} at {entry.place or entry.position}",
            )
        if entry.number != self.last_number + 1:
            raise StoreError(
                "the timeline has a hole", where="the next entry", expected=self.last_number + 1, found=entry.number
            )
        self._append(entry)

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
        return self._index.catalog()

    def catalog_at(self, number: int) -> Catalog:
        """All tables after the entry of that number; 0: before the first. Cheap for ascending numbers."""
        first = 0 if self._horizon is None else self._horizon.number
        if not first <= number <= self.last_number:
            raise StoreError("no such timeline entry", expected=f"{first} to {self.last_number}", found=number)
        return self._index.catalog_at(number)

    def versions(self, table: TableName) -> tuple[Version, ...]:
        """What the name *table* stood for over time, oldest first; the end of a dropped table is a version too."""
        bounds = self._index.name(table).bounds
        return tuple(self._index.chain(bound.table_id).at(bound.number) for bound in bounds if bound.table_id)

    def last_about(self, table: TableName) -> int:
        """Number of the last entry about the name *table*, known or not; 0 where there is none."""
        bounds = self._index.name(table).bounds
        return bounds[-1].number if bounds else 0

    def versions_of(self, table_id: int) -> tuple[Version, ...]:
        """All versions of a table under all its names, oldest first."""
        return tuple(self._index.chain(table_id))

    def read_versions(self, table_id: int) -> tuple[Version, ...]:
        """As :meth:`versions_of`, for those who look at each table once: no memory is taken up for later questions."""
        return self._index.read(table_id)

    def changed(self) -> Iterator[tuple[int, int, tuple[TableName, ...]]]:
        """Each table that ever was: its id, the number of the last entry on it, and its names, the last one last. Reads no version."""
        return self._index.changed()

    def versions_by(self, number: int) -> tuple[Version, ...]:
        """The versions that the entry of that number made."""
        return self._index.made_by(number)

    def timeline(self, table: TableName) -> tuple[TimelineEntry, ...]:
        """Entries after which the name *table* stood for something else than before, or for nothing."""
        return tuple(self._index.entry(bound.number) for bound in self._index.name(table).bounds)

    def cut_at(self, position: LogPosition) -> tuple[Horizon, tuple[TimelineEntry, ...]]:
        """The horizon of a history that begins at *position*, and what is left of the entries before it.

        Such a history answers all questions about *position* and what covers it as this one does.

        Raises:
            PositionExpired: before the history's begin.
            PositionAhead: the log has not been read up to there.
            PositionUnknown: a statement cannot be compared with *position*.
        """
        prefix = Prefix(position)
        self._check_read(prefix, str(position))
        number = self.first_number
        for following in self._index.numbers:
            if following > number and not prefix.holds(self._index.entry(following)):
                break
            number = max(number, following)
        return left_of(self._index, number, position, self._gone)

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
        name = self._index.name(table)
        if not name.bounds:
            raise UnknownTable("no such table in the history", where=str(table))
        held = name.order(self._index.entry).cut(prefix, self.origin)
        if held is None:
            held = self._held(name, prefix)
        if table in self._index.resumed:
            self._check_known(table, name.bounds[held:], prefix)
        if held == 0:
            self._raise_earlier(table, prefix, name.bounds[0].number)
        bound = name.bounds[held - 1]
        if bound.unknown is not None:
            raise PositionUnknown(
                "the table's schema is not known there", where=f"{table} at {prefix}", found=bound.unknown
            )
        version = self._index.chain(bound.table_id).at(bound.number) if bound.table_id else None
        if version is None or version.snapshot is None:
            statement = self._index.entry(bound.number).statement
            raise UnknownTable("the table is gone there", where=f"{table} at {prefix}", found=statement or None)
        self._check_whole(version, prefix)
        return version

    def _check_server(self, position: LogPosition, table: TableName) -> None:
        """Refuses a file that several servers may have had; a position that a person wrote names none."""
        if position.gtids or position.server or not position.file:
            return
        if self._servers_upto != self.last_number:
            self._servers_upto, self._servers = self.last_number, {entry.server for entry in self.entries}
        servers = (self._servers | {self.resolved.server}) - {""}
        if len(servers) < 2:
            return
        raise PositionUnknown(
            "the history is of several servers, and the position does not say whose file it means",
            where=f"{table} at {position}",
            expected="GTIDs, or a position on one of " + ", ".join(sorted(servers)),
        )

    def _held(self, name: Name, prefix: Prefix) -> int:
        """How many of the name's bounds lie at or before the last one that *prefix* holds."""
        bounds = name.bounds
        return next((i for i in range(len(bounds), 0, -1) if prefix.holds(self._index.entry(bounds[i - 1].number))), 0)

    def _raise_earlier(self, table: TableName, prefix: Prefix, number: int) -> NoReturn:
        if table in self._gone:
            raise UnknownTable("the table is gone there", where=f"{table} at {prefix}")
        first = self._index.entry(number)
        raise PositionExpired(
            "the position lies before the table's first version",
            where=f"{table} at {prefix}",
            expected=f"a position behind {first.place.gtid or first.position if first.place else first.position}",
        )

    def _check_readable(self, prefix: Prefix, table: TableName) -> None:
        where = f"{table} at {prefix}"
        self._check_read(prefix, where)
        for gap in self._gaps:
            if not _is_within(prefix, gap.start) and not covers(prefix.position, gap.end):
                raise PositionUnknown(
                    "the position lies inside a gap of the history",
                    where=where,
                    found=f"nothing read between {gap.start} and {gap.end}: {gap.reason}",
                )

    def _check_read(self, prefix: Prefix, where: str) -> None:
        if prefix.position not in self._readable:
            if not covers(prefix.position, self.origin):
                raise self._expired(where)
            if not covers(self.resolved, prefix.position):
                raise PositionAhead("the log has not been read up to there", where=where, found=f"{self.resolved} read")
            if len(self._readable) >= _REMEMBERED:
                self._readable.clear()
            self._readable[prefix.position] = None
        if self._horizon is not None and prefix.gtid and self.origin.read.contains_gtid(prefix.gtid):
            raise self._expired(where)
        if prefix.transaction_beyond(self.resolved):
            raise PositionAhead("the log has not been read up to there", where=where, found=f"{self.resolved} read")

    def _expired(self, where: str) -> PositionExpired:
        return PositionExpired(
            "the position lies before the history's begin", where=where, expected=f"a position behind {self.origin}"
        )

    def _check_known(self, table: TableName, later: Iterable[Bound], prefix: Prefix) -> None:
        """Refuses a prefix between where a table was last known and where it went on."""
        for bound in later:
            version = self._index.chain(bound.table_id).at(bound.number) if bound.table_id else None
            since = None if version is None else version.unknown_since
            if version is not None and since is not None and not _is_within(prefix, since):
                raise PositionUnknown(
                    "the table's schema is not known there",
                    where=f"{table} at {prefix}",
                    found=f"nothing known between {since} and {version.entry.position}",
                )

    def _check_whole(self, version: Version, prefix: Prefix) -> None:
        """Refuses a prefix that lacks a statement which *version* was computed from."""
        chain = self._index.chain(version.table_id)
        index = bisect_left(chain.numbers, version.number)
        held = chain.order().cut(prefix, self.origin)
        if held is not None and held > index:
            return
        while True:
            earlier = self._index.entry(chain.numbers[index])
            if not prefix.holds(earlier):
                raise PositionUnknown(
                    "the position holds a later statement on the table but not an earlier one",
                    where=f"{version.name} at {prefix}",
                    expected=f"{earlier.place.gtid if earlier.place else earlier.position} ({earlier.statement})",
                )
            if chain.begins_anew(index) or not index:
                return
            index -= 1

    def _replayed(self, entry: TimelineEntry) -> bool:
        known = self.entry(entry.number)
        if known == entry:
            return True
        if self._horizon is not None and entry.number <= self._horizon.number:
            # What is left of an entry there says nothing about its edits.
            return known is None or known.place == entry.place
        if entry.place is None or entry.corrects:
            return False
        number = self._places.get(place_key(entry.place, entry.server))
        return number is not None and number != entry.number

    def _append(self, entry: TimelineEntry) -> None:
        self._index.take(entry)
        if entry.place is not None and not entry.corrects:
            self._places[place_key(entry.place, entry.server)] = entry.number
        self._note_skips(entry)

    def _note_skips(self, entry: TimelineEntry) -> None:
        for edit in entry.edits:
            if isinstance(edit, SkipLog):
                self.add_gap(Gap(start=edit.start, end=entry.position, reason=edit.reason))


def _is_within(prefix: Prefix, position: LogPosition) -> bool:
    """Whether all of *prefix* lies at or before *position*."""
    return covers(position, prefix.position) and not prefix.transaction_beyond(position)
