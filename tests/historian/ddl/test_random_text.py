"""No text makes the resolver raise; a quadratic walk over these megabytes would take minutes."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from historian.ddl import StatementContext, parse_column_type, parse_default_text, parse_display_width, resolve
from historian.errors import HistorianError
from historian.schema.applying import apply_all
from models.ddl_text import MARIADB, MYSQL, after

BEFORE = "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9) DEFAULT 'x', c TIMESTAMP, d ENUM('x','y'), UNIQUE u (b))"
STATEMENTS = (
    BEFORE,
    "ALTER TABLE t ADD COLUMN e DECIMAL(10,2) UNSIGNED NOT NULL DEFAULT '1.5' AFTER a, DROP b, MODIFY c TIMESTAMP(3) NULL FIRST",
    "ALTER TABLE t CHANGE d e SET('it''s', 'x') CHARSET latin1 DEFAULT 'x', CONVERT TO CHARACTER SET utf8mb4, RENAME TO s.u",
    "CREATE OR REPLACE TABLE t (a INT AS (1 + (2)) STORED, KEY k (a DESC), CHECK (a > ')')) ENGINE=InnoDB PARTITION BY HASH (a)",
    "CREATE /*!80016 UNIQUE */ INDEX i ON t (a, (b + 1)) /*M!100100 WAIT 5 */",
    "RENAME TABLE t TO x, s.u TO t; ",
    "DROP TABLE IF EXISTS t, `a b`.`c``d` CASCADE",
    "CREATE DATABASE d DEFAULT CHARACTER SET = 'utf8mb4' COLLATE utf8mb4_bin",
    "UPDATE LOW_PRIORITY t AS x JOIN (SELECT 1) y SET a = 1 WHERE b = 'c'",
    "DELETE t FROM t USING s.u WHERE 1",
)
CONTEXTS = (
    MYSQL,
    MARIADB,
    StatementContext(database="shop", version=50722, sql_mode=frozenset(("ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"))),
    StatementContext(flavor="mariadb", version=100500, lower_case_table_names=2, error_code=1),
)
CATALOG = after(BEFORE)
PIECES = st.sampled_from(
    sorted({piece for sql in STATEMENTS for piece in sql.replace("(", " ( ").replace(",", " , ").split()})
)


def check(sql: str, context: StatementContext) -> None:
    resolution = resolve(sql, context, CATALOG)
    apply_all(resolution.edits, CATALOG)
    assert (resolution.kind in ("dml", "rows", "not_understood")) == bool(resolution.reason)


@given(st.text(max_size=200), st.sampled_from(CONTEXTS))
@example("'", MYSQL)
@example("ALTER TABLE `", MYSQL)
@example("ALTER TABLE t ADD c BIT DEFAULT 0x" + "F" * 5000, MYSQL)
@example("ALTER TABLE t ADD c INT DEFAULT 0x" + "F" * 5000, MYSQL)
@example("ALTER TABLE t ADD c INT(" + "9" * 5000 + ")", MYSQL)
@example("ALTER TABLE t ADD c TIME DEFAULT '" + "9" * 5000 + "'", MYSQL)
@example("ALTER TABLE t ADD c YEAR DEFAULT " + "9" * 5000, MYSQL)
def test_random_text_never_raises(sql: str, context: StatementContext) -> None:
    check(sql, context)


@given(st.lists(PIECES, max_size=40), st.sampled_from(CONTEXTS))
@settings(max_examples=300)
def test_shuffled_words_never_raise(words: list[str], context: StatementContext) -> None:
    check(" ".join(words), context)


@given(
    st.sampled_from(STATEMENTS), st.integers(0, 200), st.integers(0, 20), st.text(max_size=8), st.sampled_from(CONTEXTS)
)
@settings(max_examples=300)
def test_mutated_statements_never_raise(sql: str, at: int, cut: int, put: str, context: StatementContext) -> None:
    check(sql[:at] + put + sql[at + cut :], context)


@pytest.mark.parametrize("count", [1000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_statements_damaged_anywhere_never_raise(count: int) -> None:
    for seed in range(count):
        draw = random.Random(seed)
        sql = draw.choice(STATEMENTS)
        for _ in range(draw.choice((1, 1, 2, 5))):
            at, other = draw.randrange(len(sql) + 1), draw.choice(STATEMENTS)
            begin = draw.randrange(len(other))
            put = draw.choice(
                (
                    "",
                    chr(draw.randrange(0x110000)),
                    draw.choice("'`\"\\();,*/#-"),
                    other[begin : begin + draw.randrange(30)],
                )
            )
            sql = sql[:at] + put + sql[at + draw.choice((0, 1, 9)) :]
        try:
            check(sql, draw.choice(CONTEXTS))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {sql}") from error


TYPES = (
    "int(11) unsigned zerofill",
    "enum('a','it''s')",
    "decimal(10,2)",
    "varchar(9) collate x",
    "geometry",
    "set('x'",
)


@given(
    st.one_of(st.text(max_size=30), st.sampled_from(TYPES)),
    st.integers(0, 12),
    st.text(max_size=6),
    st.sampled_from(("mysql", "mariadb")),
)
@settings(max_examples=300)
def test_printed_types_and_defaults_are_read_or_refused(text: str, at: int, put: str, flavor: str) -> None:
    text = text[:at] + put + text[at:]
    try:
        kind = parse_column_type(text, flavor=flavor)
    except HistorianError:
        return
    parse_display_width(text, flavor)
    parse_default_text(text, kind, CONTEXTS[0])


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t " + "ADD c INT, " * 90_000,
        "ALTER TABLE t ADD c ENUM(" + "'x'," * 250_000 + "'y')",
        "ALTER TABLE t ADD c INT DEFAULT " + "(" * 1_000_000,
        "CREATE TABLE x (" + "(" * 1_000_000,
        "/*" * 500_000,
        "/*!99999 " * 110_000,
        "ALTER TABLE t COMMENT '" + "\\'" * 500_000,
        "`" * 1_000_000,
        "INSERT INTO t VALUES " + "('x', 1)," * 110_000,
        "ALTER TABLE t " + "\n" * 1_000_000,
        "DROP TABLE " + "t," * 500_000,
        "DROP TABLE " + ",".join(f"x{i}" for i in range(120_000)),
        "RENAME TABLE " + ", ".join("t TO u, u TO t" for _ in range(36_000)),
        "ALTER TABLE t " + "ADD KEY (a), " * 75_000,
        "CREATE TABLE u (" + ", ".join(f"c{i} INT UNIQUE" for i in range(55_000)) + ")",
        "CREATE TABLE u (a INT, " + ", ".join("FOREIGN KEY (a) REFERENCES t (c)" for _ in range(27_000)) + ")",
        "ALTER TABLE t " + "ALTER a SET DEFAULT 1, " * 43_000,
    ],
    ids=lambda sql: sql[:24],
)
def test_a_megabyte_is_parsed_or_refused(sql: str) -> None:
    check(sql, MYSQL)


WIDE = [
    "CREATE TABLE u (" + ", ".join(f"c{i} VARCHAR(20) NOT NULL DEFAULT 'x' UNIQUE" for i in range(4000)) + ")",
    "ALTER TABLE t " + ", ".join(f"ADD d{i} INT AFTER {f'd{i - 1}' if i else 'a'}" for i in range(4000)),
    "ALTER TABLE t " + ", ".join(f"ADD KEY (a, b), ADD d{i} TIMESTAMP FIRST" for i in range(2000)),
]
"""As wide as servers allow."""


@pytest.mark.parametrize("sql", WIDE, ids=lambda sql: sql[:24])
def test_the_widest_statements_are_understood(sql: str) -> None:
    assert resolve(sql, MYSQL, CATALOG).kind == "ddl"


def test_more_columns_than_a_server_takes_are_refused() -> None:
    sql = "CREATE TABLE u (" + ", ".join(f"c{i} INT" for i in range(4097)) + ")"
    assert "no more than 4096 columns" in resolve(sql, MYSQL, CATALOG).reason
