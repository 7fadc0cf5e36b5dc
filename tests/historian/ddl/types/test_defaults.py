"""Texts are those that MySQL 5.7, 8.0, 9.7 and MariaDB 10.11, 11.8 were seen to print and to fill rows with."""

from dataclasses import replace

import pytest

from historian.ddl import StatementContext, resolve
from historian.schema.edits import AddColumn
from historian.schema.snapshots import Column
from models.ddl_text import MARIADB, MYSQL, MYSQL57, after

NOW = StatementContext(database="shop", version=80031, time_us=1_600_000_000_123456, time_zone="+02:00")


def added(definition: str, context: StatementContext = MYSQL) -> Column:
    (edit,) = resolve(f"ALTER TABLE t ADD c {definition}", context, after("CREATE TABLE t (i INT)")).edits
    assert isinstance(edit, AddColumn)
    return edit.column


@pytest.mark.parametrize(
    "definition,default",
    [
        ("INT DEFAULT +5", "5"),
        ("INT DEFAULT 5.5", "6"),
        ("INT DEFAULT 0x10", "16"),
        ("INT DEFAULT b'11'", "3"),
        ("INT DEFAULT FALSE", "0"),
        ("INT(5) ZEROFILL DEFAULT 7", "00007"),
        ("DECIMAL(10,2) DEFAULT '1.555'", "1.56"),
        ("DECIMAL(5,0) DEFAULT 1e2", "100"),
        ("DECIMAL(10,2) ZEROFILL DEFAULT 3", "00000003.00"),
        ("DOUBLE DEFAULT 1.10", "1.1"),
        ("DOUBLE DEFAULT 1e14", "100000000000000"),
        ("DOUBLE DEFAULT 1e20", "1e20"),
        ("DOUBLE DEFAULT 1e-7", "0.0000001"),
        ("DOUBLE(10,3) DEFAULT 1.5", "1.500"),
        ("DOUBLE(5,0) DEFAULT 1.5", "1"),
        ("DOUBLE(10,1) DEFAULT 0.35", "0.4"),
        ("FLOAT(10,2) DEFAULT 0.125", "0.12"),
        ("BIT(8) DEFAULT 5", "b'101'"),
        ("BIT(8) DEFAULT 0x41", "b'1000001'"),
        ("YEAR DEFAULT 70", "1970"),
        ("YEAR DEFAULT '0'", "2000"),
        ("YEAR DEFAULT 0", "0000"),
        ("DATE DEFAULT '20-1-2'", "2020-01-02"),
        ("DATE DEFAULT 20200102", "2020-01-02"),
        ("DATE DEFAULT 0", "0000-00-00"),
        ("TIME DEFAULT '1:2:3'", "01:02:03"),
        ("TIME DEFAULT '-1:02'", "-01:02:00"),
        ("TIME DEFAULT 123", "00:01:23"),
        ("TIME DEFAULT '5'", "00:00:05"),
        ("TIME DEFAULT '1 2:3:4'", "26:03:04"),
        ("TIME(2) DEFAULT '10:11:12.345'", "10:11:12.35"),
        ("DATETIME DEFAULT '2020-01-01'", "2020-01-01 00:00:00"),
        ("DATETIME DEFAULT 20200101101112", "2020-01-01 10:11:12"),
        ("DATETIME DEFAULT '2020/01/02T03:04:05.6'", "2020-01-02 03:04:06"),
        ("DATETIME(3) DEFAULT '2020-01-01 10:11:12.1234'", "2020-01-01 10:11:12.123"),
        ("CHAR(5) DEFAULT 'ab  '", "ab"),
        ("VARCHAR(4) DEFAULT 'ab    '", "ab  "),
        ("VARCHAR(10) DEFAULT 1.50", "1.50"),
        ("VARCHAR(10) DEFAULT 1e3", "1000"),
        ("VARCHAR(10) DEFAULT -1", "-1"),
        ("VARCHAR(10) DEFAULT 0x4142", "AB"),
        ("VARCHAR(20) DEFAULT 'a' 'b'", "ab"),
        ("VARCHAR(10) DEFAULT _latin1'ab'", "ab"),
        ("VARCHAR(10) DEFAULT N'xy'", "xy"),
        ("BINARY(3) DEFAULT 'a'", "0x610000"),
        ("VARBINARY(3) DEFAULT 0x00FF", "0x00FF"),
        ("ENUM('x','y') DEFAULT 'Y'", "y"),
        ("SET('x','y','z') DEFAULT 'Z,x,z'", "x,z"),
        ("YEAR DEFAULT 1.5", "2002"),
        ("YEAR DEFAULT b'101'", "2005"),
        ("TIME(1) DEFAULT '2021-12-31 23:59:59.987'", "24:00:00.0"),
        ("DATE DEFAULT '2021-12-31 23:59:59.9'", "2022-01-01"),
        ("DECIMAL(6,2) DEFAULT '1e1z'", "10.00"),
        ("DECIMAL(6,2) DEFAULT 'x'", "0.00"),
    ],
)
def test_literals_take_the_form_of_the_type_as_default_and_in_rows(definition: str, default: str) -> None:
    column = added(definition)
    assert (column.default, column.default_is_expression) == (default, False)
    assert (column.initial, column.initial_known) == (default, True)


@pytest.mark.parametrize(
    "definition,initial,known",
    [
        ("CHAR(2) DEFAULT ('abc')", "ab", True),
        ("VARCHAR(2) DEFAULT (12345)", "12", True),
        ("BINARY(2) DEFAULT ('abc')", "0x6162", True),
        ("TINYINT DEFAULT (127)", "127", True),
        ("TINYINT DEFAULT (128)", None, False),
        ("TINYINT UNSIGNED DEFAULT (-1)", None, False),
        ("DECIMAL(4,2) DEFAULT (99.99)", "99.99", True),
        ("DECIMAL(4,2) DEFAULT (100)", None, False),
        ("BIT(2) DEFAULT (3)", "b'11'", True),
        ("BIT(2) DEFAULT (4)", None, False),
        ("YEAR DEFAULT (3000)", None, False),
        ("DATE DEFAULT ('2020-01-02')", "2020-01-02", True),
    ],
)
def test_an_expressions_value_is_cut_to_the_column_or_only_the_server_knows_it(
    definition: str, initial: str | None, known: bool
) -> None:
    column = added(definition)
    assert (column.initial, column.initial_known) == (initial, known)


def test_mariadb_cuts_fractions_that_mysql_rounds() -> None:
    assert added("DATETIME DEFAULT '2020-01-02 03:04:05.6'", MARIADB).default == "2020-01-02 03:04:05"
    assert added("TIME(1) DEFAULT '2020-01-02 23:59:59.987'", MARIADB).default == "23:59:59.9"
    assert added("DATE DEFAULT '2020-01-02 23:59:59.9'", MARIADB).default == "2020-01-02"


def test_a_float_shows_six_digits_and_holds_more() -> None:
    column = added("FLOAT DEFAULT 123456789")
    assert (column.default, column.initial) == ("123457000", "123456789")


@pytest.mark.parametrize(
    "definition,initial",
    [
        ("INT", None),
        ("INT NOT NULL", "0"),
        ("DECIMAL(10,2) NOT NULL", "0.00"),
        ("BIT(3) NOT NULL", "b'0'"),
        ("YEAR NOT NULL", "0000"),
        ("DATE NOT NULL", "0000-00-00"),
        ("TIME(3) NOT NULL", "00:00:00.000"),
        ("DATETIME(2) NOT NULL", "0000-00-00 00:00:00.00"),
        ("CHAR(3) NOT NULL", ""),
        ("BINARY(3) NOT NULL", "0x000000"),
        ("BLOB NOT NULL", "0x"),
        ("TEXT NOT NULL", ""),
        ("JSON NOT NULL", "null"),
        ("ENUM('x','y') NOT NULL", "x"),
        ("SET('x','y') NOT NULL", ""),
        ("INT PRIMARY KEY", "0"),
        ("INT DEFAULT NULL", None),
    ],
)
def test_without_a_default_rows_get_what_the_type_implies(definition: str, initial: str | None) -> None:
    column = resolve(f"ALTER TABLE t ADD c {definition}", MYSQL, after("CREATE TABLE t (i INT)")).edits[0]
    assert isinstance(column, AddColumn)
    assert (column.column.initial, column.column.initial_known) == (initial, True)


def test_mariadb_implies_values_of_its_own_types() -> None:
    assert added("UUID NOT NULL", MARIADB).initial == "00000000-0000-0000-0000-000000000000"
    assert added("INET6 NOT NULL", MARIADB).initial == "::"
    assert added("JSON NOT NULL", MARIADB).initial == ""


@pytest.mark.parametrize(
    "definition,initial",
    [
        ("TIMESTAMP NULL DEFAULT NOW()", "2020-09-13 12:26:40"),
        ("TIMESTAMP(6) NULL DEFAULT NOW(6)", "2020-09-13 12:26:40.123456"),
        ("DATETIME DEFAULT CURRENT_TIMESTAMP", "2020-09-13 14:26:40"),
        ("DATETIME(3) DEFAULT LOCALTIMESTAMP(3)", "2020-09-13 14:26:40.123"),
        ("TIMESTAMP DEFAULT '2020-06-01 00:00:00'", "2020-05-31 22:00:00"),
    ],
)
def test_the_moment_of_the_statement(definition: str, initial: str) -> None:
    assert added(definition, NOW).initial == initial


@pytest.mark.parametrize(
    "definition",
    [
        "DATETIME DEFAULT NOW()",
        "TIMESTAMP DEFAULT '2020-06-01 00:00:00'",
        "INT DEFAULT (RAND() * 10)",
        "VARCHAR(36) DEFAULT (UUID())",
        "INT AS (i + 1)",
        "INT AUTO_INCREMENT",
    ],
)
def test_what_only_the_server_knows_is_not_guessed(definition: str) -> None:
    column = added(definition)
    assert (column.initial, column.initial_known) == (None, False)


@pytest.mark.parametrize(
    "kind,literal,initial",
    [
        ("DATE", "2020-01-01 00:00:00+02:00", "2019-12-31"),
        ("DATE", "2020-01-01 00:00:00.7+02:00", "2020-01-01"),
        ("DATETIME", "2020-01-01 00:00:00.7+02:00", "2020-01-01 00:00:01"),
        ("DATETIME", "2020-01-01 00:00:00.3+02:00", "2019-12-31 19:00:00"),
        ("DATETIME(6)", "2020-1-1 0:0:0.7+02:00", "2019-12-31 19:00:00.700000"),
        ("DATETIME(6)", "2020-01-01 00:00:00.7000001+02:00", "2019-12-31 19:00:00.700000"),
        ("DATETIME", "20.01.01 00:00:00+02:00", "2019-12-31 19:00:00"),
        ("DATETIME", "2020-01-01 00:00:00 +02:00", "2020-01-01 00:00:00"),
    ],
)
def test_an_offset_leads_into_the_sessions_zone_unless_a_second_is_rounded_up(
    kind: str, literal: str, initial: str
) -> None:
    column = added(f"{kind} DEFAULT '{literal}'", replace(NOW, version=90704, time_zone="-03:00"))
    assert (column.initial, column.initial_known) == (initial, True)


@pytest.mark.parametrize("client,initial", [("utf8mb4", "0xC3A9"), ("latin1", "0xE9"), ("binary", "0xC3A9")])
def test_the_default_of_a_column_of_bytes_is_what_the_client_sent(client: str, initial: str) -> None:
    column = added("VARBINARY(9) DEFAULT 'é'", replace(NOW, client_charset=client))
    assert (column.initial, column.default, column.initial_known) == (initial, initial, True)


@pytest.mark.parametrize("charset,initial", [("latin1", "Ã©"), ("cp1251", "Г©"), ("utf8mb4", "é")])
def test_the_default_that_a_client_of_bytes_says_is_in_the_columns_charset(charset: str, initial: str) -> None:
    column = added(f"VARCHAR(9) CHARACTER SET {charset} DEFAULT 'é'", replace(NOW, client_charset="binary"))
    assert (column.initial, column.initial_known) == (initial, True)


@pytest.mark.parametrize("client,read", [("latin1", "Ã©"), ("utf8mb4", "é"), ("sjis", "ﾃｩ"), ("binary", "é")])
def test_a_national_literal_is_utf8_whatever_the_client_is(client: str, read: str) -> None:
    context = replace(MARIADB, client_charset=client)
    for kind in ("VARCHAR(9) CHARACTER SET latin1", "VARCHAR(9) CHARACTER SET utf16", "TEXT"):
        assert added(f"{kind} DEFAULT N'{read}\\n'", context).initial == "é\n"
    assert added(f"VARBINARY(9) DEFAULT N'{read}'", context).initial == "0xC3A9"
    assert added(f"BIT(32) DEFAULT N'{read}'", context).initial == f"b'{0xC3A9:b}'"
    for kind, literal in (("INT", "12"), ("DECIMAL(5,1)", "1.5"), ("DATE", "2020-01-02"), ("ENUM('1','x')", "x")):
        assert added(f"{kind} DEFAULT N'{literal}'", context).initial == literal


@pytest.mark.parametrize(
    "literal,initial", [("20200102", "00:00:00.0"), ("20200102.6", "00:00:00.0"), ("8385959.7", "838:59:59.7")]
)
def test_mariadb_takes_eight_digits_for_a_date_where_a_time_is_wanted(literal: str, initial: str) -> None:
    assert added(f"TIME(1) DEFAULT {literal}", MARIADB).initial == initial


def test_mariadb_keeps_the_text_of_a_blobs_default_in_utf8() -> None:
    client = replace(MARIADB, client_charset="latin1")
    assert added("BLOB DEFAULT 'é'", client).initial == "0xC3A9"
    assert added("VARBINARY(9) DEFAULT 'é'", client).initial == "0xE9"


def test_a_literal_in_parentheses_is_an_expression_to_mysql_with_a_known_value() -> None:
    column = added("TEXT DEFAULT ('abc')")
    assert (column.default, column.default_is_expression, column.initial, column.initial_known) == (
        "'abc'",
        True,
        "abc",
        True,
    )
    assert (added("TEXT DEFAULT 'abc'", MARIADB).default, added("TEXT DEFAULT 'abc'").default) == ("abc", None)


def test_a_timestamp_of_its_own_accord_is_filled_with_the_moment() -> None:
    context = StatementContext(database="shop", version=50722, time_us=1_600_000_000_000000)
    assert added("TIMESTAMP", context).initial == "2020-09-13 12:26:40"
    assert added("TIMESTAMP", MYSQL57).initial_known is False


def test_only_mariadb_knows_how_it_fills_a_text_of_bytes() -> None:
    assert not added("TEXT BYTE DEFAULT 'ab'", MARIADB).initial_known
    assert added("TEXT BYTE", MARIADB).initial_known
    assert added("BLOB DEFAULT 'ab'", MARIADB).initial == "0x6162"
