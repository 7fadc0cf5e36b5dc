"""Statements in wrappers: comments that run, SET STATEMENT, EXECUTE IMMEDIATE, blocks, prepared statements, routines, events."""

from __future__ import annotations

import random
from collections.abc import Callable

from adversary.script import FOLLOW, Script, Sql, Step

Wrap = Callable[[random.Random, str], list[str]]


def _quoted(sql: str) -> str:
    return "'" + sql.replace("\\", "\\\\").replace("'", "''") + "'"


def _comment(rng: random.Random, sql: str) -> list[str]:
    return [
        rng.choice(
            (
                f"/*!50000 {sql} */",
                f"/*! {sql} */",
                f"/* why */ {sql}",
                f"-- why\n{sql}",
                f"# why\n {sql}",
                f"/*!40101 {sql}*/ -- x",
            )
        )
    ]


def _half_comment(rng: random.Random, sql: str) -> list[str]:
    """A word of the statement in a comment that runs, and one after it that does not."""
    words = sql.split(" ")
    at = rng.randrange(len(words))
    words[at] = f"/*!50000 {words[at]} */"
    return [" ".join(words) + " /*!99999 , ADD COLUMN never INT */"]


def _prepared(rng: random.Random, sql: str) -> list[str]:
    return [f"PREPARE p FROM {_quoted(sql)}", "EXECUTE p", "DEALLOCATE PREPARE p"]


def _procedure(rng: random.Random, sql: str) -> list[str]:
    body = rng.choice((sql, f"BEGIN {sql}; END", f"BEGIN IF 1 = 1 THEN {sql}; END IF; END"))
    return [f"CREATE PROCEDURE pr() {body}", "CALL pr()", "DROP PROCEDURE pr"]


def _several(rng: random.Random, sql: str) -> list[str]:
    return [rng.choice((f"SELECT 1; {sql}; SELECT 2", f"SET @x = 1; {sql}", f"{sql}; DO 1"))]


def _set_statement(rng: random.Random, sql: str) -> list[str]:
    said = rng.choice(
        (
            "lock_wait_timeout=5",
            "max_statement_time=10",
            "lock_wait_timeout=4, sort_buffer_size=100000",
            "sql_mode='ANSI_QUOTES'",
            "sql_mode=''",
        )
    )
    return [f"SET STATEMENT {said} FOR {sql}"]


def _immediate(rng: random.Random, sql: str) -> list[str]:
    return [f"EXECUTE IMMEDIATE {_quoted(sql)}"]


def _block(rng: random.Random, sql: str) -> list[str]:
    return [
        rng.choice((f"BEGIN NOT ATOMIC {sql}; END", f"IF 1 = 1 THEN {sql}; END IF", f"FOR i IN 1..1 DO {sql}; END FOR"))
    ]


def _mariadb_comment(rng: random.Random, sql: str) -> list[str]:
    return [rng.choice((f"/*M!100000 {sql} */", f"/*M! {sql} */", f"/*!100100 {sql} */"))]


def _analyze(rng: random.Random, sql: str) -> list[str]:
    return [f"{rng.choice(('ANALYZE', 'EXPLAIN', 'ANALYZE FORMAT=JSON'))} {sql}"]


_BOTH: tuple[Wrap, ...] = (_comment, _half_comment, _prepared, _procedure, _several, _analyze)
_MARIADB: tuple[Wrap, ...] = (*_BOTH, _set_statement, _set_statement, _immediate, _block, _mariadb_comment)


def _statement(rng: random.Random, at: int) -> str:
    return rng.choice(
        (
            f"ALTER TABLE t DROP COLUMN b, ADD COLUMN b INT DEFAULT {at}",
            f"ALTER TABLE t ADD COLUMN n{at} INT NOT NULL DEFAULT {at}",
            "ALTER TABLE t RENAME COLUMN a TO z, RENAME COLUMN b TO a, RENAME COLUMN z TO b",
            "ALTER TABLE t CHANGE a z INT, CHANGE b a INT, CHANGE z b INT",
            "TRUNCATE TABLE t",
            "DROP TABLE IF EXISTS u",
            "RENAME TABLE t TO w, u TO t, w TO u",
            "CREATE TABLE IF NOT EXISTS u (id INT PRIMARY KEY, a INT, b INT)",
            "CREATE OR REPLACE TABLE u (id INT PRIMARY KEY, b INT, a INT)",
            f"INSERT INTO t (id, a, b) VALUES ({100 + at}, {at}, -{at})",
            f"UPDATE t SET a = {at} WHERE id < 3",
            "DELETE FROM t WHERE id = 2",
            "DROP DATABASE IF EXISTS c_b",
            "ALTER DATABASE c_a CHARACTER SET latin1",
        )
    )


def script(rng: random.Random, server: str) -> Script:
    """Some statements, each in one wrapper or two; rows before, between and after."""
    wraps = _MARIADB if server.startswith("mariadb") else _BOTH
    steps: list[Step] = [
        Sql("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)"),
        Sql("CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT)"),
        Sql("INSERT INTO t VALUES (1, 10, 11), (2, 20, 21)"),
        Sql("INSERT INTO u VALUES (5, 50, 51)"),
    ]
    for at in range(rng.randrange(1, 5)):
        if rng.random() < 0.4:
            steps.append(FOLLOW)
        sql = [_statement(rng, at)]
        for _ in range(rng.choice((1, 1, 2))):
            wrap = rng.choice(wraps)
            sql = [made for one in sql[-2:-1] or sql for made in wrap(rng, one)] if len(sql) == 1 else sql
        steps += [Sql(one) for one in sql]
        steps.append(Sql(f"INSERT INTO t (id, a, b) VALUES ({10 + at}, {at}, {at + 1})"))
    return Script(steps=steps, stops=frozenset({"what the text means is not in the log"}))
