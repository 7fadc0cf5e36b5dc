"""The log itself: rotations, purges, restarts, kills, odd GTIDs, plans of any size, forgetting on the way."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Follow, Forget, Kill, Restart, Script, Sql, Step

_UUID = "aaaaaaaa-1111-2222-3333-{:012d}"


def script(rng: random.Random, server: str) -> Script:
    """Rows and edits of two tables, with what befalls logs between them."""
    mariadb = server.startswith("mariadb")
    steps: list[Step] = [
        Sql("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)"),
        Sql("CREATE TABLE h (id INT PRIMARY KEY, v INT) ENGINE=MEMORY"),
    ]
    costly = rng.random() < 0.15
    for key in range(1, 1 + rng.randrange(4, 14)):
        way = rng.randrange(12)
        if way < 4:
            steps.append(
                Sql(
                    rng.choice(
                        (
                            f"INSERT INTO t (v) VALUES ({key}), ({key})",
                            "UPDATE t SET v = v + 1",
                            "DELETE FROM t WHERE id % 2 = 0",
                            f"INSERT INTO h VALUES ({key}, 1)",
                        )
                    )
                )
            )
        elif way < 6:
            steps.append(
                Sql(
                    rng.choice(
                        (
                            f"ALTER TABLE t ADD COLUMN n{key} INT DEFAULT {key}",
                            "ALTER TABLE t DROP COLUMN v, ADD COLUMN v INT DEFAULT 4",
                            "TRUNCATE t",
                        )
                    )
                )
            )
        elif way == 6:
            steps.append(Sql("FLUSH BINARY LOGS"))
        elif way == 7:
            steps += [FOLLOW, Forget()] if rng.random() < 0.5 else [FOLLOW]
        elif way == 8:
            steps.append(Follow(rng.choice((1, 300, 2000))))
        elif way == 9 and costly:
            # The server logs that a table in memory is empty when somebody reads it.
            steps += [rng.choice((Kill(), Restart())), Sql("SELECT COUNT(*) FROM h")]
        elif way == 10 and mariadb:
            steps += [
                Sql(f"SET gtid_domain_id = {rng.choice((0, 0, 3))}"),
                Sql(f"SET gtid_seq_no = {key * 1000}"),
                Sql(f"INSERT INTO t (v) VALUES ({key})"),
            ]
        elif way == 10:
            gtid = f"{_UUID.format(rng.randrange(2))}:{rng.choice((key, 100 - key, key * 7))}"
            steps += [
                Sql(f"SET gtid_next = '{gtid}'"),
                Sql(f"INSERT INTO t (v) VALUES ({key})"),
                Sql("SET gtid_next = 'AUTOMATIC'"),
            ]
        else:
            steps += [FOLLOW, Sql("FLUSH BINARY LOGS"), FOLLOW, Sql("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")]
    return Script(steps=steps)
