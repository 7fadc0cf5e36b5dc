"""Tables of every kind read by SELECT, against the same rows decoded from the log: documents, forms, hidden columns, long rows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from connectors.tracking.capture.catalog import capture_catalog
from historian.names import TableName
from historian.schema.snapshots import Snapshot
from logs.decoder_lab import capture, decode, log_end, planned
from logs.selected_lab import same_rows, select, told, typed_rows

if TYPE_CHECKING:
    from databases.servers import Server

DATABASE = "selected_tables"
INVISIBLE = {"mysql57": ""}
LONGEST_PART = 0xFFFFFF


@pytest.fixture
def cursor(server: Server) -> Iterator[Any]:
    yield from opened(server)


def opened(server: Server) -> Iterator[Any]:
    with contextlib.closing(server.connect()) as connection, connection.cursor() as found:
        found.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        found.execute(f"USE {DATABASE}")
        found.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
        yield found
        found.execute(f"DROP DATABASE {DATABASE}")


def captured(server: Server) -> Snapshot:
    """Table t with all that the product knows of it."""
    with contextlib.closing(server.connect()) as connection:
        return capture_catalog(connection, 1, 1).tables[TableName(DATABASE, "t")]


def check(server: Server, cursor: Any, create: str, *inserts: str) -> Snapshot:
    since = log_end(server)
    for statement in (create, *inserts):
        cursor.execute(statement)
    snapshot = captured(server)
    same_rows(server, [snapshot], since)
    return snapshot


JSON_VALUES = [
    *("0.1", "1e0", "1e300", "-0e0", "123456789012345680", "1e16", "1.5e-7", "18446744073709551615"),
    *("CAST(0.10 AS DECIMAL(9,3))", "TIMESTAMP('2015-01-15 23:24:25')", "CAST('-23:24:25.12' AS TIME(6))"),
    *("X'0102FF'", "REPEAT(X'00FF10', 40)", "CAST('9999-12-31' AS DATE)", "ST_GeomFromText('POINT(1 2)')"),
    *("TRUE", "NULL", "'\\0\\n\\u2028 é \\\\ \" /'", "REPEAT('é', 70000)", "JSON_OBJECT()", "JSON_ARRAY(1, '2', NULL)"),
]


@pytest.mark.parametrize("server", ["mysql9", "mysql8", "mysql57"], indirect=True)
def test_documents_are_printed_as_those_of_the_log(server: Server, cursor: Any) -> None:
    cursor.execute("CREATE TABLE t (k INT PRIMARY KEY AUTO_INCREMENT)")
    cursor.execute("INSERT INTO t VALUES (NULL)")
    cursor.execute("ALTER TABLE t ADD j JSON NOT NULL")
    since = log_end(server)
    rows = (f"(JSON_ARRAY({value})), (JSON_OBJECT('a', {value}, 'b', 1))" for value in JSON_VALUES)
    cursor.execute(f"INSERT INTO t (j) VALUES {', '.join(rows)}")
    # What a column without a default has in rows that were there before it.
    cursor.execute("INSERT INTO t (k, j) SELECT 100000, j FROM t WHERE k = 1")
    cursor.execute("DELETE FROM t WHERE k = 1")
    snapshot = captured(server)
    logged = decode(server, planned(snapshot), since)
    expected = [row for row in rows_of(logged) if row[0] != 1]

    assert expected == rows_of(select(server, snapshot))


def rows_of(chunks: Any) -> list[tuple[Any, ...]]:
    found = typed_rows(chunks)
    assert found is not None
    return [tuple(row.values()) for row in found.to_pylist()]


FORMS = {
    "BIGINT UNSIGNED": ("text", ["0", "9223372036854775808", "18446744073709551615", None]),
    "BIGINT(20) UNSIGNED ZEROFILL": ("int64 int64_overflow=null", ["0", "9223372036854775808", "7", None]),
    "BIGINT UNSIGNED NULL": ("int64 int64_overflow=dead_letter", ["0", "9223372036854775808", "7", None]),
    "TINYINT(1)": ("boolean invalid_boolean=dead_letter", ["0", "1", None, "2"]),
    "BIT(1)": ("binary", ["0", "1", None, "1"]),
    "TIME(3)": ("text", ["'-838:59:59'", "'00:00:00.001'", "'25:00:00'", None]),
    "TIME": ("text", ["'-00:00:01'", "'838:59:59'", None, "'0:0:1'"]),
    "DATE": ("text", ["'0000-00-00'", "'2024-02-31'", "'2024-00-01'", "'9999-12-31'"]),
    "DATE NULL": ("dead_letter", ["'0000-00-00'", "'2024-02-31'", "'2024-00-01'", "'9999-12-31'"]),
    "DATETIME(6)": ("text", ["'0000-00-00'", "'2024-02-29 01:02:03.000004'", None, "'2024-04-31 00:00:00.5'"]),
    "DATETIME(2)": ("dead_letter", ["'0000-00-00'", "'2024-02-29 01:02:03.04'", None, "'2024-04-31 00:00:00.5'"]),
    "DATETIME": ("error", ["'2024-01-01'", "'2024-02-29 01:02:03'", None, "'1000-01-01'"]),
    "TIMESTAMP(2) NULL": ("text", ["0", "'2038-01-19 03:14:07.99'", None, "'1970-01-01 00:00:01'"]),
    "TIMESTAMP(5) NULL": ("dead_letter", ["0", "'2038-01-19 03:14:07.99'", None, "'1970-01-01 00:00:01'"]),
    "DECIMAL(12,4) UNSIGNED ZEROFILL": ("", ["0", "1.5", None, "99999999.9999"]),
}
LETTERS = 8


def test_numbers_of_labels_are_of_one_size_however_short_the_labels(server: Server, cursor: Any) -> None:
    kinds = "e ENUM('x','y') CHARACTER SET latin1, s SET('a','b') CHARACTER SET latin1, l ENUM('x','long label')"
    check(
        server,
        cursor,
        f"CREATE TABLE t (k INT PRIMARY KEY, {kinds})",
        "INSERT INTO t VALUES (1, 1, 3, 2), (2, 2, 0, 1)",
    )


def test_forms_and_policies_are_those_of_the_log(server: Server, cursor: Any) -> None:
    since = log_end(server)
    kinds = ", ".join(f"c{at} {kind}" for at, kind in enumerate(FORMS))
    cursor.execute(f"CREATE TABLE t (k INT PRIMARY KEY, {kinds})")
    rows = (f"({k}, {', '.join(values[k] or 'NULL' for _, values in FORMS.values())})" for k in range(4))
    cursor.execute(f"INSERT INTO t VALUES {', '.join(rows)}")
    snapshot = formed(capture(server, DATABASE, "t"), "", *(form for form, _ in FORMS.values()))

    same_rows(server, [snapshot], since)

    assert LETTERS == len(told(select(server, snapshot))[1])


def formed(snapshot: Snapshot, *forms: str) -> Snapshot:
    columns = zip(snapshot.columns, forms, strict=True)
    return replace(
        snapshot, columns=tuple(replace(column, type=replace(column.type, options=form)) for column, form in columns)
    )


def test_what_cannot_be_represented_stops_the_table(server: Server, cursor: Any) -> None:
    since = log_end(server)
    cursor.execute("CREATE TABLE t (k INT PRIMARY KEY, d DATE)")
    cursor.execute("INSERT INTO t VALUES (1, '2024-01-01'), (2, '2024-01-01'), (3, '0000-00-00'), (4, NULL)")
    snapshot = formed(capture(server, DATABASE, "t"), "", "error")
    same_rows(server, [snapshot], since)

    fine, stopped = select(server, snapshot, max_chunk_rows=2)

    assert (2, "", 0) == (fine.rows.num_rows, fine.stopped, stopped.rows.num_rows)
    assert "a date that the calendar does not have" in stopped.stopped
    assert f"{DATABASE}.t.d, row 0 of its chunk, transaction bin.000009:5000000000" in stopped.stopped


@pytest.mark.parametrize("form", ["", "null", "dead_letter"])
@pytest.mark.parametrize("server", ["mysql9", "mariadb118"], indirect=True)
def test_bytes_that_are_no_text_go_by_their_policy(server: Server, cursor: Any, form: str) -> None:
    since = log_end(server)
    cursor.execute("CREATE TABLE t (k INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET greek)")
    # Two of these codes are no characters, which servers do not mind.
    cursor.execute("INSERT INTO t VALUES (1, _greek X'C1'), (2, _greek X'41D2'), (3, NULL), (4, _greek X'FF')")
    snapshot = formed(capture(server, DATABASE, "t"), "", form)

    same_rows(server, [snapshot], since)

    assert (0 if form == "" else 2) == sum(told(select(server, snapshot))[0].values())


def test_a_character_set_that_is_not_read_stops_the_table(mysql9: Server) -> None:
    for cursor in opened(mysql9):
        cursor.execute("CREATE TABLE t (v VARCHAR(5))")
        table = capture(mysql9, DATABASE, "t")
        (column,) = table.columns
        strange = replace(column, type=replace(column.type, charset="klingon"))

        (chunk,) = select(mysql9, replace(table, columns=(strange,)))

        assert "a character set that is not read yet" in chunk.stopped


def test_columns_that_people_do_not_see_are_read(server: Server, cursor: Any) -> None:
    hidden = INVISIBLE.get(server.name, "INVISIBLE")
    snapshot = check(
        server,
        cursor,
        f"CREATE TABLE t (`a``b` INT PRIMARY KEY, h INT DEFAULT 4 {hidden}, v INT GENERATED ALWAYS AS (`a``b` * 2) VIRTUAL,"
        f" `select` VARCHAR(20) GENERATED ALWAYS AS (CONCAT(b, '!')) STORED {hidden}, b VARCHAR(9))",
        "INSERT INTO t (`a``b`, b) VALUES (1, 'x'), (2, NULL)",
    )
    assert 5 == len(snapshot.columns)


@pytest.mark.parametrize("server", ["mysql8", "mysql9"], indirect=True)
def test_a_generated_primary_key_is_read_and_what_stands_behind_an_index_is_not(server: Server, cursor: Any) -> None:
    snapshot = check(
        server,
        cursor,
        "CREATE TABLE t (a INT, b VARCHAR(9), j JSON, KEY f ((a + 1)), KEY u ((UPPER(b))))",
        "INSERT INTO t (a, b, j) VALUES (1, 'x', '[1]'), (2, 'y', NULL)",
    )
    assert ["a", "b", "j"] == [column.name for column in snapshot.columns]
    cursor.execute("DROP TABLE t")
    cursor.execute("SET SESSION sql_generate_invisible_primary_key = ON")
    snapshot = check(server, cursor, "CREATE TABLE t (a INT)", "INSERT INTO t (a) VALUES (1), (NULL)")
    assert ["my_row_id", "a"] == [column.name for column in snapshot.columns]


DECLARED = """k INT PRIMARY KEY, v INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START,
    e TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME (s, e)"""


@pytest.mark.parametrize("server", ["mariadb105", "mariadb1011", "mariadb118"], indirect=True)
@pytest.mark.parametrize(
    "columns",
    [
        "k INT PRIMARY KEY, v INT",
        DECLARED,
        "k INT PRIMARY KEY, v INT, t TEXT, UNIQUE (t)",
    ],
    ids=["hidden", "declared", "hashed"],
)
def test_hidden_columns_of_mariadb_are_treated_as_the_logs(server: Server, cursor: Any, columns: str) -> None:
    versioned = "" if "UNIQUE" in columns else "WITH SYSTEM VERSIONING"
    cursor.execute(f"CREATE TABLE t ({columns}) {versioned}")
    cursor.execute("INSERT INTO t (k, v) VALUES (1, 1), (3, 3)")
    cursor.execute("DELETE FROM t WHERE k = 1")
    cursor.execute("DELETE FROM t WHERE k = 3")
    since = log_end(server)
    cursor.execute("INSERT INTO t (k, v) VALUES (1, 1), (2, NULL)")

    same_rows(server, [captured(server)], since)


@pytest.mark.parametrize("server,count", [("mysql9", 4096), ("mariadb118", 2000)], indirect=["server"])
def test_a_table_has_up_to_4096_columns(server: Server, cursor: Any, count: int) -> None:
    columns = ", ".join(f"c{number} TINYINT" for number in range(count - 1))
    check(
        server,
        cursor,
        f"CREATE TABLE t (a INT PRIMARY KEY, {columns}) ENGINE = MyISAM",
        f"INSERT INTO t (a, c7, c{count - 2}) VALUES (1, 1, 2), (2, NULL, 3)",
    )


def test_null_bits_are_those_of_the_log(mysql9: Server) -> None:
    for cursor in opened(mysql9):
        since = log_end(mysql9)
        counts = (1, 5, 6, 7, 62, 63, 64, 65, 250, 251)
        for count in counts:
            columns = ", ".join(f"c{number} SMALLINT" for number in range(count))
            rows = [
                "(" + ", ".join("NULL" if number % every == 0 else str(number) for number in range(count)) + ")"
                for every in (1, 2, 3, 7, 63)
            ]
            cursor.execute(f"CREATE TABLE t{count} ({columns})")
            cursor.execute(f"INSERT INTO t{count} VALUES {', '.join(rows)}")
        same_rows(mysql9, [capture(mysql9, DATABASE, f"t{count}") for count in counts], since)


@pytest.mark.parametrize("server", ["mysql9", "mariadb118"], indirect=True)
def test_rows_of_more_than_a_packet(server: Server, cursor: Any) -> None:
    cursor.execute("SET GLOBAL max_allowed_packet = 134217728")
    # A packet: a zero, a byte of NULL bits, the key, the blob's length in 4 bytes (9 from 2^24 on) and the blob.
    whole = LONGEST_PART - 10
    sizes = [whole, whole + 1, 5, 2 * LONGEST_PART - 15, 0]
    cursor.execute("CREATE TABLE t (k INT PRIMARY KEY, v LONGBLOB, c TINYINT)")
    with contextlib.closing(server.connect()) as connection, connection.cursor() as large:
        for k, size in enumerate(sizes):
            large.execute(f"INSERT INTO {DATABASE}.t SELECT {k}, CONCAT(REPEAT('x', {size - 1}), 'y'), NULL")
    cursor.execute("UPDATE t SET c = 5 WHERE k = 2")

    found = [row for chunk in select(server, captured(server)) for row in chunk.rows.to_pylist()]

    assert list(range(len(sizes))) == [row["h1"] for row in found]
    assert [b"x" * (size - 1) + b"y" for size in sizes] == [row["h2"] for row in found]
    assert [None, None, 5, None, None] == [row["h3"] for row in found]


def test_letters_name_the_rows_position(mysql9: Server) -> None:
    for cursor in opened(mysql9):
        cursor.execute("CREATE TABLE t (k INT PRIMARY KEY, d DATE)")
        cursor.execute("INSERT INTO t VALUES (1, NULL), (2, '0000-00-00')")
        (chunk,) = select(mysql9, formed(capture(mysql9, DATABASE, "t"), "", "dead_letter"))
        metadata = chunk.rows.schema.metadata

        assert [[1, "h2", "000000", "0000-00-00", "zero_dates"]] == json.loads(metadata[b"dead_letters"])
        assert [0, 1] == chunk.rows.column("ordinal").to_pylist()
