"""Answers about a few of many tables, by queries that read the others as little as can be."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, and_, func, select

from historian.names import TableName
from historian.store.contents import loosened
from historian.store.copies import CopyProgress, open_progress
from historian.store.notes import Notes
from historian.store.tables import counts, edits

__all__ = ["Facets"]

_AT_ONCE = 500
"""Values in one statement; databases limit them."""


class Facets(Notes):
    """What those ask for who look at a connector again and again, without its history."""

    def open_copies(self, unless_more_than: int = 0) -> dict[int, CopyProgress]:
        """How far tables are copied whose copy is not done, by table id; done ones too where all are no more than *unless_more_than*."""
        return self._transactions.read(lambda connection: open_progress(connection, unless_more_than))

    def table_names(self, table_ids: Iterable[int]) -> dict[int, TableName]:
        """The last name of each of these tables that ever was."""
        wanted = tuple(table_ids)

        def work(connection: Connection) -> dict[int, TableName]:
            found: dict[int, TableName] = {}
            for begin in range(0, len(wanted), _AT_ONCE):
                mine = edits.c.table_id.in_(wanted[begin : begin + _AT_ONCE])
                newest = select(edits.c.table_id, func.max(edits.c.number).label("number")).where(mine)
                last = newest.group_by(edits.c.table_id).subquery()
                # The sum keeps SQLite from going through all edits of the entry, which may have made every table, for each table.
                query = (
                    select(edits.c.table_id, edits.c.database_name, edits.c.table_name)
                    .join(last, and_(edits.c.table_id == last.c.table_id, edits.c.number + 0 == last.c.number))
                    .order_by(edits.c.part)
                )
                found |= {int(i): TableName(database, name) for i, database, name in connection.execute(query)}
            return found

        return self._transactions.read(work)

    def columns_added(self, text: str) -> tuple[int, ...]:
        """Numbers of the entries that add a column to a table, in whose stored form *text* stands; ascending."""
        query = select(edits.c.number, edits.c.body).where(edits.c.kind == "add_column").order_by(edits.c.number)
        rows = self._transactions.read(lambda connection: connection.execute(query).all())
        return tuple(dict.fromkeys(int(number) for number, body in rows if text in loosened(body)))

    def nulled(self) -> dict[tuple[int, int], int]:
        """How many values became NULL so far that cannot be represented, by table id and column id."""
        query = select(counts.c.table_id, counts.c.column_id, func.sum(counts.c.amount)).group_by(
            counts.c.table_id, counts.c.column_id
        )
        rows = self._transactions.read(lambda connection: connection.execute(query).all())
        return {(int(table_id), int(column_id)): int(amount) for table_id, column_id, amount in rows}
