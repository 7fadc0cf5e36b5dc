"""Prepared XA transactions on the driver: which tables, under which schemas, have rows in them, and which range needs them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectors.bootstrap import touched_behind
from connectors.readers.base import Bound, TableMapped
from historian.plans import LogRange, Place, PreparedRows, PreparedTable, RolledBack
from historian.positions import LogPosition, PreparedXa
from historian.schema import Catalog, Snapshot, TableName
from historian.segments import brings

if TYPE_CHECKING:
    from connectors.readers.base import Reader

__all__ = ["Commit", "FindPrepared", "Found", "PreparedSchemas", "attached", "find_prepared", "prepared_table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """An XA COMMIT at *place*, and the rows from before the last bound that count there."""

    place: Place
    rows: PreparedRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An XA transaction that was prepared before the scan that met its XA COMMIT, and that nobody knew of.

    Attributes:
        maps: the first TABLE_MAP of each table in it.
        touched: tables that statements between it and the scan's start are on.
    """

    xa: PreparedXa
    maps: tuple[TableMapped, ...]
    touched: Collection[TableName]


FindPrepared = Callable[[str, Place], Found]


def find_prepared(reader: Reader, start: LogPosition) -> FindPrepared:
    """What looks such transactions up for a scan from *start* on, by their xid and the place of the XA COMMIT."""

    def find(xid: str, place: Place) -> Found:
        xa, maps = reader.look_back(xid, place)
        begin = LogPosition(flavor=reader.flavor, gtids="", file=xa.file, offset=xa.offset, server=xa.server)
        touched, _ = touched_behind(reader, begin, Catalog(), until=start)
        return Found(xa=xa, maps=maps, touched=touched)

    return find


class PreparedSchemas:
    """Remembers, along one walk, under which catalog each pending XA transaction was prepared."""

    def __init__(self, pending: Sequence[PreparedXa]) -> None:
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

    def version(self, xa: PreparedXa) -> int:
        """Number of the last entry before *xa*; 0: it was prepared behind the last bound, or it is not known."""
        return xa.version or self._versions.get(_key(xa), 0)

    def catalog(self, number: int) -> Catalog | None:
        """All tables after that entry, where a transaction of this walk was prepared there."""
        return self._catalogs.get(number)


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
