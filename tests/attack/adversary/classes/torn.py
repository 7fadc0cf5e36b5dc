"""Copies of the log whose last file ends anywhere, read again when more of it is there."""

from __future__ import annotations

import random

from adversary.script import Script, Sql, Step, Torn

_CHANGES = (
    "INSERT INTO t (v) VALUES ({n}), ({n})",
    "UPDATE t SET v = v + 1",
    "DELETE FROM t WHERE id % 3 = 0",
    "ALTER TABLE t ADD COLUMN n{n} INT DEFAULT {n}",
    "ALTER TABLE t DROP COLUMN v, ADD COLUMN v INT DEFAULT 4",
    "TRUNCATE t",
    "FLUSH BINARY LOGS",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
)


def script(rng: random.Random, server: str) -> Script:
    """Changes of a table, and looks at the log between them."""
    steps: list[Step] = [Sql("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")]
    for key in range(1, rng.randrange(4, 12)):
        steps.append(Sql(rng.choice(_CHANGES).format(n=key)))
        if rng.random() < 0.5:
            steps.append(Torn(rng.choice((rng.random(), 0.5 + rng.random() / 2, 0.999))))
    return Script(steps=[*steps, Sql("COMMIT"), Torn(rng.random())])
