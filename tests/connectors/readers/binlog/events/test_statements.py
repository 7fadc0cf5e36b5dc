"""Statements and the sessions that they ran in."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from connectors.readers.binlog.events.layout import FormatDescription
from connectors.readers.binlog.events.statements import logged_statement
from historian.errors import LogCorrupt, UnsupportedEvent
from logs.row_events import TIMESTAMP, event

MYSQL = FormatDescription(server_version="9.7.4", version=90704, flavor="mysql", checksum=True, in_use=False)
MARIADB = FormatDescription(
    server_version="11.8.6-MariaDB", version=110806, flavor="mariadb", checksum=True, in_use=False
)
CHARSETS = b"\x04" + struct.pack("<HHH", 45, 45, 8)


def query(sql: bytes, variables: bytes = b"", database: bytes = b"shop", kind: int = 2) -> bytes:
    head = struct.pack("<IIBHH", 9, 0, len(database), 0, len(variables)) + (bytes(13) if kind == 18 else b"")
    return event(kind, head + variables + database + b"\0" + sql)


def test_every_variable_is_stepped_over() -> None:
    variables = (
        b"\x00" + bytes(4)
        + b"\x01" + struct.pack("<Q", 1 << 2 | 1 << 20 | 1 << 1)
        + b"\x06\x03std"
        + b"\x03" + bytes(4)
        + CHARSETS
        + b"\x05\x06+03:00"
        + b"\x07\x01\x00\x08\x2d\x00\x09" + bytes(8)
        + b"\x0a" + bytes(4)
        + b"\x0b\x04root\x09localhost"
        + b"\x0c\x02one\0two\0"
        + b"\x0d" + (123456).to_bytes(3, "little")
        + b"\x10\x00\x11" + bytes(8)
        + b"\x12" + struct.pack("<H", 255)
        + b"\x13\x01\x14\x00"
    )  # fmt: skip
    found = logged_statement(query(b"CREATE TABLE t (id INT)", variables), MYSQL, lower_case_table_names=1)
    assert found.sql == "CREATE TABLE t (id INT)"
    context = found.context
    assert context.database == "shop"
    assert context.sql_mode == {"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT"}
    assert (context.flavor, context.version, context.lower_case_table_names) == ("mysql", 90704, 1)
    assert (context.charset, context.collation) == ("latin1", "latin1_swedish_ci")
    assert context.utf8mb4_collation == "utf8mb4_0900_ai_ci"
    assert context.explicit_defaults_for_timestamp is False
    assert (context.time_us, context.time_zone) == (TIMESTAMP * 1_000_000 + 123456, "+03:00")


def test_what_the_event_does_not_say_is_empty() -> None:
    context = logged_statement(query(b"DROP TABLE t"), MYSQL).context
    assert (context.charset, context.collation, context.utf8mb4_collation, context.time_zone) == ("", "", "", "")
    assert context.explicit_defaults_for_timestamp is None
    assert context.time_us == TIMESTAMP * 1_000_000


def test_mariadb_variables_come_in_any_order() -> None:
    variables = (
        b"\x00" + struct.pack("<I", 1 << 24)
        + b"\x83\x02" + struct.pack("<HHHH", 45, 2304, 33, 2048)
        + CHARSETS
        + b"\x80" + (7).to_bytes(3, "little")
        + b"\x81" + bytes(8)
        + b"\x82\x02" + b"\x05\x03UTC"
    )  # fmt: skip
    context = logged_statement(query(b"DROP TABLE t", variables), MARIADB).context
    assert context.utf8mb4_collation == "utf8mb4_uca1400_ai_ci"
    assert context.explicit_defaults_for_timestamp is True
    assert context.time_us == TIMESTAMP * 1_000_000 + 7
    assert context.time_zone == "UTC"


@pytest.mark.parametrize(
    "version, says", [(100516, False), (100517, True), (100608, False), (100609, True), (100800, True)]
)
def test_mariadb_says_whether_timestamps_have_defaults_since_a_release_of_each_line(version: int, says: bool) -> None:
    written_by = replace(MARIADB, version=version)
    context = logged_statement(query(b"DROP TABLE t", b"\x00" + struct.pack("<I", 1 << 24)), written_by).context
    assert context.explicit_defaults_for_timestamp is (True if says else None)


def test_flags_of_an_alter_in_phases_carry_a_number() -> None:
    context = logged_statement(query(b"DROP TABLE t", b"\x82\x04" + bytes(8) + b"\x05\x03UTC"), MARIADB).context
    assert context.time_zone == "UTC"


def test_more_databases_than_are_named() -> None:
    context = logged_statement(query(b"DROP TABLE t", b"\x0c\xfe\x0d" + bytes(3) + b"\x12\xff\x00"), MYSQL).context
    assert context.utf8mb4_collation == "utf8mb4_0900_ai_ci"


def test_text_is_in_the_clients_charset() -> None:
    latin1 = b"\x04" + struct.pack("<HHH", 8, 8, 45)
    cp1251 = b"\x04" + struct.pack("<HHH", 51, 51, 45)
    assert logged_statement(query("DROP TABLE `\xe4`".encode("latin1"), latin1), MYSQL).sql == "DROP TABLE `\xe4`"
    assert logged_statement(query("DROP TABLE `\u0436`".encode("cp1251"), cp1251), MYSQL).sql == "DROP TABLE `\u0436`"
    assert logged_statement(query("DROP TABLE `\u00e4`".encode()), MYSQL).sql == "DROP TABLE `\u00e4`"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE `\xe4` (\n  `a` enum('b\\\\') DEFAULT NULL\n) START TRANSACTION",
        "CREATE TABLE `\xe4` (\n  `my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */,\n  `a` int)",
        'CREATE TABLE "\xe4" (\n  "my_row_id" bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */,\n  "a" int)',
    ],
)
def test_tables_that_mysql_spells_out_itself_are_in_utf8_and_escaped(sql: str) -> None:
    """CREATE TABLE ... SELECT, and one with a generated invisible primary key, as MySQL 8.0 and 9 log them."""
    session = b"\x01" + struct.pack("<Q", 1 << 20) + b"\x04" + struct.pack("<HHH", 8, 8, 45)

    found = logged_statement(query(sql.encode(), session), MYSQL)

    assert (found.sql, found.context.sql_mode) == (sql, frozenset())


def test_bytes_that_are_no_text_stay_recognisable() -> None:
    assert logged_statement(query(b"INSERT INTO t VALUES (_binary'\xff')"), MYSQL).sql.endswith("(_binary'\udcff')")


def test_text_of_every_client_is_read() -> None:
    hp8 = b"\x04" + struct.pack("<HHH", 6, 6, 45)
    assert logged_statement(query(b"DROP TABLE `\xe4`", hp8), MYSQL).sql == "DROP TABLE `ð`"


def test_a_load_statement_has_a_longer_head() -> None:
    assert logged_statement(query(b"LOAD DATA INFILE 'x' INTO TABLE t", CHARSETS, kind=18), MYSQL).sql.startswith(
        "LOAD DATA"
    )


def test_mysql_variables_behind_an_unknown_one_are_left_as_a_replica_leaves_them() -> None:
    found = logged_statement(query(b"DROP TABLE t", b"\x05\x03UTC\x15\x00"), MYSQL)
    assert (found.sql, found.context.time_zone) == ("DROP TABLE t", "UTC")


def test_an_unknown_variable_of_mariadb_is_refused() -> None:
    with pytest.raises(UnsupportedEvent, match="status variable") as raised:
        logged_statement(query(b"DROP TABLE t", b"\x90\x00"), MARIADB)
    assert raised.value.found == "code 144"


@pytest.mark.parametrize(
    "variables", [b"\x04\x01", b"\x05\x09UTC", b"\x01", b"\x05", b"\x0c\x02one\0", b"\x0b\x04root"]
)
def test_variables_that_are_cut_off_are_corrupt(variables: bytes) -> None:
    with pytest.raises(LogCorrupt, match="cut off"):
        logged_statement(query(b"x", variables), MYSQL)


def test_a_statement_that_is_cut_off_is_corrupt() -> None:
    with pytest.raises(LogCorrupt, match="too short"):
        logged_statement(query(b"DROP TABLE t", CHARSETS)[:36], MYSQL)


def test_a_table_that_mariadb_printed_is_escaped_and_in_utf8_whatever_the_session() -> None:
    latin1 = b"\x04" + struct.pack("<HHH", 8, 8, 8) + b"\x01" + struct.pack("<Q", 1 << 20)
    printed = "CREATE TABLE `shop`.`t` (\n  `ü` enum('b\\\\s') NOT NULL\n)"
    typed = "CREATE TABLE t (\n  `ü` enum('b\\s'))"
    for text, charset, modes in (
        (printed, "utf-8", set()),
        (printed.replace("CREATE", "CREATE OR REPLACE"), "utf-8", set()),
        (printed, "latin-1", {"NO_BACKSLASH_ESCAPES"}),
        (typed, "latin-1", {"NO_BACKSLASH_ESCAPES"}),
    ):
        found = logged_statement(query(text.encode(charset), latin1), MARIADB)
        assert (found.sql, found.context.sql_mode) == (text, modes)


@pytest.mark.parametrize("kind, size", [(2, 12), (18, 0), (18, 12), (18, 25)])
def test_a_statement_shorter_than_its_fields_is_corrupt(kind: int, size: int) -> None:
    with pytest.raises(LogCorrupt, match=r"a (QUERY|EXECUTE_LOAD_QUERY) event is too short"):
        logged_statement(event(kind, bytes(size)), MYSQL)


def test_pairs_of_collations_that_are_cut_off_are_corrupt() -> None:
    with pytest.raises(LogCorrupt, match="status variables of a QUERY event are cut off"):
        logged_statement(query(b"DROP TABLE t", b"\x83\x02" + bytes(5)), MARIADB)
