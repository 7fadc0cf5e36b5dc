"""Tables of three databases as one: statements reach each shard at its own time, rows change in between, shards go and come."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Follow, Kill, Script, Sql, Step

_DATABASES = ("c_a", "c_b", "c_c")
_TABLES = (
    "CREATE TABLE {d}.t (id INT PRIMARY KEY, v INT, s VARCHAR(20))",
    "CREATE TABLE {d}.t (v INT, id INT NOT NULL, k VARCHAR(9) NOT NULL, s TEXT, PRIMARY KEY (id, k))",
    "CREATE TABLE {d}.t (id VARCHAR(20) PRIMARY KEY, v INT, s VARCHAR(20), w DECIMAL(9,2) DEFAULT 1.5)",
)
_STATEMENTS = (
    "ALTER TABLE {d}.t ADD COLUMN n{n} INT DEFAULT {n}",
    "ALTER TABLE {d}.t ADD COLUMN n{n} VARCHAR(9) NOT NULL DEFAULT 'x{n}' FIRST",
    "ALTER TABLE {d}.t MODIFY v BIGINT",
    "ALTER TABLE {d}.t CHANGE s s{n} VARCHAR(40)",
    "ALTER TABLE {d}.t DROP COLUMN v",
    "ALTER TABLE {d}.t ADD COLUMN v INT DEFAULT 7 AFTER id",
    "ALTER TABLE {d}.t ADD INDEX i{n} (id)",
    "ALTER TABLE {d}.t MODIFY s VARCHAR(60) AFTER id",
)
_ROWS = (
    "INSERT INTO {d}.t (id) VALUES ({n})",
    "INSERT INTO {d}.t (id) VALUES ({n}), ({m})",
    "UPDATE {d}.t SET id = id + 100 WHERE id = {m}",
    "UPDATE {d}.t SET v = v + {n}",
    "UPDATE {d}.t SET s = 's{n}' WHERE id % 2 = 0",
    "DELETE FROM {d}.t WHERE id = {m}",
    "REPLACE INTO {d}.t (id) VALUES ({m})",
)
_WHOLE = ("TRUNCATE {d}.t", "DROP TABLE {d}.t", "DROP DATABASE {d}", "CREATE TABLE IF NOT EXISTS {d}.t LIKE c_a.t")
_STOPS = frozenset({"shards_differ", "shard_stopped", "values_rewritten", "computed_values"})


def script(rng: random.Random, server: str) -> Script:
    """The same statements on all shards, each at its own pace; at the end all have them all."""
    table = rng.choice(_TABLES)
    steps: list[Step] = [Sql("CREATE DATABASE c_c"), Sql("SET sql_mode = ''")]
    steps += [Sql(table.format(d=database)) for database in _DATABASES]
    statements = [rng.choice(_STATEMENTS).format(d="{d}", n=at) for at in range(rng.randrange(1, 5))]
    done = dict.fromkeys(_DATABASES, 0)
    for number in range(1, rng.randrange(10, 30)):
        database = rng.choice(_DATABASES)
        draw = rng.random()
        if draw < 0.2 and done[database] < len(statements):
            steps.append(Sql(statements[done[database]].format(d=database)))
            done[database] += 1
        elif draw < 0.25:
            steps.append(Sql(rng.choice(_WHOLE).format(d=rng.choice(_DATABASES[1:]))))
        else:
            chosen = rng.choice(_ROWS)
            steps.append(Sql(chosen.format(d=database, n=number, m=rng.randrange(1, number + 1))))
        if rng.random() < 0.2:
            steps.append(rng.choice((FOLLOW, FOLLOW, Follow(300), Kill() if rng.random() < 0.1 else FOLLOW)))
    for database, at in done.items():
        steps += [Sql(statement.format(d=database)) for statement in statements[at:]]
    into = ("into", ("all.t", (("shard", "{database}"),)))
    return Script(steps=steps, said={"tables": (("c_*.t", (into,)),)}, union="t", stops=_STOPS)
