"""Swaps by hand under the names of tools for online schema changes: whole copies, parts, none, other rows; and what killed runs leave."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Script, Sql, Step

_TOOLS = (
    ("_orders_new", "_orders_old"),
    ("_orders_gho", "_orders_del"),
    ("__orders_new", "__orders_old"),
    ("_orders_gho", "_orders_20200101000000_del"),
)
_KILLED = {
    "_orders_gho": ("CREATE TABLE _orders_ghc (id INT PRIMARY KEY)",),
    "_orders_new": (
        "CREATE TABLE _orders_chkpnt (id INT PRIMARY KEY)",
        "CREATE TRIGGER pt_osc_c_a_orders_del AFTER DELETE ON orders FOR EACH ROW DELETE FROM _orders_new WHERE id = OLD.id",
    ),
}
"""What a tool has made before it copies: by the shadow's name."""


def script(rng: random.Random, server: str) -> Script:
    """A table of a few rows, a shadow with some of them, and the RENAME that puts it in its place."""
    shadow, aside = rng.choice(_TOOLS)
    steps: list[Step] = [
        Sql("CREATE TABLE orders (id INT PRIMARY KEY, a INT, b VARCHAR(9))"),
        Sql("INSERT INTO orders VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z'), (4, NULL, NULL)"),
    ]
    if rng.random() < 0.6:
        steps.append(FOLLOW)
    steps.append(Sql(f"CREATE TABLE {shadow} LIKE orders"))
    alter = rng.choice(
        (
            None,
            "DROP COLUMN a, ADD COLUMN a VARCHAR(5)",
            "DROP COLUMN a",
            "ADD COLUMN n INT DEFAULT 5",
            "MODIFY a BIGINT",
            "CHANGE a z INT",
            "DROP COLUMN a, ADD COLUMN a INT DEFAULT 7",
            "DROP COLUMN b, ADD COLUMN c VARCHAR(9) DEFAULT 'n'",
        )
    )
    if alter:
        steps.append(Sql(f"ALTER TABLE {shadow} {alter}"))
    killed = rng.random() < 0.5
    steps += [Sql(begun) for begun in _KILLED.get(shadow, ()) if killed]
    which = rng.choice(("", "", " WHERE id >= 3", " WHERE id < 0", " WHERE a IS NOT NULL"))
    columns = rng.choice(("id, a, b", "id, b", "id"))
    steps.append(
        Sql(f"INSERT {rng.choice(('', 'IGNORE '))}INTO {shadow} ({columns}) SELECT {columns} FROM orders{which}")
    )
    if rng.random() < 0.3:
        steps.append(Sql(f"INSERT INTO {shadow} (id) VALUES (9)"))
    if rng.random() < 0.2:
        steps.append(Sql(f"UPDATE {shadow} SET b = 'changed' WHERE id = 3"))
    if rng.random() < 0.3:
        steps.append(FOLLOW)
    steps.append(Sql(f"RENAME {rng.choice(('', '/* gh-ost */ '))}TABLE orders TO {aside}, {shadow} TO orders"))
    steps.append(Sql("INSERT INTO orders (id) VALUES (20)"))
    if rng.random() < 0.5:
        steps.append(Sql(f"DROP TABLE {aside}"))
    steps.append(Sql("DELETE FROM orders WHERE id = 4"))
    return Script(
        steps=steps,
        stops=frozenset(
            {
                "swap_refused",
                "left",
                "moved_in",
                "rows_unknown",
                "values_rewritten",
                "type_not_widened",
                "computed_values",
            }
        ),
    )
