"""Rows that sessions change as statements, through triggers, views and stored functions that the statements do not name."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, STAGE, Script, Sql, Step

_WRITES = (
    "UPDATE c_a.t SET a = a + 1",
    "DELETE FROM c_a.t WHERE id = 1",
    "INSERT INTO c_a.t VALUES (50, 1)",
    "UPDATE c_a.t SET a = 0 WHERE id = 2",
)
_USES = {
    "function": ("SELECT {d}.f()", "DO {d}.f()", "SET @x = {d}.f()", "INSERT INTO {s}.log VALUES ({d}.f())"),
    "trigger": ("INSERT INTO {s}.log VALUES ({k})", "REPLACE INTO {s}.log VALUES ({k})"),
    "view": ("UPDATE {d}.v SET a = 9", "DELETE FROM {d}.v WHERE id = 1", "INSERT INTO {d}.v VALUES ({k}, 1)"),
}


def script(rng: random.Random, server: str) -> Script:
    """A table, something that changes its rows, and a session that uses it in one of the formats."""
    kind = rng.choice(list(_USES))
    home = rng.choice(("c_a", STAGE))
    made = {
        "function": f"CREATE FUNCTION {home}.f() RETURNS INT DETERMINISTIC BEGIN {rng.choice(_WRITES)}; RETURN 1; END",
        "trigger": f"CREATE TRIGGER {STAGE}.g AFTER INSERT ON {STAGE}.log FOR EACH ROW {rng.choice(_WRITES)}",
        "view": f"CREATE VIEW {home}.v AS SELECT * FROM c_a.t",
    }[kind]
    steps: list[Step] = [
        Sql("CREATE TABLE t (id INT PRIMARY KEY, a INT)"),
        Sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)"),
        Sql(f"CREATE TABLE {STAGE}.log (id INT PRIMARY KEY)"),
        Sql(made),
    ]
    if rng.random() < 0.6:
        steps.append(FOLLOW)
    steps.append(Sql(f"SET SESSION binlog_format = {rng.choice(('STATEMENT', 'MIXED'))}", "b"))
    for number in range(rng.randint(1, 3)):
        use = rng.choice(_USES[kind]).format(d=home, s=STAGE, k=100 + number)
        steps.append(Sql(use, "b"))
        if rng.random() < 0.4:
            steps.append(Sql(f"INSERT INTO t VALUES ({200 + number}, 1)"))
    return Script(steps=steps, stops=frozenset({"statement_rows", "rows_changed_unseen"}))
