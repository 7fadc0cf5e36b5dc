"""Names: long, with dots and quotes, beyond the basic plane, in two letter cases, shared with views and sequences."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Script, Sql, Step

_NAMES = (
    "t",
    "T",
    "a.b",
    "a`b",
    'a"b',
    "a'b",
    "a b",
    "ä",
    "日本",
    "🍵",
    "x" * 64,
    "é" * 64,
    "#sql",
    "a/b",
    "a\\b",
    "select",
    "1",
    "$x",
    "a%",
    "t;x",
    "-- t",
    "/*t*/",
    "ǅ",
    "İ",
    "K",
    "a#P#p",
    "a@b",
    "t\tt",
    "v",
    "_t",
)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def script(rng: random.Random, server: str) -> Script:
    """Tables, views and sequences that take each other's names; columns of such names too."""
    pool = [_quoted(name) for name in rng.sample(_NAMES, 4)]
    columns = [_quoted(name) for name in rng.sample(_NAMES, 3)]
    steps: list[Step] = []
    for key in range(1, 1 + rng.randrange(3, 9)):
        a, b = rng.sample(pool, 2)
        c, d = rng.sample(columns, 2)
        steps.append(
            Sql(
                rng.choice(
                    (
                        f"CREATE TABLE {a} (id INT PRIMARY KEY, {c} INT)",
                        f"CREATE TABLE {a} (id INT PRIMARY KEY, {c} INT)",
                        f"CREATE TABLE IF NOT EXISTS {a} (id INT PRIMARY KEY, {d} INT)",
                        f"CREATE VIEW {a} AS SELECT 1 AS id, 2 AS v",
                        f"CREATE OR REPLACE VIEW {a} AS SELECT * FROM {b}",
                        f"DROP VIEW IF EXISTS {a}",
                        f"CREATE SEQUENCE {a}",
                        f"CREATE OR REPLACE SEQUENCE {a}",
                        f"DROP SEQUENCE IF EXISTS {a}",
                        f"DROP TABLE IF EXISTS {a}, {b}",
                        f"DROP TABLE {a}, {b}",
                        f"RENAME TABLE {a} TO {b}",
                        f"ALTER TABLE {a} RENAME TO {b}",
                        f"CREATE TABLE {a} LIKE {b}",
                        f"CREATE TABLE {a} (id INT PRIMARY KEY) SELECT 1 AS id, 5 AS {c}",
                        f"ALTER TABLE {a} ADD COLUMN {d} INT DEFAULT 3",
                        f"ALTER TABLE {a} DROP COLUMN {c}",
                        f"ALTER TABLE {a} CHANGE {c} {d} BIGINT",
                        f"CREATE OR REPLACE TABLE {a} (id INT PRIMARY KEY, {d} INT)",
                    )
                )
            )
        )
        steps += [Sql(f"INSERT INTO {name} (id) VALUES ({key})") for name in rng.sample(pool, 2)]
        if rng.random() < 0.2:
            steps.append(FOLLOW)
    return Script(steps=steps, stops=frozenset({"not_kept"}))
