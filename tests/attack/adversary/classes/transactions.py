"""Transactions: savepoints, rollbacks with tables that do not roll back, XA, temporary tables on the way, sessions that end."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Follow, Hang, Script, Sql, Step

_CHANGES = (
    "INSERT INTO t (v) VALUES ({at}), ({next})",
    "UPDATE t SET v = v + 1 WHERE id % 2 = {odd}",
    "DELETE FROM t WHERE id % 3 = 0",
    "INSERT INTO m (v) VALUES ({at})",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "RELEASE SAVEPOINT s",
    "CREATE TEMPORARY TABLE IF NOT EXISTS tt (x INT)",
    "INSERT INTO tt VALUES (1)",
    "DROP TEMPORARY TABLE IF EXISTS tt",
    "ALTER TABLE t ADD COLUMN n{at} INT DEFAULT {at}",
)


def script(rng: random.Random, server: str) -> Script:
    """Two sessions whose transactions end in every way."""
    steps: list[Step] = [
        Sql("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)"),
        Sql("CREATE TABLE m (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=MyISAM"),
    ]
    xa = 0
    for at in range(rng.randrange(2, 6)):
        session = rng.choice(("a", "b"))
        xid = None
        if rng.random() < 0.2:
            xa += 1
            xid = f"'x{xa}'"
            steps.append(Sql(f"XA START {xid}", session))
        else:
            steps.append(Sql(rng.choice(("BEGIN", "START TRANSACTION", "SET autocommit = 0")), session))
        steps += [
            Sql(rng.choice(_CHANGES).format(at=at, next=at + 1, odd=at % 2), session)
            for _ in range(rng.randrange(1, 6))
        ]
        if xid:
            steps += [Sql(f"XA END {xid}", session), Sql(f"XA PREPARE {xid}", session)]
            if rng.random() < 0.5:
                steps.append(FOLLOW)
            steps.append(Sql(f"XA {rng.choice(('COMMIT', 'ROLLBACK'))} {xid}", session))
        elif rng.random() < 0.15:
            steps.append(Hang(session))
        else:
            steps.append(Sql(rng.choice(("COMMIT", "COMMIT", "ROLLBACK", "SET autocommit = 1")), session))
        if rng.random() < 0.3:
            steps.append(Follow(rng.choice((None, 200, 1000))))
    steps += [Hang("a"), Hang("b")]
    return Script(steps=steps)
