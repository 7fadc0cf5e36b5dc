"""Some rows of a table are compared with the source again: those for which a condition in SQL holds there now.

The source says which keys those are. Each key is then compared as of the last plan's end, whatever the condition makes of its row there. So it
does not matter that the source is written to meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.backfill.keys.literals import key_expression, key_value, prepare_session
from connectors.backfill.rows_of_keys import batches, key_columns, rows_of_keys
from connectors.backfill.spool import Spool
from connectors.readers.binlog.transport.connection import answered
from connectors.recovery.repairing import table_behind
from historian.errors import SourceError

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.names import TableName
    from historian.plans.key_ranges import Key
    from historian.plans.plans import Plan
    from historian.schema.snapshots import Column

__all__ = ["MOST_ROWS", "repair_rows"]

MOST_ROWS = 100_000
"""For more of them a table is compared as a whole, range by range: that takes no list of keys."""
_MEMORY_BYTES = 16 << 20


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
        For how many rows it holds, and in how many plans they are. None where a statement on the table came meanwhile: try again behind the
        next plan.

    Raises:
        SourceError: the server refuses the condition, it holds for more than :data:`MOST_ROWS` rows, or values do not tell the table's rows.
            Nothing is stored then.
    """
    plan = tracker.store.last_plan()
    assert plan is not None  # noqa: S101 asked before
    end, version = plan.end, tracker.history.last_number
    table = table_behind(tracker, table_id, plan)
    snapshot = table.versions[-1].snapshot
    assert snapshot is not None  # noqa: S101 asked before
    columns = key_columns(snapshot)
    keys = _keys(address, snapshot.name, columns, condition)
    found: list[tuple[Plan, Spool]] = []
    with ExitStack() as stack:
        rows = stack.enter_context(rows_of_keys(address, tracker, plan, table, version))
        if rows is None:
            return None
        for some in batches(columns, keys):
            copied = stack.enter_context(closing(Spool(_MEMORY_BYTES)))
            plan = tracker.plan_behind(plan, start=end, end=end, tables=(), version=version)
            copy = replace(rows.read(plan, table, some, copied), repairs=reason)
            # The second one has what the first has told of the table behind it.
            plan = replace(plan, tables=(replace(table, copy=copy),))
            found.append((plan, copied))
            table = replace(table, versions=table.versions[-1:])
        for stored, copied in found:
            tracker.store.append_plan(stored, copied)
    if tracker.copier is not None:
        tracker.copier.look_again()
    return len(keys), len(found)


def _keys(address: ServerAddress, table: TableName, columns: Sequence[Column], condition: str) -> list[Key]:
    """The keys of the rows for which *condition* holds now."""
    expressions = ", ".join(map(key_expression, columns))
    with closing(address.connect()) as connection:
        prepare_session(connection)
        with answered(f"{table}: the condition"), connection.cursor() as cursor:
            # Behind a line's end, a comment in the condition does not reach.
            cursor.execute(
                f"SELECT {expressions} FROM {table.quoted} AS t WHERE ({condition}\n) LIMIT {MOST_ROWS + 1}"  # noqa: S608 the user's own SQL
            )
            found = cursor.fetchall()
    if len(found) > MOST_ROWS:
        raise SourceError(
            "the condition holds for too many rows",
            where=str(table),
            expected=f"at most {MOST_ROWS}",
            next_step="narrow the condition, or leave it out: all rows are compared then, range by range",
        )
    return [tuple(map(key_value, columns, row)) for row in found]
