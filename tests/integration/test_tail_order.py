"""``historian tail`` prints rows in the order of the log, over all tables, whatever the numbers and times of transactions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from databases.servers import Server

TIME = "SET timestamp=1700000000"
"""All rows are of one second."""


@pytest.fixture
def tailed(tmp_path: Path) -> Callable[[Server], tuple[list[tuple[str, int]], list[str]]]:
    """Tables and ids of the rows, as ndjson has them; and lines of the table form's tables, statements and rows."""

    def tail(server: Server) -> tuple[list[tuple[str, int]], list[str]]:
        config = tmp_path / "tail.yaml"
        config.write_text(
            f"name: tail\nsource: {{type: {server.flavor}, host: {server.host}, port: {server.port}, user: {server.user}, "
            f"password: {server.password}, tables: ['o.*'], start: earliest}}\n"
        )
        lines = CliRunner().invoke(app, ["tail", str(config), "--format", "ndjson"], catch_exceptions=False).stdout
        rows = [json.loads(line) for line in lines.splitlines()]
        shown = CliRunner().invoke(app, ["tail", str(config)], catch_exceptions=False).stdout
        found = re.findall(
            r"^(o\.\w+)  schema version|^schema version \d+ at \S+ (ALTER TABLE o\.\w+)|^[+-].\s*│\s*(\d+)",
            shown,
            re.MULTILINE,
        )
        return [(row["table"], row["data"]["id"]) for row in rows], ["".join(each) for each in found]

    return tail


def _run(server: Server, *statements: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in (TIME, *statements):
            cursor.execute(statement)


@pytest.fixture
def tables(server: Server) -> Iterator[Server]:
    server.clear()
    _run(server, "CREATE DATABASE o", *(f"CREATE TABLE o.{name} (id INT PRIMARY KEY)" for name in "abc"))
    yield server
    server.sql("DROP DATABASE o")


Tailed = Callable[[Server], tuple[list[tuple[str, int]], list[str]]]


def test_rows_of_one_transaction_stand_in_its_order_beside_one_of_another_source(
    tables: Server, tailed: Tailed
) -> None:
    transaction = ("BEGIN", *(f"INSERT INTO o.{name} VALUES ({n})" for n, name in enumerate("acbab", 1)), "COMMIT")
    other = (
        ("SET gtid_domain_id=7", "SET server_id=99")
        if tables.flavor == "mariadb"
        else ("SET gtid_next='00000000-0000-0000-0000-000000000002:1'",)
    )
    back = () if tables.flavor == "mariadb" else ("SET gtid_next='AUTOMATIC'",)
    _run(tables, "INSERT INTO o.b VALUES (90)", *other, *transaction, *back, "INSERT INTO o.a VALUES (91)")

    rows, shown = tailed(tables)

    expected = [("o.b", 90), ("o.a", 1), ("o.c", 2), ("o.b", 3), ("o.a", 4), ("o.b", 5), ("o.a", 91)]
    assert expected == rows
    assert [text for table, number in expected for text in (table, str(number))] == shown


def test_a_ddl_stands_between_the_rows_before_and_behind_it(mysql9: Server, tailed: Tailed) -> None:
    mysql9.clear()
    _run(mysql9, "CREATE DATABASE o", *(f"CREATE TABLE o.{name} (id INT PRIMARY KEY)" for name in "ab"))
    _run(
        mysql9,
        "INSERT INTO o.a VALUES (1)",
        "INSERT INTO o.b VALUES (2)",
        "ALTER TABLE o.b ADD x INT",
        "INSERT INTO o.a VALUES (3)",
    )
    _run(mysql9, "INSERT INTO o.b VALUES (4, 4)")

    assert ["o.a", "1", "o.b", "2", "ALTER TABLE o.b", "o.a", "3", "o.b", "4"] == tailed(mysql9)[1]


def test_numbers_of_one_source_out_of_order_do_not_move_rows(mysql9: Server, tailed: Tailed) -> None:
    mysql9.clear()
    _run(mysql9, "CREATE DATABASE o", *(f"CREATE TABLE o.{name} (id INT PRIMARY KEY)" for name in "ab"))
    uuid = "00000000-0000-0000-0000-000000000003"
    for number, table in ((20, "a"), (10, "b"), (30, "a"), (15, "b")):
        _run(mysql9, f"SET gtid_next='{uuid}:{number}'", f"INSERT INTO o.{table} VALUES ({number})")

    assert [("o.a", 20), ("o.b", 10), ("o.a", 30), ("o.b", 15)] == tailed(mysql9)[0]


def test_without_gtids_and_with_prepared_transactions_rows_stand_where_they_count(
    fresh_server: Callable[..., Server], tailed: Tailed
) -> None:
    server = fresh_server("mysql57", "gtid_mode=OFF", "enforce_gtid_consistency=OFF")
    _run(server, "CREATE DATABASE o", *(f"CREATE TABLE o.{name} (id INT PRIMARY KEY)" for name in "ab"))
    _run(
        server,
        "XA START 'x'",
        "INSERT INTO o.b VALUES (1)",
        "INSERT INTO o.a VALUES (2)",
        "XA END 'x'",
        "XA PREPARE 'x'",
    )
    _run(
        server,
        "INSERT INTO o.a VALUES (3)",
        "INSERT INTO o.b VALUES (4)",
        "XA COMMIT 'x'",
        "INSERT INTO o.b VALUES (5)",
    )

    assert [("o.a", 3), ("o.b", 4), ("o.b", 1), ("o.a", 2), ("o.b", 5)] == tailed(server)[0]
