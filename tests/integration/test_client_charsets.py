"""Clients of every charset: what servers make of the bytes of a statement, in labels, defaults and names."""

from __future__ import annotations

from contextlib import closing, suppress
from itertools import product

import pytest
from pymysql.err import OperationalError

from databases.servers import Server
from historian.charsets.conversion import encoded
from historian.names import TableName
from historian.schema.snapshots import Column
from replicas.tracked import Tracked

CLIENTS = (
    ("latin1", b"a\xc3\x81\x9d"),
    ("ascii", b"~\xd8\xf4"),
    ("cp1250", b"a\x81b"),
    ("dec8", b"a\xa4b\xc4"),
    ("swe7", b"a[b@"),
    ("swe7", b"a\xc4[b@"),
    ("geostd8", b"a\xc0"),
    ("armscii8", b"a\xa4b\xb2"),
    ("hp8", b"\xe4"),
    ("keybcs2", b"\x80"),
    ("tis620", b"\xa1\xdd\xffa"),
    ("sjis", b"\x9d"),
    ("sjis", b"\x81\x5f"),
    ("sjis", b"\xfdA"),
    ("cp932", b"\xa0xy"),
    ("big5", b"\x90"),
    ("big5", b"a\x90b"),
    ("gbk", b"\xa2\xa0a"),
    ("gbk", b"\xffa"),
    ("euckr", b"\x81 x"),
    ("gb2312", b"\xaa\xa1x"),
    ("ujis", b"\x8f\xa1x"),
    ("ujis", b"\x8f\xa1"),
    ("utf8mb3", "😀".encode()),
    ("utf8mb4", "aй€ ".encode()),
    ("binary", "é".encode()),
)
DICTIONARY_FAILS = 3507
"""MySQL's own dictionary cannot keep some bytes, by chance of the row's other bytes."""
INCOMPLETE = (b"\x9d", b"\x90", b"\x8f\xa1")
"""A label of these in its own charset takes the comma behind it for its second byte."""
COLUMNS = ("utf8mb4", "latin1", "binary", "")
"""Charsets of columns; "": that of the client."""


@pytest.fixture
def source(server: Server) -> Server:
    """Each server."""
    return server


@pytest.mark.parametrize("mode", ["", "STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES"])
def test_labels_and_bytes_are_what_the_server_made_of_them(
    server: Server, database: str, tracked: Tracked, mode: str
) -> None:
    expected = {}
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for number, (client, raw) in enumerate(CLIENTS):
            for column in COLUMNS:
                if (client, column) == ("binary", "utf8mb4") or (not column and raw in INCOMPLETE):
                    continue
                name = f"t{number}_{column or 'own'}"
                made = (
                    f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY, e ENUM('".encode()
                    + raw
                    + f"','x','y ') CHARACTER SET {column or client}, s SET('".encode()
                    + raw
                    + f"','z ') CHARACTER SET {column or client}, b VARBINARY(20))".encode()
                )
                cursor.execute(f"SET sql_mode = '{mode}'")
                cursor.execute(f"SET NAMES {client}")
                try:
                    cursor._query(made)
                except OperationalError as error:
                    if error.args[0] != DICTIONARY_FAILS:
                        raise
                    continue
                cursor.execute("SET NAMES utf8mb4")
                cursor.execute(f"INSERT INTO {database}.{name} VALUES (1, 1, 1, NULL), (2, 3, 3, NULL)")
                cursor.execute(f"SET NAMES {client}")
                cursor._query(f"ALTER TABLE {database}.{name} ADD d VARBINARY(20) DEFAULT '".encode() + raw + b"'")
                cursor.execute("SET NAMES utf8mb4")
                cursor.execute(f"UPDATE {database}.{name} SET b = d")
                cursor.execute(f"SELECT id, e, s, HEX(d) FROM {database}.{name} ORDER BY id")
                expected[name] = [tuple(_text(value) for value in row) for row in cursor.fetchall()]

    with tracked.tracker() as tracker:
        found: dict[str, list[tuple[object, ...]]] = {}
        for name, rows in tracked.news(tracker).items():
            column = tracker.history.catalog.tables[TableName(database, name)].column("d")
            assert column is not None
            initial = column.initial or ""
            found[name] = [
                (row["id"], row["e"], row["s"], initial.removeprefix("0x")) for op, row in rows if op == "+A"
            ]
        assert tracked.stopped(tracker) == {}
    assert found == expected


UNDEFINED = b"\x81\x8d\x8f\x90\x9d"
"""Bytes that no character of cp1252 has; MySQL's latin1 takes them for controls."""


def test_texts_and_names_of_latin1_clients_have_every_byte(server: Server, database: str, tracked: Tracked) -> None:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for number, byte in enumerate(UNDEFINED):
            name, raw = f"t{number}".encode(), b"\xc3" + bytes((byte,))
            cursor.execute("SET NAMES latin1")
            made = b"CREATE TABLE %s.%s (id INT PRIMARY KEY, a ENUM('%s', 'x') CHARACTER SET utf8mb4, b VARCHAR(5) DEFAULT '%s')"
            cursor._query(made % (database.encode(), name, raw, raw))
            cursor.execute(f"INSERT INTO {database}.t{number} (id, a) VALUES (1, 1)")
            cursor._query(b"ALTER TABLE %s.%s ADD `%s` VARCHAR(5) DEFAULT '%s'" % (database.encode(), name, raw, raw))
            cursor._query(b"CREATE TABLE %s.`%s` (id INT PRIMARY KEY)" % (database.encode(), name + raw))
            cursor._query(b"INSERT INTO %s.`%s` VALUES (7)" % (database.encode(), name + raw))
        cursor.execute("SET NAMES utf8mb4")
        expected = {}
        cursor.execute(f"SHOW TABLES FROM {database}")
        for (table,) in sorted(cursor.fetchall()):
            cursor.execute(f"SHOW COLUMNS FROM {database}.`{table}`")
            names = [row[0] for row in cursor.fetchall()]
            cursor.execute(f"SELECT * FROM {database}.`{table}`")
            expected[table] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    with tracked.tracker() as tracker:
        found = {name: [row for _, row in rows] for name, rows in tracked.news(tracker).items()}
        initials = {}
        for name, rows in found.items():
            for column in tracker.history.catalog.tables[TableName(database, name)].columns[3:]:
                initials[name] = {column.name: column.initial}
                rows[0] |= initials[name]
        assert tracked.stopped(tracker) == {}
    assert len(initials) == len(UNDEFINED)
    assert found == expected


def test_defaults_that_a_client_of_bytes_says_are_in_the_columns_charset(
    server: Server, database: str, tracked: Tracked
) -> None:
    """In rows from before each column was added."""
    charsets = ("latin1", "cp1251", "utf8mb4", "latin2")
    raw = "éñ".encode()
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {database}.t VALUES (1)")
        cursor.execute("SET NAMES binary")
        for name in charsets:
            cursor._query(
                b"ALTER TABLE %s.t ADD %s VARCHAR(9) CHARACTER SET %s DEFAULT '%s'"
                % (database.encode(), name.encode(), name.encode(), raw)
            )
    ((_, *values),) = server.sql(f"SELECT * FROM {database}.t")

    with tracked.tracker() as tracker:
        tracker.catch_up()
        assert tracked.stopped(tracker) == {}
        columns = tracker.history.catalog.tables[TableName(database, "t")].columns[1:]
    assert values == [column.initial for column in columns]


@pytest.mark.parametrize("client", ["latin1", "sjis", "gbk", "cp1251", "swe7", "binary", "utf8mb4"])
def test_literals_and_national_literals_of_each_client_are_what_the_server_made_of_them(
    server: Server, database: str, tracked: Tracked, client: str
) -> None:
    """In rows from before each column was added."""
    kinds = [f"VARCHAR(9) CHARACTER SET {name}" for name in ("latin1", "utf8mb4", "utf16", "utf32", "binary")]
    kinds += ["VARBINARY(9)", "BIT(32)", *(["BLOB", "TINYBLOB", "TEXT"] if server.flavor == "mariadb" else [])]
    literals = (*(text.encode() for text in ("N'é'", "'é'", "'🍵'", "_utf8'1'")), b"'\x80\xc3'")
    names = []
    with closing(server.connect(sql_mode="STRICT_ALL_TABLES")) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {database}.t VALUES (1)")
        cursor.execute(f"SET NAMES {client}")
        for number, (kind, literal) in enumerate(product(kinds, literals)):
            with suppress(OperationalError):
                cursor._query(f"ALTER TABLE {database}.t ADD n{number} {kind} DEFAULT ".encode() + literal)
                names.append(f"n{number}")
    (values,) = server.sql(f"SELECT {', '.join(map('HEX({})'.format, names))} FROM {database}.t")

    with tracked.tracker() as tracker:
        tracker.catch_up()
        assert tracked.stopped(tracker) == {}
        table = tracker.history.catalog.tables[TableName(database, "t")]
        columns = [table.column(name) for name in names]
    assert len(names) > 9
    assert list(values) == [_digits(column) for column in columns]


def _digits(column: Column | None) -> str:
    """The initial value's bytes in hexadecimal digits."""
    assert column is not None
    assert column.initial is not None
    if column.initial.startswith("0x"):
        return column.initial[2:].upper()
    if column.type.name == "bit":
        return f"{int(column.initial[2:-1], 2):X}"
    return encoded(column.initial, column.type.charset or "utf8mb4").hex().upper()


def _text(value: object) -> object:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
