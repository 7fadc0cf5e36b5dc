"""Some rows of a table are compared with the source again: those for which a condition in SQL holds there now.

The source says which keys those are. Each key is then compared as of the last plan's end, whatever the condition makes of its row there. So it
does not matter that the source is written to meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.backfill.changes import changes_behind
from connectors.backfill.foreign_keys.child_keys import Unbounded
from connectors.backfill.keys.literals import key_expression, key_value, prepare_session
from connectors.backfill.keys.predicates import with_values
from connectors.backfill.snapshots import snapshot_behind
from connectors.backfill.spool import Spool
from connectors.backfill.told_rows import MOST_CHARACTERS, plain_key, read_told
from connectors.readers.binlog.transport.connection import answered
from connectors.recovery.repairing import table_behind
from historian.errors import SourceError
from historian.plans.plans import TableCopy
from historian.plans.row_values import RowValues

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.plans.key_ranges import Key
    from historian.schema.snapshots import Column, Snapshot

__all__ = ["MOST_ROWS", "repair_rows"]

MOST_ROWS = 100_000
"""For more of them a table is compared as a whole, range by range: that takes no list of keys."""
_PLAN_ROWS = 10_000


def repair_rows(
    tracker: Tracker, address: ServerAddress, table_id: int, reason: str, condition: str
) -> tuple[int, int] | None:
    """Stores plans that compare the rows of a table for which *condition* holds, as of the last plan's end.

    Rows that only targets have are not among them: it is the source that says for which rows the condition holds.

    Args:
        tracker: of the connector, whose lease the caller holds; the table goes on, and no copy of it is under way.
        reason: why the targets are compared with the source.
        condition: in the source's SQL; times of TIMESTAMP columns are in UTC.

    Returns:
        For how many rows it holds, and in how many plans they are; None where a statement on the table came meanwhile, so that it is to be tried
        again behind the next plan.

    Raises:
        SourceError: the server refuses the condition, it holds for more than :data:`MOST_ROWS` rows, or values do not tell the table's rows.
            Plans that were stored before such an error stay; each is whole.
    """
    plan = tracker.store.last_plan()
    assert plan is not None  # noqa: S101 asked before
    end, version, flavor = plan.end, tracker.history.last_number, tracker.reader.flavor
    now = table_behind(tracker, table_id, plan).versions[-1]
    assert now.snapshot is not None  # noqa: S101 asked before
    columns = _key_columns(now.snapshot)
    keys = _keys(address, now.snapshot, columns, condition)
    count = 0
    with snapshot_behind(address, flavor, end) as source:
        prepare_session(source.connection)
        changes = changes_behind(tracker, end, version, {table_id: now})[table_id]
        if changes.void:
            return None
        for some in _batches(columns, keys):
            table = table_behind(tracker, table_id, plan)
            plan = tracker.plan_behind(plan, start=end, end=end, tables=(), version=version)
            only = (RowValues(columns=now.snapshot.primary_key, values=tuple(some)),)
            with closing(Spool()) as copied:
                try:
                    rows = read_told(source, flavor, plan, table, only, changes, copied, 0)
                except Unbounded as why:
                    raise _refused(now.snapshot, str(why)) from why
                copy = TableCopy(key=now.snapshot.primary_key, is_done=True, rows=rows, repairs=reason, only=only)
                plan = replace(plan, tables=(replace(table, copy=copy),))
                tracker.store.append_plan(plan, copied)
            count += 1
    if tracker.copier is not None:
        tracker.copier.look_again()
    return len(keys), count


def _key_columns(snapshot: Snapshot) -> list[Column]:
    if not snapshot.primary_key:
        raise _refused(snapshot, "no primary key")
    try:
        plain_key(snapshot)
    except Unbounded as why:
        raise _refused(snapshot, str(why)) from why
    return [column for i in snapshot.primary_key if (column := snapshot.column_by_id(i)) is not None]


def _keys(address: ServerAddress, snapshot: Snapshot, columns: Sequence[Column], condition: str) -> list[Key]:
    """The keys of the rows for which *condition* holds now."""
    expressions = ", ".join(map(key_expression, columns))
    with closing(address.connect()) as connection:
        prepare_session(connection)
        with answered(f"{snapshot.name}: the condition"), connection.cursor() as cursor:
            # Behind a line's end, a comment in the condition does not reach.
            cursor.execute(
                f"SELECT {expressions} FROM {snapshot.name.quoted} AS t WHERE ({condition}\n) LIMIT {MOST_ROWS + 1}"  # noqa: S608 the user's own SQL
            )
            found = cursor.fetchall()
    if len(found) > MOST_ROWS:
        raise SourceError(
            "the condition holds for too many rows",
            where=str(snapshot.name),
            expected=f"at most {MOST_ROWS}",
            next_step="narrow the condition, or leave it out: all rows are compared then, range by range",
        )
    return [tuple(map(key_value, columns, row)) for row in found]


def _batches(columns: Sequence[Column], keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """*keys* in parts of which each is a condition that a server takes."""
    at, size = 0, _PLAN_ROWS
    while at < len(keys):
        some = keys[at : at + size]
        ids = tuple(column.id for column in columns)
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
