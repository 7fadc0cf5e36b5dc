"""What a lake is told of its tables: soft deletes, rows without key, the change feed, Spark as writer, columns left out, masked, cut, hashed."""

from __future__ import annotations

import random
from typing import Any

from adversary.script import FOLLOW, Follow, Hashed, Script, Shape, Sql, Step
from historian.secret import Secret

_CHANGES = (
    "INSERT INTO {t} (id, v, s) VALUES ({n}, {n}, 'text{n}')",
    "INSERT INTO {t} (id, v, s) VALUES ({n}, {n}, NULL), ({m}, 1, 'ä🍵xyz')",
    "UPDATE {t} SET v = v + 1 WHERE id % 2 = 0",
    "UPDATE {t} SET s = CONCAT(s, 'x') WHERE id < 5",
    "UPDATE {t} SET id = id + 1000 WHERE id = {n} - 1",
    "DELETE FROM {t} WHERE id % 3 = 0",
    "DELETE FROM {t} ORDER BY id LIMIT 1",
    "REPLACE INTO {t} (id, v, s) VALUES (1, {n}, 'again')",
    "TRUNCATE {t}",
    "ALTER TABLE {t} ADD COLUMN n{n} INT DEFAULT {n}",
    "ALTER TABLE {t} DROP COLUMN v, ADD COLUMN v INT DEFAULT 3",
    "ALTER TABLE {t} MODIFY v BIGINT",
    "ALTER TABLE {t} MODIFY v INT FIRST",
    "DROP TABLE {t}",
    "CREATE TABLE {t} (id INT PRIMARY KEY, v INT, s VARCHAR(40))",
    "RENAME TABLE {t} TO {o}",
    "BEGIN",
    "COMMIT",
)
_SAID: tuple[dict[str, Any], ...] = (
    {},
    {"mirror_deletes": "soft"},
    {"keyless": "rows"},
    {"cluster": True},
    {"writer": "spark"},
    {"mirror_every_us": 3_600_000_000},
    {"table_properties": (("delta.enableChangeDataFeed", "true"),)},
    {"compact": (2, 1_000_000)},
    {"history": "h_{database}_{table}"},
)
_SHAPES: tuple[tuple[tuple[str, Any], Shape], ...] = (
    (("exclude", ("s",)), None),
    (("mask", (("s", "***"),)), "***"),
    (("truncate", (("s", 4),)), 4),
    (("hash", (("s", Secret("pepper")),)), Hashed("pepper")),
)


def script(rng: random.Random, server: str) -> Script:
    """Changes of three tables, one without a key."""
    said = dict(rng.choice(_SAID))
    shaped: dict[str, Shape] = {}
    if rng.random() < 0.3:
        rule, shape = rng.choice(_SHAPES)
        said["tables"] = (("c_*.*", (rule,)),)
        shaped["s"] = shape
    steps: list[Step] = [
        Sql("CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(40))"),
        Sql("CREATE TABLE u (id VARCHAR(20) PRIMARY KEY, v INT, s TEXT)"),
        Sql("CREATE TABLE b (id INT, v INT, s VARCHAR(40))"),
    ]
    for n in range(1, rng.randrange(6, 20)):
        t, o = rng.sample(("t", "u", "b", "t"), 2)
        change = rng.choice(_CHANGES)
        steps.append(Sql(change.format(t=t, o=o if o != t else "r", n=n, m=n + 500)))
        if rng.random() < 0.25:
            steps.append(rng.choice((FOLLOW, FOLLOW, Follow(300))))
    steps.append(Sql("COMMIT"))
    return Script(steps=steps, said=said, shaped=shaped, stops=frozenset({"key_changed", "values_rewritten"}))
