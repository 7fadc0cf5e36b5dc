"""Keys: changed, dropped, made of other columns, periods without overlaps, keyless rows, soft deletes, partial images."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Script, Sql, Step

_ALTERS = (
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id, k)",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (k)",
    "DROP PRIMARY KEY",
    "ADD PRIMARY KEY (id)",
    "ADD UNIQUE u (k)",
    "DROP INDEX u",
    "MODIFY id BIGINT",
    "CHANGE id id2 INT NOT NULL",
    "CHANGE id2 id INT NOT NULL",
    "ADD COLUMN x{at} INT DEFAULT 1 FIRST",
    "DROP COLUMN v, ADD COLUMN v INT DEFAULT 2",
    "MODIFY v INT AFTER id",
    "MODIFY v BIGINT",
    "RENAME COLUMN v TO w, RENAME COLUMN k TO v, RENAME COLUMN w TO k",
)


def script(rng: random.Random, server: str) -> Script:
    """A table whose key changes, with rows that change under it, and one setting of the lake for it."""
    said: dict[str, object] = rng.choice(({}, {}, {"keyless": "rows"}, {"mirror_deletes": "soft"}, {"cluster": True}))
    partial = rng.random() < 0.3 and not said
    steps: list[Step] = []
    if partial:
        steps.append(Sql(f"SET SESSION binlog_row_image = {rng.choice(('MINIMAL', 'NOBLOB'))}"))
    period = server in ("mariadb1011", "mariadb118", "mariadb105") and rng.random() < 0.2
    if period:
        steps.append(
            Sql(
                "CREATE TABLE t (id INT, s DATE, e DATE, k INT, v INT, PERIOD FOR p(s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS))"
            )
        )
        rows = "(id, s, e, k, v) VALUES ({n}, '2020-0{m}-01', '2020-0{m}-20', {n}, {m})"
    else:
        steps.append(
            Sql(
                f"CREATE TABLE t (id INT{rng.choice((' PRIMARY KEY', ' NOT NULL', ' NOT NULL UNIQUE'))}, k INT NOT NULL, v INT)"
            )
        )
        rows = "(id, k, v) VALUES ({n}, {n}, {m})"
    number = 0
    for at in range(rng.randrange(2, 7)):
        for _ in range(rng.randrange(3)):
            number += 1
            n = rng.choice((number, 1)) if period else number
            steps.append(Sql(f"INSERT INTO t {rows.format(n=n, m=number % 8 + 1)}"))
        if rng.random() < 0.6:
            steps.append(Sql(f"ALTER TABLE t {rng.choice(_ALTERS).format(at=at)}"))
        steps.append(
            Sql(
                rng.choice(
                    (
                        "UPDATE t SET v = v + 1 WHERE k < 3",
                        "UPDATE t SET k = k + 100 WHERE k < 5",
                        "DELETE FROM t WHERE k % 3 = 0",
                        "UPDATE t SET id = id + 1000 ORDER BY id DESC",
                    )
                )
            )
        )
        if rng.random() < 0.35:
            steps.append(FOLLOW)
    return Script(
        steps=steps,
        said=said,
        partial=partial,
        stops=frozenset({"key_changed", "no_key", "absent_columns", "rows_changed_unseen", "values_rewritten"}),
    )
