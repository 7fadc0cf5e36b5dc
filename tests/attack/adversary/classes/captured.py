"""Tables that are there before the connector, so that it knows them by ``information_schema``, and rows that leave columns out."""

from __future__ import annotations

import random

from adversary.classes.literals import MARIADB_TYPES, TYPES, literal
from adversary.script import FOLLOW, Script, Sql, Step


def script(rng: random.Random, server: str) -> Script:
    """Columns with defaults of random types, a connector that begins behind them, and rows with some of the columns."""
    types = (*TYPES, *(MARIADB_TYPES if server.startswith("mariadb") else ()))
    steps: list[Step] = []
    if rng.random() < 0.5:
        modes = ("", "NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES")
        steps.append(Sql(f"SET sql_mode = '{rng.choice(modes)}', time_zone = '{rng.choice(('+00:00', '+05:30'))}'"))
    names = [f"c{at}" for at in range(rng.randrange(1, 7))]
    steps.append(Sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)"))
    labels = rng.choice(("'🍵','x'", "'a?','x','🍵'", "'é','日','x'"))
    charset = rng.choice(("", "", " CHARACTER SET utf16", " CHARACTER SET gb18030"))
    steps.append(Sql(f"ALTER TABLE t ADD COLUMN e {rng.choice(('ENUM', 'SET'))}({labels}){charset}"))
    for name in names:
        kind = rng.choice(types)
        attributes = rng.choice(("", "", " NOT NULL")) if "NULL" not in kind else ""
        steps.append(Sql(f"ALTER TABLE t ADD COLUMN {name} {kind}{attributes} DEFAULT {literal(rng, kind)}"))
    if rng.random() < 0.5:
        steps += [Sql(f"INSERT INTO t (id, e) VALUES ({90 + at}, {1 << at})") for at in range(2)]
    steps += [FOLLOW, Sql("SET SESSION binlog_row_image = MINIMAL")]
    for key in range(rng.randrange(2, 5)):
        steps.append(Sql(f"INSERT INTO t (id, v, e) VALUES ({key}, {key}, {rng.choice((1, 2, 'NULL'))})"))
        if rng.random() < 0.3:
            steps.append(Sql(f"ALTER TABLE t ADD COLUMN n{key} INT DEFAULT {key}"))
        if rng.random() < 0.3:
            steps.append(FOLLOW)
    stops = untold_labels(server) | {"absent_columns", "only the server knows what"}
    return Script(steps=steps, start="latest", where="id < 90", partial=True, stops=stops)


def untold_labels(server: str) -> frozenset[str]:
    """The stop that a server causes of which no question tells a label that no row holds."""
    return frozenset({"untold_label"} if server in ("mysql57", "mysql8") else ())
