"""Literals in DEFAULT clauses, by value: what a row that was there reads in an added column is what the server reads."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pymysql
import pytest

from connectors.tracking.capture.catalog import capture_catalog
from databases.server_builds import BUILDS
from databases.servers import Server
from databases.zones import load_zones
from historian.errors import ValueUnrepresentable
from historian.names import TableName
from logs.binlog_lab import run
from models.source_oracle import SourceOracle

NUMBERS = ("0", "-0", "5.", ".5", "-0.0", "007", "1e3", "1.6", "-1.5", "12.345", "TRUE")
TEXTS = (
    "'é'",
    "_latin1'é'",
    "_utf8mb4'é'",
    "N'é'",
    "_latin1 x'e9'",
    "_utf8mb4 x'c3a9'",
    "x'c3a9'",
    "_binary'ab'",
    "''",
    "'a\\\\b'",
)
MOMENTS = (
    "'2020-01-01 00:00:00+02:00'",
    "'2020-01-01 00:00:00.7+02:00'",
    "'20.1.1 0:0:0.3+02:00'",
    "'2020-01-02 03:04:05.4999999'",
    "'2020-01-02 03:04:05.9999995'",
    "'2020-01-02 03:04:05.5'",
    "TIMESTAMP'2020-01-02 03:04:05'",
    "{ts '2020-01-02 03:04:05'}",
    "20200102030405",
    "'2020-1-2'",
)
DATES = (
    "{d '2020-01-02'}",
    "DATE'2020-01-02'",
    "'0000-00-00'",
    "'2020-01-02'",
    "{ts '2020-01-02 03:04:05'}",
    "'2020-01-02T03:04:05.7896'",
    "'0000-00-00 00:00:00'",
)
LABELS = ("TRUE", "FALSE", "1", "2", "3", "'1'", "01", "+1", "1.0", "1e0", "0x31", "(1)", "(TRUE)", "('1')", "(2)")
TYPES = {
    "INT": NUMBERS,
    "DECIMAL(6,2)": NUMBERS,
    "VARCHAR(9)": (*NUMBERS, *TEXTS),
    "VARCHAR(9) CHARACTER SET latin1": TEXTS,
    "VARBINARY(9)": ("1.5e1", "1e2", "5.", "-0", "'ab'", "b'1100001'", *TEXTS),
    "BINARY(4)": ("1.5e1", "5.", "'ab'", "'é'", "_latin1 x'e9'"),
    "BIT(8)": ("1.6", "1.4", "b'101'", "x'41'", "5"),
    "DATETIME": MOMENTS,
    "DATETIME(3)": MOMENTS,
    "TIMESTAMP NULL": MOMENTS,
    "DATE": ("{d '2020-01-01'}", "DATE'2020-01-02'", "'2020-01-03'", "20200104", *MOMENTS[:3]),
    "TIME": ("{t '10:11:12'}", "TIME'10:11:12'", "'10:11:12.6'", "101112", *DATES, *MOMENTS),
    "TIME(3)": (*DATES, *MOMENTS[:3]),
    "ENUM('x','y','1','2','0','1.0')": LABELS,
    "ENUM('1','2','x','true')": LABELS,
    "SET('1','3','2','a')": LABELS,
}
FRACTIONS = (
    *MOMENTS[:6],
    "'2020-12-31 23:59:59.9999999'",
    "'2020-01-01T00:00:00.9996-05:30'",
    "TIMESTAMP'2020-01-02 03:04:05.6789'",
)
ROUNDED = {
    "DATETIME": FRACTIONS,
    "DATETIME(3)": FRACTIONS,
    "TIMESTAMP(6) NULL": FRACTIONS,
    "DATE": FRACTIONS,
    "TIME": ("'03:04:05.5'", "'1 02:03:04.9999999'", "TIME'03:04:05.6'", "101112.7", *FRACTIONS),
    "TIME(1)": ("'03:04:05.96'", "'-23:59:59.95'", *FRACTIONS),
    "YEAR": ("2000.4", "2000.5"),
}
"""What the modes change by which MySQL cuts a fraction, and MariaDB rounds it."""
DAYS = ("'3 4'", "'3 04'", "'3 4:5'", "'3 4.5'", "'-3 4'", "'3  4'")
MODES = ("STRICT_TRANS_TABLES", "", "NO_BACKSLASH_ESCAPES", "EMPTY_STRING_IS_NULL")


@pytest.mark.parametrize("name", list(BUILDS))
def test_rows_from_before_read_the_default_that_the_server_gave_them(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    server.clear()
    run(server, "CREATE DATABASE lit")
    modes = [mode for mode in MODES if mode != "EMPTY_STRING_IS_NULL" or server.flavor == "mariadb"]
    tables = [(kind, literals, mode) for kind, literals in TYPES.items() for mode in modes]
    tables += [("TIME", DAYS, mode) for mode in modes[:2]]
    if name != "mysql57":
        mode = "TIME_TRUNCATE_FRACTIONAL" if server.flavor == "mysql" else "TIME_ROUND_FRACTIONAL"
        tables += [(kind, literals, mode) for kind, literals in ROUNDED.items()]
    accepted = 0
    with contextlib.closing(server.connect(database="lit", sql_mode="")) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '-03:00'")
        for number, (kind, literals, mode) in enumerate(tables):
            cursor.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO t{number} VALUES (1)")
            cursor.execute(f"SET sql_mode = '{mode}'")
            for column, literal in enumerate(literals):
                with contextlib.suppress(pymysql.err.MySQLError):
                    cursor.execute(f"ALTER TABLE t{number} ADD COLUMN c{column} {kind} DEFAULT {literal}")
                    accepted += 1
    oracle = SourceOracle(server, tmp_path)
    oracle.run()

    assert accepted > 100
    assert {} == oracle.differences("lit")
    assert {} == oracle.stopped


@pytest.mark.parametrize("name", list(BUILDS))
def test_moments_are_converted_in_utc_and_not_known_in_other_named_zones(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    load_zones(server, ("Europe/Berlin", "UTC"))
    server.clear()
    run(server, "CREATE DATABASE lit")
    moment = "TIMESTAMP NULL DEFAULT '2020-07-29 02:30:00'"
    now, plain = "DATETIME DEFAULT CURRENT_TIMESTAMP", "DATETIME DEFAULT '2020-07-29 02:30:00'"
    with contextlib.closing(server.connect(database="lit")) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO t VALUES (1)")
        for zone, kinds in (("UTC", (moment, now, plain)), ("Europe/Berlin", (plain,))):
            cursor.execute(f"SET time_zone = '{zone}'")
            for number, kind in enumerate(kinds):
                cursor.execute(f"ALTER TABLE t ADD COLUMN {zone[:3]}{number} {kind}")
        oracle = SourceOracle(server, tmp_path)
        oracle.run()
        assert {} == oracle.differences("lit")

        cursor.execute(f"ALTER TABLE t ADD COLUMN unknown {moment if name.startswith('mysql') else now}")
        with pytest.raises(ValueUnrepresentable, match="only the server knows what old rows hold"):
            oracle.run()


@pytest.mark.parametrize("name", list(BUILDS))
def test_a_char_default_is_captured_without_the_spaces_that_fill_it_up(
    name: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(name)
    server.clear()
    run(server, "CREATE DATABASE lit")
    with contextlib.closing(server.connect(database="lit")) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'")
        cursor.execute("CREATE TABLE p (id INT PRIMARY KEY, a CHAR(6) DEFAULT 'x,y', b VARCHAR(6) DEFAULT 'x ')")
    with contextlib.closing(server.connect()) as connection:
        found = capture_catalog(connection, 1, 1).tables[TableName("lit", "p")]
    assert [column.default for column in found.columns] == [None, "x,y", "x "]


@pytest.mark.parametrize("name", ["mysql57", "mysql9", "mariadb118"])
def test_every_byte_of_a_latin1_clients_statement_is_the_character_that_the_server_reads(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    server.clear()
    run(server, "CREATE DATABASE lit")
    every = bytes(byte for byte in range(0x80, 0x100))
    with contextlib.closing(server.connect(database="lit", charset="latin1", binary_prefix=False)) as connection:
        statement = b"CREATE TABLE l (id INT PRIMARY KEY, e ENUM('" + every + b"','x') CHARACTER SET utf8mb4"
        connection._execute_command(3, statement + b", v VARCHAR(200) CHARACTER SET utf8mb4 DEFAULT '" + every + b"')")
        connection._read_query_result()
        connection.query("INSERT INTO l (id, e) VALUES (1, 1), (2, 2)")
        connection._execute_command(
            3, b"ALTER TABLE l ADD COLUMN w VARCHAR(200) CHARACTER SET utf8mb4 DEFAULT '" + every + b"'"
        )
        connection._read_query_result()
    oracle = SourceOracle(server, tmp_path)
    oracle.run()

    assert {} == oracle.stopped
    assert {} == oracle.differences("lit")
