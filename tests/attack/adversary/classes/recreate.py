"""One name, one kind of table after the other: by DROP and CREATE, RENAME, swap, CREATE OR REPLACE, in one run or over several."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Script, Sql, Step

_KINDS = {
    "(id INT PRIMARY KEY, v INT)": "({n}, {m})",
    "(id INT, v INT)": "({n}, {m})",
    "(x INT, w INT)": "({m}, {m})",
    "(id INT NOT NULL UNIQUE, v INT)": "({n}, {m})",
    "(v INT, id INT PRIMARY KEY)": "({m}, {n})",
    "(id BIGINT PRIMARY KEY, v VARCHAR(9))": "({n}, 'v{m}')",
    "(id VARCHAR(9) PRIMARY KEY, v INT)": "('k{n}', {m})",
    "(id INT, v INT, PRIMARY KEY (id, v))": "({n}, {m})",
    "(id INT PRIMARY KEY, v INT, g INT AS (v + 1))": "({n}, {m}, DEFAULT)",
    "(id INT PRIMARY KEY, v INT) ENGINE=MyISAM": "({n}, {m})",
    "(id INT PRIMARY KEY, v INT) PARTITION BY HASH (id) PARTITIONS 2": "({n}, {m})",
    "(id INT AUTO_INCREMENT PRIMARY KEY, v INT)": "({n}, {m})",
}


def script(rng: random.Random, server: str) -> Script:
    """Tables t and u change places and kinds."""
    said: dict[str, object] = {"keyless": "rows"} if rng.random() < 0.5 else {}
    if rng.random() < 0.2 and not said:
        said["mirror_deletes"] = "soft"
    steps: list[Step] = []
    kinds = {name: rng.choice([*_KINDS]) for name in ("t", "u")}
    number = 0
    for name, kind in kinds.items():
        steps.append(Sql(f"CREATE TABLE {name} {kind}"))
    for _ in range(rng.randrange(1, 5)):
        for name, kind in kinds.items():
            for _ in range(rng.randrange(0, 3)):
                number += 1
                steps.append(Sql(f"INSERT INTO {name} VALUES {_KINDS[kind].format(n=number, m=number % 3)}"))
        if rng.random() < 0.4:
            steps.append(FOLLOW)
        new = rng.choice([*_KINDS])
        way = rng.randrange(6)
        if way < 2:
            steps += [
                Sql(f"DROP TABLE {rng.choice(('t', 'IF EXISTS t'))}"),
                *([FOLLOW] if rng.random() < 0.2 else []),
                Sql(f"CREATE TABLE t {new}"),
            ]
            kinds["t"] = new
        elif way == 2:
            steps.append(Sql("RENAME TABLE t TO w, u TO t, w TO u"))
            kinds = {"t": kinds["u"], "u": kinds["t"]}
        elif way == 3:
            steps += [Sql("DROP TABLE u"), Sql("RENAME TABLE t TO u"), Sql(f"CREATE TABLE t {new}")]
            kinds = {"t": new, "u": kinds["t"]}
        elif way == 4:
            steps.append(Sql(f"CREATE OR REPLACE TABLE t {new}"))
            if server.startswith("mariadb"):
                kinds["t"] = new
        else:
            steps += [Sql("DROP DATABASE c_a"), Sql("CREATE DATABASE c_a"), Sql("USE c_a")]
            steps += [Sql(f"CREATE TABLE {name} {kind}") for name, kind in kinds.items()]
    return Script(steps=steps, said=said, stops=frozenset({"key_changed", "values_rewritten", "recreated"}))
