"""Expressions: rows that a condition leaves out, computed columns; rows that come to fit and cease to, under edits of other columns."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Follow, Script, Sql, Step

SPARK = True

_CONDITIONS = ("v > 3", "v IS NULL OR v % 2 = 0", "s LIKE 'a%' OR s LIKE 'ä%'", "id < 6 AND s IS NOT NULL", "")
_COMPUTED = (
    "v * 2 + id",
    "COALESCE(v, 0)",
    "CHAR_LENGTH(s)",
    "CONCAT(s, '-', id)",
    "CASE WHEN v > 3 THEN 'high' ELSE s END",
)
"""In words of SQL that mean the same to the servers and to Spark."""
_CHANGES = (
    "INSERT INTO t (id, v, s) VALUES ({n}, {n}, 'a{n}'), ({n}00, NULL, 'b')",
    "INSERT INTO t (id, v) VALUES ({n}, {n})",
    "UPDATE t SET v = v + 1",
    "UPDATE t SET v = v - 1, s = 'b' WHERE v IN (4, 5)",
    "UPDATE t SET s = 'a' WHERE s IS NULL OR s = 'b'",
    "UPDATE t SET v = NULL WHERE id % 2 = 0",
    "UPDATE t SET s = CONCAT('a', s) WHERE id < 5",
    "UPDATE t SET s = 'ä🍵'",
    "UPDATE t SET id = id + 1000 WHERE v = 4",
    "DELETE FROM t WHERE v < 3",
    "REPLACE INTO t (id, v, s) VALUES (1, {n}, 'again')",
    "TRUNCATE t",
    "ALTER TABLE t ADD COLUMN n{n} INT DEFAULT {n} FIRST",
    "ALTER TABLE t MODIFY s VARCHAR(60) FIRST",
    "ALTER TABLE t ADD INDEX i{n} (v)",
)


def script(rng: random.Random, server: str) -> Script:
    """Rows of one table around the condition's edge."""
    rules: list[tuple[str, object]] = []
    where = rng.choice(_CONDITIONS)
    computed = {f"computed_{at}": text for at, text in enumerate(rng.sample(_COMPUTED, rng.randrange(3)))}
    if where:
        rules.append(("where", where))
    if computed:
        rules.append(("compute", tuple(computed.items())))
    steps: list[Step] = [
        Sql("CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(40))"),
        Sql("INSERT INTO t (id, v, s) VALUES (21, 2, 'b'), (22, 3, NULL), (23, 4, 'ab'), (24, NULL, 'a')"),
        FOLLOW,  # what a mirror holds must come and go, not the net of one plan
    ]
    for n in range(2, rng.randrange(5, 14)):
        steps.append(Sql(rng.choice(_CHANGES).format(n=n)))
        if rng.random() < 0.2:
            steps.append(rng.choice((FOLLOW, Follow(300))))
    return Script(steps=steps, said={"tables": (("c_*.*", tuple(rules)),)}, where=where, computed=computed)
