"""Prepared XA transactions on the driver: which tables, under which schemas, have rows in them, and which range needs them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from connectors.readers.base import Bound, TableMapped, XaCommitted
from connectors.readers.binlog.events.crosscheck import mismatch
from connectors.tracking.first_schema import touched_behind
from historian.names import TableName
from historian.plans.plans import LogRange, PreparedRows, PreparedTable, RolledBack
from historian.plans.segments import brings
from historian.positions import LogPosition, PreparedXa
from historian.positions.places import Place
from historian.schema.snapshots import SEQUENCE, Catalog, Snapshot

if TYPE_CHECKING:
    from connectors.readers.base import Reader
    from historian.history.history import History

__all__ = [
    "Commit",
    "CommittedXa",
    "FindPrepared",
    "LocatedXa",
    "PreparedSchemas",
    "Stop",
    "WalkedXa",
    "attached",
    "find_prepared",
    "prepared_table",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """An XA COMMIT at *place*, and the rows from before the last bound that count there."""

    place: Place
    rows: PreparedRows


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedXa:
    """An XA transaction that was prepared before the scan that met its XA COMMIT, and that nobody knew of.

    Attributes:
        maps: the first TABLE_MAP of each table in it.
        touched: tables that statements between it and the scan's start are on.
    """

    xa: PreparedXa
    maps: tuple[TableMapped, ...]
    touched: Collection[TableName]


class WalkedXa(Protocol):
    """XA COMMITs, and what was rolled back, as a walk along the log has met them."""

    commits: list[Commit]
    rolled_back: list[RolledBack]


FindPrepared = Callable[[str, Place], LocatedXa]


def find_prepared(reader: Reader, start: LogPosition) -> FindPrepared:
    """What looks such transactions up for a scan from *start* on, by their xid and the place of the XA COMMIT."""

    def find(xid: str, place: Place) -> LocatedXa:
        xa, maps = reader.look_back(xid, place)
        begin = LogPosition(flavor=reader.flavor, gtids="", file=xa.file, offset=xa.offset, server=xa.server)
        touched, _ = touched_behind(reader, begin, Catalog(), until=start)
        return LocatedXa(xa=xa, maps=maps, touched=touched)

    return find


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why rows of a captured table that are committed cannot be read; ``table_id`` 0: it was never known."""

    table: TableName
    reason: str
    table_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedXa:
    """An XA COMMIT with the captured tables that it touches, by id, and those that stop."""

    commit: Commit
    touched: frozenset[int]
    stops: tuple[Stop, ...]


class PreparedSchemas:
    """Remembers, along one walk, under which catalog each pending XA transaction was prepared.

    Args:
        pending: at the walk's start; *base*: number of the last entry there.
        captured, flavor: as of the walk.
        find: looks up transactions that nobody knew of; None: a log without any.
    """

    def __init__(
        self,
        history: History,
        pending: Sequence[PreparedXa],
        base: int,
        captured: Callable[[TableName], bool],
        flavor: str,
        find: FindPrepared | None,
    ) -> None:
        self._history, self._base = history, base
        self._captured, self._flavor, self._find = captured, flavor, find
        self._versions = {_key(xa): xa.version for xa in pending}
        self._catalogs: dict[int, Catalog] = {}

    def noted(self, bound: Bound, number: int, catalog: Catalog) -> Bound:
        """*bound* with versions in its pending transactions: new ones were prepared after the entry *number*.

        A bound stands before each statement, so none lies between them and it.
        """
        pending = bound.position.pending
        if not pending:
            return bound
        for xa in pending:
            if not xa.version and _key(xa) not in self._versions:
                self._versions[_key(xa)] = number
                self._catalogs[number] = catalog
        versioned = tuple(replace(xa, version=xa.version or self._versions[_key(xa)]) for xa in pending)
        return replace(bound, position=replace(bound.position, pending=versioned))

    def settle(self, item: XaCommitted, catalog: Catalog) -> CommittedXa | None:
        """What an XA COMMIT brings under *catalog*; None: the rows stand behind the last bound, and were met in this walk."""
        reasons: dict[TableName, str] = {}
        if item.xa is None:
            xa, version, reasons = self._found(item)
        else:
            xa, version = item.xa, item.xa.version or self._versions.get(_key(item.xa), 0)
        if not version:
            return None
        first = self._history.first_number
        then = self._catalogs.get(version) or self._history.catalog_at(max(version, first))
        present = {snapshot.table_id: snapshot for snapshot in catalog.tables.values()}
        tables, stops, touched = [], [], set()
        for name in xa.tables:
            before = then.tables.get(name)
            now = None if before is None else present.get(before.table_id)
            if before is None:
                known = then.unknown.get(name)
                if self._captured(name) and known != SEQUENCE:
                    stops.append(Stop(table=name, reason=known or "its CREATE TABLE is not in the log that was read"))
            elif now is not None and self._captured(now.name):
                touched.add(now.table_id)
                why = reasons.get(name)
                if why is None and version < first and self._is_forgotten(now.table_id, version):
                    why = "its schema where the rows were prepared is forgotten"
                table = None if why else prepared_table(name, before, now)
                if table is not None:
                    tables.append(table)
                else:
                    why = why or "its schema changed since in a way that its rows cannot follow"
                    stops.append(Stop(table=now.name, reason=why, table_id=now.table_id))
        commit = Commit(place=item.place, rows=PreparedRows(xa=xa, tables=tuple(tables)))
        named_stops = tuple(replace(stop, reason=f"{stop.reason}\n  for {xa}") for stop in stops)
        return CommittedXa(commit=commit, touched=frozenset(touched), stops=named_stops)

    def _is_forgotten(self, table_id: int, version: int) -> bool:
        first = self._history.first_number
        held = [each.number for each in self._history.versions_of(table_id) if each.number <= first]
        return bool(held) and held[-1] > version

    def _found(self, item: XaCommitted) -> tuple[PreparedXa, int, dict[TableName, str]]:
        """A transaction from before the walk's start that nobody knew of, and why tables in it cannot be read."""
        assert self._find is not None  # noqa: S101 - whoever walks a log gives it
        found = self._find(item.xid, item.place)
        catalog = self._history.catalog_at(self._base)
        reasons = dict.fromkeys(found.touched, "its schema where the rows were prepared is not known")
        for mapped in found.maps:
            snapshot = catalog.tables.get(mapped.table)
            difference = None if snapshot is None else mismatch(snapshot, mapped.columns, self._flavor)
            if difference is not None:
                reasons[mapped.table] = f"the log's TABLE_MAP does not fit the schema in force\n{difference}"
        return found.xa, self._base, reasons


def prepared_table(name: TableName, before: Snapshot, now: Snapshot) -> PreparedTable | None:
    """The table *name*, prepared under *before*, where *now* is in force; None where its rows cannot be brought there."""
    if before == now:
        return PreparedTable(table_id=now.table_id, name=name)
    return PreparedTable(table_id=now.table_id, name=name, snapshot=before) if brings(before, now) else None


def attached(
    ranges: Sequence[LogRange], rolled_back: Sequence[RolledBack], commits: Sequence[Commit]
) -> tuple[LogRange, ...]:
    """*ranges*, each with what was rolled back in it, and with the rows from before it that are committed in it."""
    if not rolled_back and not commits:
        return tuple(ranges)
    return tuple(
        replace(
            each,
            rolled_back=tuple(part for part in rolled_back if _is_in(each, part.file, part.offset)),
            prepared=tuple(
                commit.rows
                for commit in commits
                if _is_in(each, commit.place.file, commit.place.offset) and not _is_prepared_in(each, commit.rows.xa)
            ),
        )
        for each in ranges
    )


def _is_in(planned: LogRange, file: str, offset: int) -> bool:
    return file == planned.file and planned.start <= offset < planned.end


def _is_prepared_in(planned: LogRange, xa: PreparedXa) -> bool:
    return xa.server == planned.server and _is_in(planned, xa.file, xa.offset)


def _key(xa: PreparedXa) -> tuple[str, str, int]:
    return xa.xid, xa.file, xa.offset
