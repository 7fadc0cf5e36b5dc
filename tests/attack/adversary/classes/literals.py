"""Literals as defaults of added columns, compared by the values that rows from before read."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Script, Sql, Step

__all__ = ["MARIADB_TYPES", "TYPES", "literal", "script"]

TYPES = (
    "INT",
    "TINYINT",
    "BIGINT UNSIGNED",
    "SMALLINT UNSIGNED",
    "DECIMAL(10,2)",
    "DECIMAL(4,0)",
    "FLOAT",
    "DOUBLE",
    "BIT(8)",
    "BIT(1)",
    "BIT(20)",
    "VARCHAR(30)",
    "CHAR(6)",
    "VARCHAR(30) CHARACTER SET latin1",
    "VARCHAR(30) CHARACTER SET utf16",
    "VARCHAR(10) CHARACTER SET ascii",
    "VARBINARY(30)",
    "BINARY(6)",
    "DATE",
    "DATETIME",
    "DATETIME(3)",
    "DATETIME(6)",
    "TIMESTAMP NULL",
    "TIMESTAMP(6) NULL",
    "TIME",
    "TIME(3)",
    "YEAR",
    "ENUM('a','b','é','1','')",
    "SET('a','b','é','')",
    "ENUM('x','x2') CHARACTER SET binary",
    "SET('a','bb') CHARACTER SET latin1",
)
MARIADB_TYPES = ("INET6", "INET4", "UUID", "TEXT", "BLOB", "JSON")
_TEXTS = (
    "''",
    "'a'",
    "'b'",
    "'é'",
    "'1'",
    "'a,b'",
    "'it''s'",
    r"'a\'b'",
    r"'a\\b'",
    r"'a\nb'",
    r"'a\%b'",
    r"'\0'",
    "'  x  '",
    "'x '",
    "N'é'",
    "n'a'",
    "_utf8mb4'é'",
    "_latin1'é'",
    "_latin1 x'e9'",
    "_binary'é'",
    "x'c3a9'",
    "X'61'",
    "0x61",
    "0xE9",
    "b'1100001'",
    "B'1'",
    "0b1",
    "_utf8mb4 0xC3A9",
    "_utf16 x'00e9'",
    "'a' 'b'",
    "'日本'",
    "'🍵'",
    '"a"',
    '"é"',
)
_NUMBERS = (
    "0",
    "1",
    "-1",
    "-0",
    "5.",
    ".5",
    "1.6",
    "-1.5",
    "2.5",
    "1e2",
    "1.5e1",
    "1E-2",
    "+3",
    "1.005",
    "99.995",
    "255",
    "128",
    "TRUE",
    "FALSE",
    "true",
    "'1.6'",
    "'7'",
    "' 7'",
    "'1e1'",
    "007",
    "0x07",
    "x'07'",
    "b'101'",
    "- 5",
    "2001",
    "70",
    "'70'",
    "'0'",
)
_DAYS = (
    "'2020-01-02'",
    "'20-1-2'",
    "20200102",
    "'20200102'",
    "'2020-01-02 03:04:05'",
    "'2020-01-02T03:04:05'",
    "'2020.01.02 03-04-05'",
    "20200102030405",
    "'2020-01-02 03:04:05.678'",
    "'2020-01-02 03:04:05.4999999'",
    "'2020-01-02 03:04:05.9999996'",
    "'2020-01-01 00:00:00+02:00'",
    "'2020-06-01 00:00:00-05:30'",
    "DATE'2020-01-02'",
    "TIMESTAMP'2020-01-02 03:04:05'",
    "TIME'01:02:03'",
    "{d '2020-01-02'}",
    "{ts '2020-01-02 03:04:05'}",
    "{t '01:02:03'}",
    "'10:11:12'",
    "'101112'",
    "101112",
    "'-10:11:12.5'",
    "'1 02:03:04'",
    "'34:00:00'",
    "'0000-00-00'",
    "'2020-00-00'",
    "0",
    "'2020-01-02 03:04'",
    "'700101'",
    "'1970-01-02'",
    "'2020-03-29 02:30:00'",
    "'2020-10-25 02:30:00'",
)
_OTHERS = (
    "'::1'",
    "'1.2.3.4'",
    "'001.2.3.4'",
    "'123e4567-e89b-12d3-a456-426655440000'",
    "x'123e4567e89b12d3a456426655440000'",
    "'{}'",
    "NULL",
)
_MODES = (
    "",
    "STRICT_TRANS_TABLES",
    "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
    "NO_BACKSLASH_ESCAPES",
    "ANSI_QUOTES",
    "ANSI",
    "ALLOW_INVALID_DATES",
    "TIME_TRUNCATE_FRACTIONAL",
    "PAD_CHAR_TO_FULL_LENGTH",
)
_MARIADB_MODES = ("EMPTY_STRING_IS_NULL", "ORACLE", "TIME_ROUND_FRACTIONAL", "MSSQL")


def script(rng: random.Random, server: str) -> Script:
    """One row, then columns with defaults of random types and literals in random sessions, and rows that leave them out."""
    mariadb = server.startswith("mariadb")
    types = (*TYPES, *(MARIADB_TYPES if mariadb else ()))
    minimal = rng.random() < 0.2
    steps: list[Step] = [Sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)"), Sql("INSERT INTO t VALUES (1, 1)")]
    if minimal:
        steps.append(Sql("SET SESSION binlog_row_image = MINIMAL"))
    right = {"absent_columns"} if minimal else set()
    for at in range(rng.randrange(2, 9)):
        if rng.random() < 0.5:
            steps.append(_session(rng, mariadb))
        kind = rng.choice(types)
        word = rng.choice(("", " NOT NULL")) if "NULL" not in kind else ""
        value = literal(rng, kind)
        steps.append(Sql(f"ALTER TABLE t ADD COLUMN c{at} {kind}{word} DEFAULT {value}"))
        if "ascii" in kind and value in _BEYOND_ASCII:
            right.add("value")  # servers take any bytes for such a column, and show question marks
        if _is_unknown(kind, value, server):
            # By the column's name: the reason shows the literal as the client's character set has it.
            right |= {f"ADD COLUMN c{at} ", f"column c{at} default: expected"}
        if rng.random() < 0.3:
            steps.append(Sql(f"INSERT INTO t (id, v) VALUES ({at + 10}, {at})"))
        if rng.random() < 0.2:
            steps.append(FOLLOW)
    return Script(steps=steps, partial=minimal, stops=frozenset(_STOPS | right))


_STOPS = {
    "only the server knows what old rows hold",
    # The session's time zone is SYSTEM, and the log does not say which one that is.
    " TIMESTAMP NULL DEFAULT",
    " TIMESTAMP(3) NULL DEFAULT",
    " TIMESTAMP(6) NULL DEFAULT",
    "initial value is none of its type",
}


_NUMBERS_OF = ("INT", "TINY", "BIG", "SMALL", "DEC", "FLOAT", "DOUBLE", "YEAR")
_BEYOND_ASCII = ("_binary'é'", "x'c3a9'", "0xE9", "_latin1 x'e9'", "_utf16 x'00e9'")
_SMALL_BYTES = (r"'\0'", "0xE9", "0x07", "x'07'", "b'101'", "B'1'", "0b1")
_ODD_MOMENTS = ("'001.2.3.4'", "1E-2", ".5", "'34:00:00'", "'2020-00-00'", "x'123e4567e89b12d3a456426655440000'")


def _is_unknown(kind: str, literal: str, server: str) -> bool:
    """Whether docs/reference/ddl.md says of such a default that only the server knows its value."""
    mariadb = server.startswith("mariadb")
    if kind.startswith(("ENUM", "SET")):
        return literal in _SMALL_BYTES  # which some collations take for nothing
    if kind in ("TEXT", "BLOB", "JSON"):
        return literal.startswith("_")  # MariaDB keeps some as it prints them
    if mariadb and kind.startswith((*_NUMBERS_OF, "DATE", "TIMESTAMP")):
        return literal.startswith(("DATE'", "TIME'", "TIMESTAMP'", "{"))
    if kind.startswith(_NUMBERS_OF):
        return literal == _ODD_MOMENTS[-1]
    if server == "mysql57" and kind.startswith("TIME") and not kind.startswith("TIMESTAMP"):
        return literal in _ODD_MOMENTS or not literal[1:].strip()[:1].isdigit()  # what is no time is 00:00:00 there
    has_offset = (
        not mariadb and literal[-7:-6] in ("+", "-") and literal[-4:-3] == ":"
    )  # the session's zone can be SYSTEM
    return kind.startswith(("DATE", "TIME")) and (has_offset or literal in _ODD_MOMENTS)


def literal(rng: random.Random, kind: str) -> str:
    if rng.random() < 0.15:
        return rng.choice((*_TEXTS, *_NUMBERS, *_DAYS, *_OTHERS))
    if kind.startswith(("INT", "TINY", "BIG", "SMALL", "DEC", "FLOAT", "DOUBLE", "BIT", "YEAR")):
        return rng.choice(_NUMBERS)
    if kind.startswith(("DATE", "TIME")):
        return rng.choice(_DAYS)
    if kind in MARIADB_TYPES[:3]:
        return rng.choice(_OTHERS)
    return rng.choice((*_TEXTS, *_TEXTS, *_NUMBERS))


def _session(rng: random.Random, mariadb: bool) -> Sql:
    modes = (*_MODES, *(_MARIADB_MODES if mariadb else ()))
    return Sql(
        rng.choice(
            (
                f"SET sql_mode = '{rng.choice(modes)}'",
                f"SET sql_mode = '{rng.choice(modes)}'",
                f"SET time_zone = '{rng.choice(('+00:00', '-03:00', '+05:30', '+13:00'))}'",
                f"SET NAMES {rng.choice(('utf8mb4', 'latin1', 'utf8', 'cp1251', 'gbk', 'sjis', 'binary'))}",
                "SET timestamp = 1600000000.5",
            )
        )
    )
