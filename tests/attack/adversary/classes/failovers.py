"""A replica takes the server's place, with GTIDs out of order and with holes, edits and rows on both sides."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Failover, Script, Sql, Step

SERVERS = ("mysql8", "mysql9", "mariadb1011", "mariadb118")
SECOND = True
_UUID = "aaaaaaaa-1111-2222-3333-{:012d}"


def script(rng: random.Random, server: str) -> Script:
    """Changes, the failover, changes; runs between."""
    mariadb = server.startswith("mariadb")
    steps: list[Step] = [Sql("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")]
    length = rng.randrange(3, 9)
    moved = rng.randrange(length + 1)
    for key in range(1, length + 1):
        if key == moved:
            steps += [*([FOLLOW] if rng.random() < 0.6 else []), Failover()]
        if rng.random() < 0.3:
            steps.append(_numbered(rng, key, mariadb=mariadb))
        steps.append(
            Sql(
                rng.choice(
                    (
                        f"INSERT INTO t (v) VALUES ({key}), ({key})",
                        "UPDATE t SET v = v + 1",
                        "DELETE FROM t WHERE id % 2 = 0",
                        f"ALTER TABLE t ADD COLUMN n{key} INT DEFAULT {key}",
                        "ALTER TABLE t DROP COLUMN v, ADD COLUMN v INT DEFAULT 4",
                        "TRUNCATE t",
                        "FLUSH BINARY LOGS",
                    )
                )
            )
        )
        if not mariadb:
            steps.append(Sql("SET gtid_next = 'AUTOMATIC'"))
        if rng.random() < 0.4:
            steps.append(FOLLOW)
    return Script(steps=steps)


def _numbered(rng: random.Random, key: int, *, mariadb: bool) -> Sql:
    if mariadb:
        return Sql(f"SET gtid_domain_id = {rng.choice((0, 0, 3))}, gtid_seq_no = {key * 1000}")
    return Sql(f"SET gtid_next = '{_UUID.format(rng.randrange(2))}:{rng.choice((key, 100 - key, key * 7))}'")
