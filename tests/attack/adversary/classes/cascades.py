"""Foreign keys that change children: from the beginning, added later, dropped again, over several levels."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Script, Sql, Step

_ACTIONS = (
    "ON DELETE CASCADE",
    "ON DELETE SET NULL",
    "ON UPDATE CASCADE",
    "ON DELETE CASCADE ON UPDATE CASCADE",
    "ON UPDATE SET NULL",
    "ON DELETE RESTRICT",
    "",
)


def script(rng: random.Random, server: str) -> Script:
    """A parent, a child, a grandchild; keys with actions come and go; parents change."""
    early = rng.random() < 0.3
    action = rng.choice(_ACTIONS)
    key = f"CONSTRAINT f FOREIGN KEY (p) REFERENCES parent (id) {action}"
    steps: list[Step] = [
        Sql("CREATE TABLE parent (id INT PRIMARY KEY, v INT)"),
        Sql(f"CREATE TABLE child (id INT PRIMARY KEY, p INT, INDEX (p){', ' + key if early else ''})"),
        Sql(
            f"CREATE TABLE grand (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id) {rng.choice(_ACTIONS) if rng.random() < 0.3 else ''})"
        ),
        Sql("INSERT INTO parent VALUES (1, 1), (2, 2), (3, 3)"),
        Sql("INSERT INTO child VALUES (10, 1), (11, 1), (12, 2), (13, NULL)"),
        Sql("INSERT INTO grand VALUES (100, 10), (101, 12)")
        if rng.random() < 0.5
        else Sql("INSERT INTO parent VALUES (8, 8)"),
    ]
    if rng.random() < 0.5:
        steps.append(FOLLOW)
    if not early:
        steps.append(Sql(f"ALTER TABLE child ADD {key}"))
    for at in range(rng.randrange(1, 4)):
        steps.append(
            Sql(
                rng.choice(
                    (
                        f"DELETE FROM parent WHERE id = {at + 1}",
                        f"UPDATE parent SET id = id + 50 WHERE id = {at + 1}",
                        "DELETE FROM child WHERE id = 10",
                        f"REPLACE INTO parent VALUES ({at + 1}, 9)",
                        f"INSERT INTO parent VALUES ({at + 1}, 5) ON DUPLICATE KEY UPDATE v = 7",
                    )
                )
            )
        )
        if rng.random() < 0.3:
            steps.append(FOLLOW)
    if rng.random() < 0.5:
        steps.append(Sql("ALTER TABLE child DROP FOREIGN KEY f"))
    # A run into Delta that begins where such a key is there already is refused by the start's check, with the statement that mends it.
    return Script(steps=steps, stops=frozenset({"cascade"}), fails=frozenset({"cascades into c_a."}))
