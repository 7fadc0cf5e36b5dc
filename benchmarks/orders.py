"""A table of ten mixed columns, filled and updated by statements of 100,000 rows, each a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from binlog_work import Work, in_own_file

from logs.decoder_lab import capture

if TYPE_CHECKING:
    from databases.servers import Server

__all__ = ["create_orders", "fill_orders", "updated_orders"]

_ORDERS = """
CREATE TABLE bench.orders (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer INT NOT NULL, status VARCHAR(20) NOT NULL,
    amount DECIMAL(12,2) NOT NULL, created DATETIME(3) NOT NULL, updated TIMESTAMP(6) NOT NULL, note VARCHAR(200),
    quantity SMALLINT NOT NULL, weight DOUBLE NOT NULL, flag TINYINT NOT NULL)
"""
_FILL = """
INSERT INTO bench.orders WITH RECURSIVE s (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n + 1 < {last})
SELECT n, n % 1000, ELT(1 + n % 3, 'new', 'paid', 'shipped'), n / 7, '2020-01-01' + INTERVAL n * 1000 MICROSECOND,
    '2021-01-01 00:00:00.123456' + INTERVAL n SECOND, IF(n % 5 = 0, NULL, CONCAT('note for order number ', n)), n % 100,
    n / 3, n % 2 FROM s
"""
_UPDATE = """
UPDATE bench.orders SET status = 'done', amount = amount + 1, quantity = quantity + 1,
    updated = updated + INTERVAL 1 DAY
WHERE id >= {first} AND id < {last}
"""
_STEP = 100_000


def create_orders(cursor: Any) -> None:
    """Makes the database and the empty table."""
    cursor.execute("CREATE DATABASE bench")
    cursor.execute("SET SESSION cte_max_recursion_depth = 4294967295")
    cursor.execute(_ORDERS)


def fill_orders(cursor: Any, rows: int, *, step: int = _STEP, first: int = 0) -> None:
    """Inserts the rows *first* to *rows*, *step* a transaction."""
    for number in range(first, rows, step):
        cursor.execute(_FILL.format(first=number, last=min(rows, number + step)))


def updated_orders(server: Server, cursor: Any, rows: int) -> Work:
    """Updates each of the table's *rows* once, into a binlog file of its own."""

    def update() -> None:
        for first in range(0, rows, _STEP):
            cursor.execute(_UPDATE.format(first=first, last=min(rows, first + _STEP)))

    return Work(
        name="wide_updates",
        unit="images/s",
        range=in_own_file(server, update),
        snapshot=capture(server, "bench", "orders"),
        rows=2 * rows,
    )
