"""System-versioned tables of MariaDB, whose rows from before each change stand in the log: hidden and declared columns, all row images."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Kill, Script, Sql, Step

SERVERS = ("mariadb118", "mariadb1011", "mariadb105")

_BOUNDS = "r TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (r, e)"
_TABLES = (
    "CREATE TABLE t (id INT{key}, v INT, s TEXT) WITH SYSTEM VERSIONING",
    "CREATE TABLE t (id INT{key}, v INT, s TEXT WITH SYSTEM VERSIONING)",
    f"CREATE TABLE t (id INT{{key}}, v INT, s TEXT, {_BOUNDS}) WITH SYSTEM VERSIONING",
    f"CREATE TABLE t (id INT{{key}}, v INT, {_BOUNDS}, s TEXT) WITH SYSTEM VERSIONING",
    "CREATE TABLE u (id INT{key}, v INT, s TEXT) WITH SYSTEM VERSIONING; CREATE TABLE t LIKE u",
    "CREATE TABLE t (id INT{key}, v INT, s TEXT)",
)
_CHANGES = (
    "INSERT INTO t (id, v, s) VALUES ({n}, {n}, 'a')",
    "INSERT INTO t (id, v, s) VALUES ({n}, 1, 'b'), ({m}, 2, 'c')",
    "UPDATE t SET v = v + 1 WHERE id < {m}",
    "UPDATE t SET v = v",
    "UPDATE t SET id = id + 100 WHERE v = 2",
    "DELETE FROM t WHERE id = {m}",
    "REPLACE INTO t (id, v, s) VALUES ({m}, 7, 'd')",
    "INSERT INTO t (id, v) VALUES ({m}, 8) ON DUPLICATE KEY UPDATE v = 9",
    "DELETE HISTORY FROM t",
    "DELETE HISTORY FROM t BEFORE SYSTEM_TIME NOW()",
    "SET timestamp = {n}000000",
    "SET timestamp = DEFAULT",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "SET system_versioning_insert_history = 1",
    "INSERT INTO t (id, v, row_start, row_end) VALUES ({n}, 3, '2001-01-01', '2002-01-01')",
)
_ALTERS = (
    "ADD SYSTEM VERSIONING",
    "DROP SYSTEM VERSIONING",
    "ADD COLUMN x{n} INT DEFAULT 1 FIRST",
    "ADD COLUMN y{n} VARCHAR(5) DEFAULT 'y'",
    "MODIFY v BIGINT",
    "MODIFY v INT WITHOUT SYSTEM VERSIONING",
    "DROP PRIMARY KEY",
    "ADD UNIQUE w (id)",
    "DROP COLUMN r, DROP COLUMN e",
    f"ADD COLUMN {_BOUNDS.replace(', e ', ', ADD COLUMN e ').replace(', PERIOD', ', ADD PERIOD')}, ADD SYSTEM VERSIONING",
    "PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION p1 CURRENT)",
    "RENAME TO w, RENAME TO t",
    "ENGINE = InnoDB",
)


def script(rng: random.Random, server: str) -> Script:
    """A table that is or becomes versioned, with changes of rows and of the table."""
    image = rng.choice(("FULL", "FULL", "MINIMAL", "NOBLOB"))
    said: dict[str, object] = rng.choice(({}, {}, {"keyless": "rows"}, {"mirror_deletes": "soft"}))
    if image != "FULL":
        said = {}
    key = rng.choice((" PRIMARY KEY", " PRIMARY KEY", " NOT NULL UNIQUE", ""))
    steps: list[Step] = [
        Sql(f"SET SESSION binlog_row_image = {image}"),
        Sql("SET system_versioning_alter_history = KEEP"),
        Sql(rng.choice(_TABLES).format(key=key)),
    ]
    for number in range(1, rng.randrange(8, 24)):
        chosen = f"ALTER TABLE t {rng.choice(_ALTERS)}" if rng.random() < 0.2 else rng.choice(_CHANGES)
        steps.append(Sql(chosen.format(n=number, m=rng.randrange(1, number + 1))))
        if rng.random() < 0.15:
            steps.append(FOLLOW)
        elif rng.random() < 0.02:
            steps.append(Kill())
    steps.append(Sql("COMMIT"))
    return Script(
        steps=steps,
        said=said,
        partial=image != "FULL",
        stops=frozenset(
            {
                "key_changed",
                "no_key",
                "absent_columns",
                "computed_values",
                "values_rewritten",
                "at their place, between others",
            }
        ),
    )
