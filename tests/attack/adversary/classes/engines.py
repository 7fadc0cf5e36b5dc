"""Engines: those that keep no rows, those of others or those of one run, given by a clause or by the session alone."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Restart, Script, Sql, Step

_ENGINES = ("InnoDB", "MyISAM", "MyISAM", "MEMORY", "MERGE", "MRG_MyISAM", "BLACKHOLE", "ARCHIVE", "Aria")
_TABLES = ("t", "u", "m", "n")
_CHANGES = (
    "CREATE TABLE {a} (id INT NOT NULL, v INT, KEY (id)) {engine} UNION=({b}, {c}) INSERT_METHOD=LAST",
    "CREATE TABLE {a} (id INT NOT NULL, v INT, KEY (id)) {engine}",
    "CREATE TABLE {a} LIKE {b}",
    "CREATE TABLE IF NOT EXISTS {a} (id INT NOT NULL PRIMARY KEY, v INT) {engine}",
    "ALTER TABLE {a} UNION=({b}, {c}) INSERT_METHOD=FIRST",
    "ALTER TABLE {a} ENGINE={kind}",
    "ALTER TABLE {a} ENGINE={kind} UNION=({b}) INSERT_METHOD=LAST",
    "ALTER TABLE {a} ADD COLUMN n{n} INT DEFAULT {n}",
    "RENAME TABLE {a} TO {b}",
    "DROP TABLE IF EXISTS {a}",
    "TRUNCATE TABLE {a}",
)
_ROWS = (
    "INSERT INTO {a} (id, v) VALUES ({n}, 1), ({n}00, 2)",
    "INSERT INTO {a} (id, v) VALUES ({n}, 1)",
    "UPDATE {a} SET v = v + {n}",
    "DELETE FROM {a} WHERE id % 2 = 0",
    "REPLACE INTO {a} (id, v) VALUES (1, {n})",
)
_STOPS = frozenset({"not_kept", "merge_table", "not_understood", "head_differs", "rows_unknown", "no_key"})


def script(rng: random.Random, server: str) -> Script:
    """Tables of several engines, two of which may stand for the rows of others."""
    steps: list[Step] = [Sql(f"CREATE TABLE {t} (id INT NOT NULL PRIMARY KEY, v INT) ENGINE=MyISAM") for t in "tu"]
    restarts = rng.random() < 0.05
    for n in range(1, rng.randrange(5, 14)):
        a, b, c = rng.sample(_TABLES, 3)
        kind = rng.choice(_ENGINES)
        if rng.random() < 0.2:
            steps.append(Sql(f"SET default_storage_engine = {rng.choice(_ENGINES)}"))
        clause = rng.choice(("", "", f"ENGINE={kind}"))
        chosen = rng.choice((rng.choice(_CHANGES), rng.choice(_ROWS)))
        steps.append(Sql(chosen.format(a=a, b=b, c=c, n=n, kind=kind, engine=clause)))
        if rng.random() < 0.15:
            steps.append(FOLLOW)
        elif restarts and rng.random() < 0.3:
            # A server says that a table in memory is empty when somebody reads it.
            steps += [Restart(), *(Sql(f"SELECT COUNT(*) FROM {t}") for t in _TABLES)]
    steps += [Sql(f"SELECT COUNT(*) FROM {t}") for t in _TABLES]
    return Script(steps=steps, stops=_STOPS)
