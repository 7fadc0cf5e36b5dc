"""Letter case of names where the server makes them all small (``lower_case_table_names=1``)."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Script, Sql, Step

SERVERS = ("mysql57+lower", "mariadb105+lower", "mariadb1011+lower", "mariadb118+lower")

_CHANGES = (
    "CREATE TABLE {a} (Id INT PRIMARY KEY, V INT)",
    "CREATE TABLE IF NOT EXISTS {a} (id INT PRIMARY KEY, w INT)",
    "DROP TABLE IF EXISTS {a}",
    "RENAME TABLE {a} TO {b}",
    "ALTER TABLE {a} RENAME {b}",
    "ALTER TABLE {a} ADD COLUMN N{n} INT DEFAULT {n}",
    "ALTER TABLE {a} CHANGE V v BIGINT",
    "ALTER TABLE {a} RENAME COLUMN v TO V",
    "CREATE TABLE {a} LIKE {b}",
    "CREATE VIEW {a} AS SELECT 1 AS id",
    "CREATE DATABASE C_New",
    "DROP DATABASE c_NEW",
    "CREATE TABLE C_NEW.{a} (id INT PRIMARY KEY)",
    "RENAME TABLE C_A.{a} TO C_b.{b}",
    "TRUNCATE {a}",
)
_NAMES = ("t", "T", "Über", "über", "ÜBER", "Tab", "tAB", "İx", "ΑΣ", "ας")


def script(rng: random.Random, server: str) -> Script:
    """Tables whose names are said in one case and another."""
    pool = rng.sample(_NAMES, 5)
    steps: list[Step] = [Sql(f"CREATE TABLE {pool[0]} (id INT PRIMARY KEY, v INT)")]
    for key in range(1, rng.randrange(4, 11)):
        a, b = rng.sample(pool, 2)
        steps.append(Sql(rng.choice(_CHANGES).format(a=a, b=b, n=key)))
        steps += [Sql(f"INSERT INTO {name} (id) VALUES ({key})") for name in rng.sample(pool, 2)]
        if rng.random() < 0.2:
            steps.append(FOLLOW)
    return Script(steps=steps)
