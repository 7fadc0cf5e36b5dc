"""Labels and defaults that information_schema prints with losses, read from servers as they are."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from connectors.tracking.capture.catalog import capture_catalog
from databases.servers import Server
from historian.names import TableName
from historian.schema.comparison import differences
from historian.schema.snapshots import Catalog

TABLE = TableName("texts", "t")
WITHOUT_QUESTIONS = ("mysql57", "mysql8")
"""Servers that tell only labels that a row holds."""


def captured(server: Server, *, exact: bool = True) -> Catalog:
    with closing(server.connect()) as connection:
        return capture_catalog(connection, 1, 1, exact=exact)


def make(server: Server, *statements: str) -> None:
    server.clear()
    with closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE texts CHARACTER SET utf8mb4")
        for statement in statements:
            cursor.execute(statement)


def test_labels_that_rows_hold_are_read_as_they_are(server: Server) -> None:
    make(
        server,
        "CREATE TABLE texts.t (id INT PRIMARY KEY, e ENUM('🍵','a?','b'), s SET('x','🍵🍵') CHARACTER SET utf16)",
        "INSERT INTO texts.t VALUES (1, 1, 1), (2, 2, 2)",
    )
    _, e, s = captured(server).tables[TABLE].columns
    assert e.type.labels == ("🍵", "a?", "b")
    assert s.type.labels == ("x", "🍵🍵")


def test_a_label_that_no_row_holds_is_made_by_a_query_or_its_table_is_unknown(server: Server) -> None:
    make(server, "CREATE TABLE texts.t (id INT PRIMARY KEY, e ENUM('🍵','b','?') NOT NULL)")
    catalog = captured(server)
    if server.name in WITHOUT_QUESTIONS:
        assert catalog.unknown[TABLE].startswith("the server does not tell a label of column e: it prints '?'")
        assert TABLE not in catalog.tables
    else:
        assert catalog.tables[TABLE].columns[1].type.labels == ("🍵", "b", "?")


def test_question_marks_of_charsets_without_longer_characters_are_what_they_seem(server: Server) -> None:
    make(server, "CREATE TABLE texts.t (id INT PRIMARY KEY, e ENUM('?','b') CHARACTER SET latin1)")
    assert captured(server).tables[TABLE].columns[1].type.labels == ("?", "b")


@pytest.mark.parametrize("null", ["", " NOT NULL"])
def test_defaults_are_read_as_they_are(server: Server, null: str) -> None:
    make(
        server,
        f"CREATE TABLE texts.t (id INT PRIMARY KEY, a VARCHAR(9){null} DEFAULT '🍵?', b VARBINARY(9){null} DEFAULT x'6100e93f',"
        f" c VARCHAR(9){null} DEFAULT 'why?', d BINARY(3){null} DEFAULT 'a')",
        "INSERT INTO texts.t (id) VALUES (1)",
    )
    _, a, b, c, d = captured(server).tables[TABLE].columns
    assert (a.default, b.default, c.default, d.default) == ("🍵?", "0x6100E93F", "why?", "0x610000")


def test_a_default_that_the_server_does_not_tell_is_not_taken_for_what_is_printed(server: Server) -> None:
    make(server, "CREATE TABLE texts.t (id INT PRIMARY KEY, a VARCHAR(9) NOT NULL DEFAULT '🍵')")
    column = captured(server).tables[TABLE].columns[1]
    assert (column.default, column.default_is_expression) in (("🍵", False), ("", True))


def test_what_is_printed_does_not_differ_from_what_it_stands_for(server: Server) -> None:
    make(
        server,
        "CREATE TABLE texts.t (id INT PRIMARY KEY, a VARCHAR(9) DEFAULT '🍵', e ENUM('🍵','b'), f ENUM('x','y'))",
        "INSERT INTO texts.t VALUES (1, 'a', 1, 'x')",
    )
    exact, printed = (captured(server, exact=each).tables[TABLE] for each in (True, False))
    assert differences(exact, printed) == ()
    *others, f = exact.columns
    changed = replace(exact, columns=(*others, replace(f, type=replace(f.type, labels=("x", "z")))))
    assert differences(changed, printed) == ("column f: expected enum('x','z'), found enum('x','y')",)


def test_labels_of_bytes_that_are_no_text_are_read_as_the_log_has_them(server: Server) -> None:
    """MariaDB prints a question mark for each; MySQL 5.7 prints no label from there on."""
    make(
        server,
        "CREATE TABLE texts.t (id INT PRIMARY KEY, e ENUM(0xFFFE,0xFEFF,'?','b ') CHARACTER SET binary DEFAULT 0xFEFF)",
        "INSERT INTO texts.t VALUES (1, 1), (2, 2), (3, 3)",
    )
    catalog = captured(server)
    if server.name == "mysql57":
        assert "is not closed" in catalog.unknown[TABLE]
        return
    e = catalog.tables[TABLE].columns[1]
    assert e.type.labels == ("\\xff\\xfe", "\\xfe\\xff", "?", "b ")
    assert e.default == "\\xfe\\xff"
    assert () == differences(catalog.tables[TABLE], captured(server, exact=False).tables[TABLE])


def test_labels_that_would_read_the_same_are_not_taken_for_one(server: Server) -> None:
    """Bytes that are no text, and the text that stands for them."""
    make(
        server,
        r"CREATE TABLE texts.t (id INT PRIMARY KEY, e ENUM(0xFF,'\\xff') CHARACTER SET binary)",
        "INSERT INTO texts.t VALUES (1, 1), (2, 2)",
    )
    catalog = captured(server)
    assert TABLE in catalog.unknown
    assert TABLE not in catalog.tables
