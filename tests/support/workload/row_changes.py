"""A keyed table whose rows are changed at random, and one without a key, for tests that lead the same rows by two roads."""

from __future__ import annotations

import random
from typing import Any, Protocol

__all__ = ["Execute", "change_some", "make_tables"]


class Execute(Protocol):
    """Runs a statement, with values for its ``%s``."""

    def __call__(self, statement: str, *values: Any) -> None: ...


def make_tables(sql: Execute, database: str) -> None:
    """Makes the empty table ``t``, and ``nokey`` with a row that stood there twice."""
    sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v VARCHAR(40), n INT)")
    sql(f"CREATE TABLE {database}.nokey (a INT, b VARCHAR(9))")
    sql(f"INSERT INTO {database}.nokey VALUES (1, 'x'), (1, 'x'), (2, NULL)")
    sql(f"DELETE FROM {database}.nokey LIMIT 1")


def change_some(sql: Execute, database: str, numbers: random.Random, step: int, column: str = "v") -> None:
    """Changes, deletes, or moves to other keys some rows of ``t``, whose text stands in *column*; or none."""
    kind, key = numbers.randrange(10), numbers.randrange(12)
    table = f"{database}.t"
    if kind < 4:
        sql(f"REPLACE INTO {table} (id, {column}, n) VALUES (%s, %s, %s)", key, f"v{step}", step)
    elif kind < 7:
        sql(f"UPDATE {table} SET {column} = CONCAT({column}, '!'), n = n + 1 WHERE id >= %s", key)
    elif kind == 7:
        sql(f"DELETE FROM {table} WHERE id = %s", key)
    elif kind == 8:
        sql(f"UPDATE IGNORE {table} SET id = %s WHERE id = %s", key + 20, key)
