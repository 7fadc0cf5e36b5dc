import pytest

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.lexer import tokenize
from historian.ddl.parsing.triage import FIRST_TOKENS, triage


def judged(sql: str) -> str:
    found = triage(tokenize(sql, StatementContext(version=80031), limit=FIRST_TOKENS))
    return " ".join((found.kind, *found.verb)).strip()


@pytest.mark.parametrize(
    "sql",
    [
        "",
        " /* only a comment */ ",
        "GRANT ALL ON *.* TO 'x'@'%'",
        "REVOKE DROP ON t FROM x",
        "FLUSH TABLES db.t",
        "ANALYZE TABLE t",
        "OPTIMIZE NO_WRITE_TO_BINLOG TABLE t",
        "SET PASSWORD FOR x = 'DROP TABLE t'",
        "BEGIN",
        "COMMIT",
        "XA START X'1',X'',1",
        "SAVEPOINT `s`",
        "CREATE USER IF NOT EXISTS 'a'@'b' IDENTIFIED BY 'DROP TABLE t'",
        "ALTER USER u RETAIN CURRENT PASSWORD",
        "DROP ROLE r",
        "RENAME USER a TO b",
        "ALTER VIEW v AS SELECT 1",
        "CREATE DEFINER=root@localhost PROCEDURE p() BEGIN ALTER TABLE t ADD c INT; END",
        "ALTER FUNCTION f COMMENT 'x'",
        "DROP FUNCTION f",
        "ALTER EVENT e ENABLE",
        "ALTER SEQUENCE s RESTART",
        "CREATE TEMPORARY TABLE t (a INT)",
        "CREATE OR REPLACE TEMPORARY TABLE t (a INT)",
        "CREATE /*!40000 TEMPORARY */ TABLE t (a INT)",
        "DROP TEMPORARY TABLE IF EXISTS t",
        "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS t",
        "CREATE SPATIAL REFERENCE SYSTEM 4120 NAME 'x'",
        "CREATE UNDO TABLESPACE u ADD DATAFILE 'x'",
        "ALTER INSTANCE ROTATE INNODB MASTER KEY",
        "DROP PREPARE p",
    ],
)
def test_what_cannot_change_a_table_is_irrelevant(sql: str) -> None:
    assert judged(sql) == "irrelevant"


@pytest.mark.parametrize(
    "sql,verb",
    [
        ("create table t (a int)", "CREATE TABLE"),
        ("/* x */ CREATE -- y\n OR REPLACE TABLE t (a INT)", "CREATE TABLE"),
        ("ALTER ONLINE IGNORE TABLE t ADD c INT", "ALTER TABLE"),
        ("DROP TABLES a, b", "DROP TABLE"),
        ("RENAME TABLES a TO b", "RENAME TABLE"),
        ("TRUNCATE t", "TRUNCATE TABLE"),
        ("CREATE UNIQUE INDEX i ON t (a)", "CREATE INDEX"),
        ("DROP INDEX i ON t", "DROP INDEX"),
        ("CREATE SCHEMA d", "CREATE DATABASE"),
        ("ALTER DATABASE d CHARSET latin1", "ALTER DATABASE"),
        ("DROP SCHEMA IF EXISTS d", "DROP DATABASE"),
        ("/*!40000 DROP TABLE t */", "DROP TABLE"),
    ],
)
def test_what_can_change_a_table_is_told_by_its_verb(sql: str, verb: str) -> None:
    assert judged(sql) == f"ddl {verb}"


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1)",
        "update t set a = 1",
        "DELETE FROM t",
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "CALL p()",
    ],
)
def test_changes_of_rows_are_dml(sql: str) -> None:
    assert judged(sql) == "dml"


@pytest.mark.parametrize("sql", ["FROBNICATE t", "CREATE WIDGET w", "ALTER", "?", "'x'"])
def test_what_is_not_known_says_so(sql: str) -> None:
    assert judged(sql) == "unknown"


@pytest.mark.parametrize(
    "sql, verb",
    [
        ("CREATE VIEW v AS SELECT 1", ("CREATE", "VIEW")),
        (
            "CREATE OR REPLACE ALGORITHM = MERGE DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW v AS SELECT 1",
            ("CREATE", "VIEW"),
        ),
        ("CREATE JSON DUALITY VIEW v AS SELECT 1", ("CREATE", "VIEW")),
        ("DROP VIEW IF EXISTS v", ("DROP", "VIEW")),
        (
            "CREATE DEFINER = CURRENT_USER() TRIGGER x BEFORE INSERT ON t FOR EACH ROW DROP TABLE t",
            ("CREATE", "TRIGGER"),
        ),
        ("DROP SEQUENCE s", ("DROP", "SEQUENCE")),
    ],
)
def test_what_takes_or_frees_a_name_is_looked_at(sql: str, verb: tuple[str, str]) -> None:
    assert triage(tokenize(sql, StatementContext(), limit=FIRST_TOKENS)) == ("ddl", verb)


@pytest.mark.parametrize(
    "sql",
    [
        "SET STATEMENT lock_wait_timeout=5 FOR DROP TABLE t",
        "ANALYZE UPDATE t SET a = 1",
        "ANALYZE FORMAT=JSON DELETE FROM t",
    ],
)
def test_what_carries_a_statement_is_a_wrapper(sql: str) -> None:
    assert judged(sql) == "wrapper"
