"""How many rows tables hold, about, as the server's own statistics say."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from typing import TYPE_CHECKING

from connectors.readers.binlog.transport.connection import answered
from historian.names import TableName

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress

__all__ = ["estimated_rows", "row_bytes"]

_NAMED = "FROM information_schema.tables WHERE table_schema IN %s AND table_name IN %s"
"""Of tables with other names nothing is opened: there may be many."""
_ROWS = f"SELECT table_schema, table_name, table_rows {_NAMED}"
_WIDTHS = f"SELECT table_schema, table_name, avg_row_length {_NAMED}"


def row_bytes(address: ServerAddress, names: Collection[TableName]) -> dict[TableName, int]:
    """About how many bytes the server keeps of each row of each table; a table that is gone is left out. Errors are those of :func:`estimated_rows`."""
    return _asked(address, names, _WIDTHS)


def estimated_rows(address: ServerAddress, names: Collection[TableName]) -> dict[TableName, int]:
    """About how many rows each table holds; a table that is gone is left out.

    Raises:
        ConnectionLost: the server does not answer.
    """
    return _asked(address, names, _ROWS)


def _asked(address: ServerAddress, names: Collection[TableName], question: str) -> dict[TableName, int]:
    if not names:
        return {}
    databases, tables = ({name.database for name in names}, {name.table for name in names})
    with closing(address.connect()) as connection, answered("information_schema"), connection.cursor() as cursor:
        cursor.execute(question, (tuple(databases), tuple(tables)))
        held = {TableName(database, table): int(number or 0) for database, table, number in cursor.fetchall()}
    return {name: held[name] for name in names if name in held}
