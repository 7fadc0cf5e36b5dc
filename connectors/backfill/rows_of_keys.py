"""Rows of a table that some keys tell, as of the end of a plan, whatever the log has of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectors.backfill.changes import TableChanges, changes_behind
from connectors.backfill.foreign_keys.child_keys import Unbounded
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.keys.predicates import with_values
from connectors.backfill.snapshots import SourceSnapshot, keep_table, snapshot_behind
from connectors.backfill.told_rows import MOST_CHARACTERS, ToldRows, plain_key, read_told
from connectors.readers.binlog.selected.failures import is_of_a_changed_table
from historian.errors import SourceError
from historian.plans.plans import TableCopy
from historian.plans.row_values import RowValues

if TYPE_CHECKING:
    from connectors.backfill.spool import Spool
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.plans.key_ranges import Key
    from historian.plans.plans import Plan, PlannedTable
    from historian.schema.snapshots import Column, Snapshot

__all__ = ["RowsOfKeys", "batches", "key_columns", "rows_of_keys"]

_PLAN_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class RowsOfKeys:
    """Reads rows of one table from one snapshot, for plans that all end at one position."""

    source: SourceSnapshot
    flavor: str
    changes: TableChanges

    def read(self, plan: Plan, table: PlannedTable, keys: Sequence[Key], spool: Spool, number: int = 0) -> TableCopy:
        """The copy of the rows with *keys*, those rows in *spool*; it does not say why they are compared.

        Args:
            number: of the chunks among all that the plan reads.

        Raises:
            SourceError: they cannot be read alone, or the server refuses a SELECT or breaks it off; the last is retryable.
        """
        snapshot = table.versions[-1].snapshot
        assert snapshot is not None  # noqa: S101 the table is there
        only = (RowValues(columns=snapshot.primary_key, values=tuple(keys)),)
        try:
            told = ToldRows(only=only)
            rows, size_bytes = read_told(self.source, self.flavor, plan, table, told, self.changes, spool, number)
        except Unbounded as why:
            raise (why.__cause__ if isinstance(why.__cause__, SourceError) else _refused(snapshot, str(why))) from why
        return TableCopy(key=snapshot.primary_key, is_done=True, rows=rows, only=only, size_bytes=size_bytes)


@contextmanager
def rows_of_keys(
    address: ServerAddress, tracker: Tracker, plan: Plan, table: PlannedTable, version: int
) -> Iterator[RowsOfKeys | None]:
    """What reads rows of *table* as of the end of *plan*; None where a statement on the table came since.

    Args:
        version: number of the last timeline entry up to there.

    Raises:
        ConnectionLost, SourceError: the source cannot be asked.
        LogPurged: the log behind the plan is gone.
    """
    flavor, now = tracker.reader.flavor, table.versions[-1]
    with snapshot_behind(address, flavor, plan.end) as source:
        prepare_session(source.connection)
        assert now.snapshot is not None  # noqa: S101 the table is there
        try:
            keep_table(source, now.snapshot.name)
        except SourceError as error:
            if not is_of_a_changed_table(error):
                raise
            yield None
            return
        tables = {table.table_id: now}
        changes = changes_behind(tracker, source.server, plan.end, version, tables)[table.table_id]
        yield None if changes.void else RowsOfKeys(source, flavor, changes)


def key_columns(snapshot: Snapshot) -> list[Column]:
    """The columns of the primary key.

    Raises:
        SourceError: its values do not tell rows everywhere.
    """
    try:
        plain_key(snapshot)
    except Unbounded as why:
        raise _refused(snapshot, str(why)) from why
    if not snapshot.primary_key:
        raise _refused(snapshot, "no primary key")
    return [column for i in snapshot.primary_key if (column := snapshot.column_by_id(i)) is not None]


def batches(columns: Sequence[Column], keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """*keys* in parts of which each is enough for a plan, and a condition that a server takes."""
    at, size = 0, _PLAN_ROWS
    ids = tuple(column.id for column in columns)
    while at < len(keys):
        some = keys[at : at + size]
        while size > 1 and len(with_values(columns, RowValues(columns=ids, values=tuple(some)))) > MOST_CHARACTERS:
            size //= 2
            some = keys[at : at + size]
        yield some
        at += len(some)


def _refused(snapshot: Snapshot, found: str) -> SourceError:
    return SourceError(
        "some rows of the table cannot be compared alone",
        where=str(snapshot.name),
        expected="a primary key of integers, YEAR, DECIMAL, BINARY or VARBINARY",
        found=found,
        next_step="leave out --where: all rows are compared then",
    )
