"""Temporary tables that shadow real ones, in every binlog format and order, by several sessions."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Hang, Script, Sql, Step

_CREATES = (
    "CREATE TEMPORARY TABLE {t} (id INT PRIMARY KEY, c INT)",
    "CREATE TEMPORARY TABLE IF NOT EXISTS {t} (x INT)",
    "CREATE TEMPORARY TABLE {t} LIKE {o}",
    "CREATE TEMPORARY TABLE {t} SELECT * FROM {o}",
    "CREATE OR REPLACE TEMPORARY TABLE {t} (z VARCHAR(9))",
    "CREATE TEMPORARY TABLE c_b.{t} (id INT)",
)
_USES = (
    "TRUNCATE TABLE {t}",
    "DROP TABLE {t}",
    "DROP TABLE IF EXISTS {t}",
    "DROP TEMPORARY TABLE {t}",
    "DROP TEMPORARY TABLE IF EXISTS {t}, {o}",
    "DROP TABLE IF EXISTS {t}, {o}",
    "ALTER TABLE {t} ADD COLUMN temp INT",
    "ALTER TABLE {t} CHANGE c d BIGINT",
    "ALTER TABLE {t} CHANGE a d BIGINT",
    "ALTER TABLE {t} RENAME TO {n}",
    "RENAME TABLE {t} TO {n}",
    "INSERT INTO {t} VALUES (1, 2)",
    "CREATE INDEX i ON {t} (id)",
    "DELETE FROM {t}",
    "START TRANSACTION",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "ROLLBACK",
    "COMMIT",
)
_REAL = (
    "INSERT INTO {t} (id, a, b) VALUES ({k}, 1, 2)",
    "UPDATE {t} SET a = {k}",
    "ALTER TABLE {t} ADD COLUMN r{k} INT DEFAULT {k}",
    "TRUNCATE TABLE {t}",
    "RENAME TABLE {t} TO {n}, {o} TO {t}, {n} TO {o}",
)


def script(rng: random.Random, server: str) -> Script:
    """Session a makes temporary tables and uses their names; session r writes the real ones, row by row."""
    steps: list[Step] = [Sql(f"CREATE TABLE {t} (id INT PRIMARY KEY, a INT, b INT)", "r") for t in ("t", "u")]
    steps += [Sql(f"INSERT INTO {t} VALUES (1, 10, 11), (2, 20, 21)", "r") for t in ("t", "u")]
    steps.append(Sql(f"SET SESSION binlog_format = {rng.choice(('ROW', 'STATEMENT', 'MIXED'))}"))
    if rng.random() < 0.5:
        steps.append(FOLLOW)
    key = 10
    for _ in range(rng.randrange(1, 4)):
        names = rng.sample(("t", "u"), 2)
        words = {"t": names[0], "o": names[1], "n": rng.choice(("n1", "zz", names[1]))}
        steps.append(Sql(rng.choice(_CREATES).format(**words)))
        for _ in range(rng.randrange(1, 4)):
            key += 1
            if rng.random() < 0.7:
                steps.append(Sql(rng.choice(_USES).format(**words)))
            else:
                steps.append(Sql(rng.choice(_REAL).format(k=key, **words), "r"))
            if rng.random() < 0.1:
                steps.append(Hang("a"))
        if rng.random() < 0.3:
            steps.append(FOLLOW)
    steps += [Hang("a"), Sql("INSERT INTO t (id, a, b) VALUES (900, 9, 9)", "r")]
    # What a session in these formats does to a real table is logged as its statement. MariaDB logs the RENAME of a temporary
    # table as that of a real one, without a sign, in sessions whose CREATE TEMPORARY is not logged.
    untold = (
        {"head_differs", "renamed_temporary", "no_create"}
        if server.startswith("mariadb") and any("RENAME TABLE" in str(s) for s in steps)
        else set()
    )
    return Script(steps=steps, stops=frozenset({"statement_rows", "not_understood", "temporary", *untold}))
