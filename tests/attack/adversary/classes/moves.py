"""Tables that come into view and go out of it: renames between databases, databases dropped and made again, changed `tables:`."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Look, Script, Sql, Step

_PLACES = ("c_a.t", "c_a.u", "c_b.t", "x_stage.t", "x_stage.u")
_VIEWS = (("c_*.*",), ("c_a.*",), ("c_b.*", "x_stage.*"), ("*.t",), ("c_*.*", "x_stage.u"), ("c_a.t", "c_b.t"))
"""What the configuration can name as tables."""


def script(rng: random.Random, server: str) -> Script:
    """Rows in tables of captured and other databases, and renames between them."""
    steps: list[Step] = []
    for place in rng.sample(_PLACES, 3):
        steps += [
            Sql(f"CREATE TABLE {place} (id INT PRIMARY KEY, v INT)"),
            Sql(f"INSERT INTO {place} VALUES (1, 1), (2, 2)"),
        ]
    for key in range(1, 1 + rng.randrange(2, 7)):
        a, b, c = rng.sample(_PLACES, 3)
        steps.append(
            Sql(
                rng.choice(
                    (
                        f"RENAME TABLE {a} TO {b}",
                        f"RENAME TABLE {a} TO {b}",
                        f"RENAME TABLE {a} TO {b}, {c} TO {a}",
                        f"ALTER TABLE {a} RENAME TO {b}",
                        f"ALTER TABLE {a} RENAME TO {b}, ADD COLUMN n{key} INT DEFAULT {key}",
                        f"CREATE TABLE {a} LIKE {b}",
                        f"CREATE TABLE {a} (id INT PRIMARY KEY, v INT) SELECT * FROM {b}",
                        f"DROP TABLE IF EXISTS {a}",
                        "DROP DATABASE c_b",
                        "CREATE DATABASE c_b",
                        f"ALTER TABLE {a} ADD COLUMN m{key} INT DEFAULT {key}",
                        f"TRUNCATE {a}",
                    )
                )
            )
        )
        for place in rng.sample(_PLACES, 3):
            steps.append(
                Sql(
                    rng.choice(
                        (
                            f"INSERT INTO {place} (id, v) VALUES ({key + 10}, {key})",
                            f"UPDATE {place} SET v = v + {key}",
                            f"DELETE FROM {place} WHERE id = 2",
                        )
                    )
                )
            )
        if rng.random() < 0.4:
            steps.append(FOLLOW)
            if rng.random() < 0.3:
                # The log must go on, so that there is a plan that says what left.
                steps += [Look(rng.choice(_VIEWS)), Sql(f"CREATE TABLE c_a.after{key} (id INT PRIMARY KEY)")]
    return Script(steps=steps, stops=frozenset({"left", "moved_in", "came_into_view"}))
