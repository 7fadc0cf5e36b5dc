"""Tables that hold rows before a connector begins, and changes to them that matter to a copy."""

from __future__ import annotations

from databases.servers import Server

__all__ = ["ROWS", "change", "make_tables", "widen"]

ROWS = 600


def make_tables(server: Server) -> None:
    """A database ``c`` of tables with keys of numbers and of texts, and one without."""
    for statement in (
        "CREATE DATABASE c",
        "CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(20))",
        "CREATE TABLE c.s (k VARCHAR(20) PRIMARY KEY, v INT)",
        "CREATE TABLE c.bag (a INT, b VARCHAR(10))",
    ):
        server.sql(statement)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO c.t VALUES (%s, %s)", [(i, f"v{i}") for i in range(ROWS)])
        cursor.executemany("INSERT INTO c.s VALUES (%s, %s)", [(f"k{i}", i) for i in range(ROWS)])
        cursor.executemany("INSERT INTO c.bag VALUES (%s, 'x')", [(i % 40,) for i in range(200)])


def widen(server: Server) -> None:
    """Rows of ``c.t`` are so large from now on that a server is still sending them while the first ones are read, whichever SELECT that is."""
    server.sql("ALTER TABLE c.t ADD COLUMN pad MEDIUMTEXT")
    server.sql("UPDATE c.t SET pad = REPEAT('x', 80000)")


def change(server: Server, turn: int) -> None:
    """Rows that are copied, rows that are not, and those between come, change, move and go."""
    server.sql(f"UPDATE c.t SET v = 'turn {turn}' WHERE id % 7 = {turn % 7}")
    server.sql(f"DELETE FROM c.t WHERE id % 50 = {turn % 50}")
    server.sql(f"INSERT INTO c.t (id, v) VALUES ({ROWS + turn}, 'new'), ({-1 - turn}, 'new')")
    server.sql(f"UPDATE IGNORE c.t SET id = id + 10000 WHERE id = {turn * 3 + 1}")
    server.sql(f"UPDATE IGNORE c.s SET k = CONCAT('a', k) WHERE v % 90 = {turn % 90} AND LENGTH(k) < 15")
    server.sql(f"DELETE FROM c.bag WHERE a = {turn % 40} LIMIT 2")
    server.sql(f"INSERT INTO c.bag VALUES ({turn % 40}, 'y')")
