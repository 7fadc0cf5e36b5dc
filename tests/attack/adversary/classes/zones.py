"""Time zones: named ones with gaps, offsets, of sessions and of the server; times at the edges of days and of summer."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Script, Sql, Step

_ZONES = ("+00:00", "-03:00", "+05:30", "+13:00", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "SYSTEM")
_TIMES = (
    "2020-03-29 02:30:00",
    "2020-03-29 01:59:59.999999",
    "2020-10-25 02:30:00",
    "2020-03-08 02:15:00",
    "2020-10-04 02:15:00",
    "1970-01-02 00:00:01",
    "2038-01-18 00:00:00",
    "2020-01-01 00:00:00",
    "2020-06-30 23:59:60",
    "0000-00-00 00:00:00",
    "2020-02-30 00:00:00",
)


def script(rng: random.Random, server: str) -> Script:
    """Times written and added as defaults under zones that change."""
    steps: list[Step] = [
        Sql("SET sql_mode = ''"),
        Sql("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s TIMESTAMP(6) NULL, d DATETIME(3) NULL, v INT)"),
        Sql(f"INSERT INTO t (s, d) VALUES ('{rng.choice(_TIMES)}', '{rng.choice(_TIMES)}')"),
    ]
    for at in range(rng.randrange(2, 7)):
        if rng.random() < 0.7:
            steps.append(Sql(f"SET time_zone = '{rng.choice(_ZONES)}'"))
        if rng.random() < 0.3:
            steps.append(
                Sql(
                    f"SET sql_mode = '{rng.choice(('', 'STRICT_TRANS_TABLES', 'ALLOW_INVALID_DATES', 'NO_ZERO_DATE'))}'"
                )
            )
        kind = rng.choice(
            ("TIMESTAMP NULL", "TIMESTAMP(3) NULL", "TIMESTAMP(6) NULL", "DATETIME(6)", "DATETIME", "DATE", "TIME(3)")
        )
        time = rng.choice(_TIMES)
        steps.append(
            Sql(
                rng.choice(
                    (
                        f"ALTER TABLE t ADD COLUMN c{at} {kind} DEFAULT '{time}'",
                        f"ALTER TABLE t ADD COLUMN c{at} {kind} DEFAULT '{time}'",
                        f"INSERT INTO t (s, d) VALUES ('{time}', '{time}')",
                        f"UPDATE t SET s = '{time}', v = {at}",
                    )
                )
            )
        )
        if rng.random() < 0.3:
            steps.append(Sql("INSERT INTO t (v) VALUES (1)"))
        if rng.random() < 0.2:
            steps.append(FOLLOW)
    return Script(
        steps=steps,
        stops=frozenset(
            {
                "only the server knows what old rows hold",
                " TIMESTAMP NULL DEFAULT",
                " TIMESTAMP(3) NULL",
                " TIMESTAMP(6) NULL",
                "initial value is none of its type",
            }
        ),
    )
