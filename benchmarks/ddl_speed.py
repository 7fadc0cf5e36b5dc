"""DDL text to edits: statements per second of the processor, in one thread.

``triage_per_s``: statements that cannot change a table, of several kinds, as a log without DDL holds them. ``alter_per_s``:
ordinary ALTER TABLEs of one or two actions on a table of 20 columns, resolved to edits. ``create_per_s``: CREATE TABLEs of 20
columns, a primary and two other keys. ``largest_s``: the longest that one of several texts of 1 MB takes, each made to be slow.
The processor's time is measured, since a busy machine would measure its other work.
Run: ``python benchmarks/ddl_speed.py [--rounds 5]``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]

from historian.ddl import StatementContext, resolve
from historian.schema.applying import apply_all
from historian.schema.snapshots import Catalog, Database

__all__ = ["alter_per_s", "create_per_s", "largest_s", "triage_per_s"]

CONTEXT = StatementContext(database="shop", version=90700, utf8mb4_collation="utf8mb4_0900_ai_ci")
_ROUNDS = 5

_IRRELEVANT = (
    "GRANT SELECT, INSERT ON `shop`.* TO `app`@`%`",
    "CREATE DEFINER=`root`@`localhost` PROCEDURE `p`(IN a INT) BEGIN UPDATE t SET b = a; DROP TABLE IF EXISTS x; END",
    "ANALYZE TABLE `shop`.`orders`",
    "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `v` AS SELECT * FROM `t`",
    "FLUSH TABLES",
    "ALTER USER 'app'@'%' IDENTIFIED BY 'secret' PASSWORD EXPIRE NEVER",
)
_ALTERS = (
    "ALTER TABLE `shop`.`t` ADD COLUMN `added` DECIMAL(10,2) NOT NULL DEFAULT '0.00' AFTER `c3`",
    "ALTER TABLE t MODIFY c4 VARCHAR(40) NOT NULL DEFAULT 'x'",
    "ALTER TABLE t DROP COLUMN c5, ADD KEY k (c6, c7)",
    "ALTER TABLE t RENAME COLUMN c8 TO other",
    "ALTER TABLE `t` ADD COLUMN `created` DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'when', ALGORITHM=INSTANT",
)
_TYPES = (
    "INT NOT NULL DEFAULT '0'",
    "VARCHAR(255) COLLATE utf8mb4_unicode_ci DEFAULT NULL",
    "DECIMAL(12,2) NOT NULL",
    "DATETIME(3) DEFAULT NULL",
    "ENUM('new','paid','gone') NOT NULL DEFAULT 'new'",
)


def triage_per_s(rounds: int = _ROUNDS) -> float:
    """Statements that cannot change a table, recognised per second."""
    return _rate(_IRRELEVANT, Catalog(), rounds, repeat=500)


def alter_per_s(rounds: int = _ROUNDS) -> float:
    """Ordinary ALTER TABLEs resolved per second."""
    return _rate(_ALTERS, _catalog(), rounds, repeat=100)


def create_per_s(rounds: int = _ROUNDS) -> float:
    """CREATE TABLEs of 20 columns resolved per second."""
    return _rate((_create("u"),), _catalog(), rounds, repeat=100)


def largest_s() -> float:
    """Seconds that the slowest of the texts of 1 MB takes."""
    catalog = _catalog()
    return max(_seconds((sql,), catalog) for sql in _megabytes())


def _create(name: str) -> str:
    columns = ", ".join(f"`c{at}` {_TYPES[at % len(_TYPES)]}" for at in range(19))
    keys = "PRIMARY KEY (`id`), UNIQUE KEY `u` (`c1`,`c2`), KEY `k` (`c3`)"
    return (
        f"CREATE TABLE `{name}` (`id` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, {columns}, {keys}) "
        "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='a table'"
    )


def _catalog() -> Catalog:
    empty = Catalog(databases={"shop": Database(name="shop", charset="utf8mb4", collation="utf8mb4_0900_ai_ci")})
    return apply_all(resolve(_create("t"), CONTEXT, empty).edits, empty)


def _megabytes() -> tuple[str, ...]:
    return (
        "ALTER TABLE t " + "ADD c INT, " * 90_000,
        "ALTER TABLE t " + "ADD KEY (c1), " * 70_000,
        "ALTER TABLE t " + ", ".join(f"ADD d{at} INT AFTER {f'd{at - 1}' if at else 'c1'}" for at in range(4_000)),
        "ALTER TABLE t ADD c ENUM(" + "'x'," * 250_000 + "'y')",
        "ALTER TABLE t ADD c INT DEFAULT " + "(" * 1_000_000,
        "CREATE TABLE u (" + ", ".join(f"c{at} INT UNIQUE" for at in range(4_000)) + ")",
        "CREATE TABLE u (" + ", ".join(f"c{at} INT" for at in range(80_000)) + ")",
        "DROP TABLE " + ",".join(f"x{at}" for at in range(99_000)) + " " * 350_000,
        "RENAME TABLE " + ", ".join("t TO u, u TO t" for _ in range(24_000)) + " " * 600_000,
        "/*!99999 " * 110_000,
        "ALTER TABLE t COMMENT '" + "\\'" * 500_000,
        "`" * 1_000_000,
    )


def _rate(statements: Sequence[str], catalog: Catalog, rounds: int, *, repeat: int) -> float:
    """The median of several rounds, after one that is not counted."""
    for sql in statements:
        resolution = resolve(sql, CONTEXT, catalog)
        if resolution.reason:
            raise SystemExit(f"{sql[:80]}: {resolution.reason}")
    batch = tuple(statements) * repeat
    _seconds(batch, catalog)
    return statistics.median(len(batch) / _seconds(batch, catalog) for _ in range(rounds))


def _seconds(statements: Sequence[str], catalog: Catalog) -> float:
    begin = time.process_time()
    for sql in statements:
        resolve(sql, CONTEXT, catalog)
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    rounds = parser.parse_args().rounds
    results = {
        "triage_per_s": round(triage_per_s(rounds)),
        "alter_per_s": round(alter_per_s(rounds)),
        "create_per_s": round(create_per_s(rounds)),
        "largest_s": round(largest_s(), 2),
    }
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
