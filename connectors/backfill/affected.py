"""The rows of a child that foreign keys may have changed in a plan's log: told by their values, and read as of the plan's end.

Why these rows are enough is in ``docs/explanation/backfill.md``. Where something of that is not sure, all rows of the table are read.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.backfill.changes import TableChanges, changes_behind
from connectors.backfill.foreign_keys.child_keys import ChildKey, Unbounded, child_keys
from connectors.backfill.foreign_keys.referenced import MOST_VALUES, ReferencedValues
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.snapshots import keep_table, snapshot_behind
from connectors.backfill.told_rows import CopiedRows, ToldRows, of_copied, plain_key, read_told
from connectors.readers.binlog.selected.failures import is_interrupted, is_of_a_changed_table
from connectors.tracking.copier import ParentLog
from historian.changelog.missing_columns import lacking
from historian.changelog.row_images import rows_where
from historian.errors import SourceError
from historian.plans.key_ranges import Key
from historian.plans.plans import Plan, PlannedTable, TableCopy
from historian.plans.row_values import RowValues, stored_keys

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.backfill.spool import Spool
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.names import TableName
    from historian.schema.snapshots import ColumnType

__all__ = ["AffectedRows"]

_log = logging.getLogger(__name__)


class AffectedRows:
    """Reads the rows of children for a *plan*.

    Args:
        address: of the source.
        tracker: whose history has come to the plan's end.
        log: what the plan's log has of parents.
    """

    def __init__(self, address: ServerAddress, tracker: Tracker, plan: Plan, log: ParentLog) -> None:
        self._address = address
        self._tracker = tracker
        self._plan = plan
        self._log = log

    def read_all(
        self,
        tables: Iterable[PlannedTable],
        tells_rows: Callable[[TableName], bool],
        spool: Spool,
        first: int,
        copied: Mapping[int, Key],
    ) -> dict[int, TableCopy | None]:
        """What :meth:`read` gives of *tables*, by id, without those all of whose rows are to be read.

        Args:
            tells_rows: whether targets tell rows by their values, by a table's name.
            first: number of the first chunks.
            copied: up to which key those are copied, by id, whose first copy is under way.
        """
        found: dict[int, TableCopy | None] = {}
        for number, table in enumerate(tables, first):
            snapshot = table.versions[-1].snapshot
            if snapshot is None or not tells_rows(snapshot.name):
                continue
            try:
                found[table.table_id] = self.read(table, spool, number, copied.get(table.table_id))
            except Unbounded as why:
                if table.table_id in copied:
                    text = "table %s: its copy ends with all of its rows at once, since a foreign key changed some: %s"
                    _log.warning(text, snapshot.name, why)
                else:
                    _log.info("table %s: all of its rows are compared: %s", snapshot.name, why)
        return found

    def read(self, table: PlannedTable, spool: Spool, number: int, upto: Key | None = None) -> TableCopy | None:
        """Reads the rows of *table* that may have changed, as of the plan's end, into *spool*; None: none can have.

        Args:
            table: a child as it is in the plan; no other table does to it what it does to its own children.
            number: of the chunks among all that the plan reads.
            upto: the key up to which it is copied, where its first copy is under way; None: targets hold all of it.

        Returns:
            The copy, whose ``only`` says which rows those are; it does not say why they are compared.

        Raises:
            Unbounded: all rows are to be read. The spool has none then.
            ConnectionLost: the server does not answer.
            SourceError: it refuses a SELECT, or cannot say what is visible.
            LogPurged: the log is gone.
        """
        version, snapshot = table.versions[-1], table.versions[-1].snapshot
        if len(table.versions) != 1 or version.place is not None or snapshot is None or not snapshot.primary_key:
            raise Unbounded("statements are on it, or it has no primary key")
        links = child_keys(self._address, self._tracker, self._plan, self._log, snapshot)
        key = plain_key(snapshot)
        copied = of_copied(snapshot, self._tracker.reader.flavor, upto)
        wanted, changed = self._of_plan(table, links, key, copied)
        if not wanted:
            return None
        only, (rows, size_bytes) = self._selected(table, links, wanted, changed, spool, number, upto)
        return TableCopy(
            key=snapshot.primary_key,
            behind=upto,
            upto=upto,
            is_done=upto is None,
            rows=rows,
            only=only,
            size_bytes=size_bytes,
        )

    def read_again(self, table: PlannedTable, spool: Spool, number: int) -> None:
        """Reads the rows that the plan's copy of *table* tells of, as :meth:`read` did, whose errors it has.

        Raises:
            Unbounded: foreign keys have moved others among them since.
        """
        snapshot = table.versions[-1].snapshot
        assert table.copy is not None and snapshot is not None  # noqa: S101, PT018 the plan copies it
        links = child_keys(self._address, self._tracker, self._plan, self._log, snapshot)
        only, _ = self._selected(table, links, table.copy.only, {}, spool, number, table.copy.upto)
        if only != table.copy.only:
            raise Unbounded("foreign keys have moved other rows meanwhile")

    def _of_plan(
        self,
        table: PlannedTable,
        links: Sequence[ChildKey],
        key: Sequence[tuple[int, ColumnType]],
        copied: CopiedRows,
    ) -> tuple[tuple[RowValues, ...], dict[Key, None]]:
        """Which rows foreign keys may have changed in the plan's log, and the keys of those that it tells of itself."""
        reader, log = self._tracker.reader, self._log
        parents = {link.parent for link in links}
        tables = [each for each in log.tables if each.table_id in parents]
        if any(len(each.versions) != 1 or each.versions[0].place is not None for each in tables):
            raise Unbounded("statements are on a parent")
        if any(each.table_id in link.others for each in log.tables for link in links):
            raise Unbounded("rows changed of a table that may have been a parent")
        own = [each for each in self._plan.tables if each.table_id == table.table_id]
        found = [ReferencedValues(link.referenced) for link in links]
        changed: dict[Key, None] = {}
        # A reader of its own: the tracker's keeps the log that it scanned last, which a plan is about to be decoded from.
        with closing(copy.copy(reader)) as mine:
            for planned in log.ranges:
                for chunk in mine.read(planned, (*tables, *own), stops=True, log=reader.cached(planned)):
                    if chunk.stopped:
                        raise Unbounded("changes cannot be read")
                    for link, values in zip(links, found, strict=True):
                        if link.parent == chunk.table_id:
                            values.take(chunk.rows)
                    if chunk.table_id == table.table_id:
                        changed |= _keys(chunk.rows, key, copied)
                        if len(changed) > MOST_VALUES:
                            raise Unbounded("too many of its rows are in the log")
        wanted = _joined(link.rows(values) for link, values in zip(links, found, strict=True))
        return wanted, changed

    def _selected(
        self,
        table: PlannedTable,
        links: Sequence[ChildKey],
        wanted: tuple[RowValues, ...],
        changed: Mapping[Key, None],
        spool: Spool,
        number: int,
        upto: Key | None,
    ) -> tuple[tuple[RowValues, ...], tuple[int, int]]:
        """Reads the rows into *spool*: which they are, and how many, with their bytes."""
        version, plan, flavor = table.versions[-1], self._plan, self._tracker.reader.flavor
        snapshot = version.snapshot
        assert snapshot is not None  # noqa: S101 the table is there
        moving = {link.parent: link.version for link in links if link.moves}
        with snapshot_behind(self._address, flavor, plan.end) as source:
            prepare_session(source.connection)
            try:
                keep_table(source, snapshot.name)
            except SourceError as error:
                if is_of_a_changed_table(error) or is_interrupted(error):
                    raise Unbounded(str(error).splitlines()[0]) from error
                raise
            # The log of all that the snapshot can hold is read before the SELECT: foreign keys may have moved rows between P and that.
            changes = changes_behind(
                self._tracker, source.server, plan.end, plan.version, {**moving, table.table_id: version}
            )
            wanted = _widened(wanted, links, changes, snapshot.primary_key)
            only = _joined((*wanted, RowValues(columns=snapshot.primary_key, values=tuple(changed))))
            if sum(len(each.values) for each in only) > MOST_VALUES:
                raise Unbounded("too many values")
            told = ToldRows(only=only, upto=upto)
            found = read_told(source, flavor, plan, table, told, changes[table.table_id], spool, number)
        return only, found


def _widened(
    wanted: tuple[RowValues, ...],
    links: Sequence[ChildKey],
    changes: Mapping[int, TableChanges],
    key: Collection[int],
) -> tuple[RowValues, ...]:
    """*wanted* with the rows that foreign keys may have moved behind the plan: a row that a SELECT finds was one of them before, too."""
    for each in changes.values():
        if each.void:
            raise Unbounded(each.void)
    columns = {*key, *(column_id for each in wanted for column_id in each.columns)}
    moved = []
    for link in links:
        if not link.moves:
            continue
        values = ReferencedValues(link.referenced)
        for rows in changes[link.parent]:
            values.take(rows)
        rows_moved = link.moved(values)
        is_told = any(each.columns == link.columns for each in wanted)
        if rows_moved == RowValues(columns=link.columns) or (not is_told and columns.isdisjoint(link.columns)):
            continue
        if not is_told:
            raise Unbounded("a foreign key moves rows behind the plan that another one has changed in it")
        moved.append(rows_moved)
    return _joined((*wanted, *moved))


def _joined(found: Iterable[RowValues]) -> tuple[RowValues, ...]:
    """Those that tell rows, one for each tuple of columns."""
    joined: dict[tuple[int, ...], RowValues] = {}
    for each in found:
        if each.values or each.nulls:
            held = joined.get(each.columns, RowValues(columns=each.columns))
            values = tuple(dict.fromkeys((*held.values, *each.values)))
            joined[each.columns] = replace(held, values=values, nulls=held.nulls or each.nulls)
    return tuple(joined.values())


def _keys(rows: pa.RecordBatch, key: Sequence[tuple[int, ColumnType]], copied: CopiedRows) -> dict[Key, None]:
    if lacking(rows):
        raise Unbounded("the log does not hold whole images")
    found = stored_keys(rows_where(rows, copied.has(rows)), key)
    return dict.fromkeys(each for each in found if each is not None)
