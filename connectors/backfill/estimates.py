"""How many rows tables hold, about, as the server's own statistics say."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from typing import TYPE_CHECKING

from connectors.readers.binlog.transport.connection import answered
from historian.names import TableName

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress

__all__ = ["estimated_rows"]

_ROWS = "SELECT table_schema, table_name, table_rows FROM information_schema.tables WHERE table_schema IN %s"


def estimated_rows(address: ServerAddress, names: Collection[TableName]) -> dict[TableName, int]:
    """About how many rows each table holds; a table that is gone is left out.

    Raises:
        ConnectionLost: the server does not answer.
    """
    if not names:
        return {}
    databases = tuple({name.database for name in names})
    with closing(address.connect()) as connection, answered("information_schema"), connection.cursor() as cursor:
        cursor.execute(_ROWS, (databases,))
        held = {TableName(database, table): int(rows or 0) for database, table, rows in cursor.fetchall()}
    return {name: held[name] for name in names if name in held}
