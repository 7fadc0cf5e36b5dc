"""What the table of a topic is called whose messages do not name one."""

from __future__ import annotations

from historian.names import TableName

__all__ = ["table_of"]

_DATABASE = "topics"


def table_of(topic: str) -> TableName:
    """What stands behind a topic's last dot is the table, and what stands before it the database: "topics" where there is no dot.

    >>> str(table_of("shop.orders")), str(table_of("eu.shop.orders")), str(table_of("orders"))
    ('shop.orders', 'eu.shop.orders', 'topics.orders')
    """
    database, _, table = topic.rpartition(".")
    return TableName(database or _DATABASE, table)
