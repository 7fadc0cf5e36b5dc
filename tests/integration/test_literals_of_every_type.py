"""Every form of a literal as the default of a column of every type: the value that the server gives is the one that we compute, or none.

On temporary tables, of which nothing is logged: some thousand pairs in seconds. How statements reach us is tested elsewhere.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from databases.server_builds import BUILDS
from databases.servers import Server
from historian.ddl.parsing.context import StatementContext
from historian.ddl.resolving.statement import resolve
from historian.errors import ValueUnrepresentable
from historian.schema.applying import apply_all
from historian.schema.edits import AddColumn
from historian.schema.snapshots import Catalog, Column
from historian.values.arrow_types import arrow_type
from historian.values.texts import initial_value
from models.source_oracle import comparable

ZONE = "-03:00"
TYPES = (
    *(
        "INT",
        "BIGINT UNSIGNED",
        "DECIMAL(10,2)",
        "FLOAT",
        "DOUBLE",
        "BIT(20)",
        "YEAR",
        "DATE",
        "DATETIME",
        "DATETIME(3)",
    ),
    *(
        "TIMESTAMP NULL",
        "TIME",
        "TIME(3)",
        "VARCHAR(30)",
        "VARCHAR(10) CHARACTER SET ascii",
        "VARCHAR(30) CHARACTER SET utf16",
    ),
    *("VARBINARY(30)", "BINARY(6)", "TEXT", "BLOB", "ENUM('a','b','é','1','12')", "SET('a','b','é')"),
)
NUMBERS = (
    *(
        "0",
        "-1",
        "5.",
        "1.6",
        "1e1",
        "2e3",
        "2020.4",
        "69.6",
        "'1e1'",
        "'2e3'",
        "'0e0'",
        "'0e00'",
        "'0070'",
        "'1e-1'",
        "' 70'",
    ),
    *(
        "x'3132'",
        "0x3132",
        "_binary'12'",
        "_binary'1.5'",
        "_binary'é'",
        "_latin1 x'3132'",
        "_utf16 x'0031'",
        "b'101'",
        "x''",
    ),
    *("x'ffffffffffffffff'", "0x010000000000000000", "x'123e4567e89b12d3a456426655440000'", "_binary'2020'", "'   0'"),
)
TEXTS = (
    *(
        "'a'",
        "'é'",
        "_latin1'é'",
        "_latin1 x'e9'",
        "_utf16 x'00e9'",
        "_utf16 x'0061'",
        "_binary'é'",
        "x'c3a9'",
        "0xE9",
        "''",
    ),
    *(
        "_latin1 x'0a'",
        "_latin1 x'7f'",
        "_latin1'a''b'",
        r"_latin1'a\\b'",
        r"_binary'\0'",
        "_latin1 x'27'",
        "N'é'",
        "'a' 'b'",
    ),
)
MOMENTS = (
    *(
        "'2020-01-02'",
        "'2020-01-02-03-04-05'",
        "'2020-01-02_03:04:05'",
        "'2020/01/02/03/04/05'",
        "'2020-01-02 - 03:04:05'",
    ),
    *(
        "'2020--01-02'",
        "'2020-01-02 03::04'",
        "'2020-01-02,03'",
        "'2020-01-02 03:04:05x'",
        "'120-01-02'",
        "'1-2-3'",
        "'1.2.3.4'",
    ),
    *(
        "'001.2.3.4'",
        "'2020.9.02'",
        "'20.1-2'",
        "'2020-01-02T3:4'",
        "'20200102T030405'",
        "'20200102.5'",
        "'20200102030405.7'",
    ),
    *(
        "'2020-01-01 00:00:00+02:00'",
        "'2020-01-01 00:00:00.7+02:00'",
        "'2020-01-01 00:00:00.2346+02:00'",
        "'1 2'",
        "'1 2:3'",
    ),
    *(
        "'2020-01-01 00:00:00.9996+02:00'",
        "'2020-01-01 23:59:59.9+02:00'",
        "'20-01-01 00:00:00+02:00'",
        "'10:11:12+02:00'",
    ),
    *(
        "'2020-01-01T00:00:00+02:00'",
        "'2020-01-01+02:00'",
        "'2020-01-02 +02:00'",
        "'2020-01-02 03:04:'",
        "'.5'",
        "'34:00:00'",
    ),
    *(
        "DATE'2020-01-02'",
        "TIMESTAMP'2020-01-02 03:04:05'",
        "TIME'01:02:03'",
        "{d '2020-01-02'}",
        "{t '01:02:03'}",
        "20200102",
    ),
)


@pytest.mark.parametrize("mode", ["STRICT_TRANS_TABLES", ""])
@pytest.mark.parametrize("name", list(BUILDS))
def test_a_literal_is_the_value_of_the_server_or_not_known(
    name: str, mode: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(name)
    server.clear()
    server.sql("CREATE DATABASE lit CHARACTER SET utf8mb4")
    context = _context(server, mode)
    catalog = apply_all(resolve("CREATE TABLE x (id INT)", context, Catalog()).edits, Catalog())
    wrong, compared = [], 0
    with contextlib.closing(server.connect(database="lit")) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE x (id INT) ENGINE=MyISAM")
        cursor.execute("INSERT INTO x VALUES (1)")
        for kind, literal in itertools.product(TYPES, (*NUMBERS, *TEXTS, *MOMENTS)):
            statement = f"ALTER TABLE x ADD COLUMN c {kind} DEFAULT {literal}"
            cursor.execute(f"SET sql_mode = '{mode}', time_zone = '{ZONE}'")
            with contextlib.suppress(pymysql.err.MySQLError):
                cursor.execute(statement)
                theirs = _theirs(cursor)
                compared += 1
                found = resolve(statement, context, catalog)
                columns = [edit.column for edit in found.edits if isinstance(edit, AddColumn)]
                if len(columns) != 1:
                    wrong.append((kind, literal, theirs, found.reason))
                elif not _is_same(columns[0], theirs):
                    wrong.append((kind, literal, theirs, columns[0].initial))

    assert [] == wrong
    assert compared > 500


def _context(server: Server, mode: str) -> StatementContext:
    numbers = [int(part) for part in str(server.sql("SELECT VERSION()")[0][0]).split("-")[0].split(".")]
    return StatementContext(
        flavor=server.flavor,
        database="lit",
        version=numbers[0] * 10000 + numbers[1] * 100 + numbers[2],
        sql_mode=frozenset(mode.split()),
        connection_charset="utf8mb4",
        charset="utf8mb4",
        time_zone=ZONE,
    )


def _theirs(cursor: pymysql.cursors.Cursor) -> Any:
    """What the row that was there reads in the column, which is dropped again."""
    cursor.execute("SET time_zone = '+00:00', sql_mode = ''")
    cursor.execute("SELECT c FROM x")
    row = cursor.fetchone()
    cursor.execute("ALTER TABLE x DROP COLUMN c")
    return None if row is None else comparable(row[0])


def _is_same(column: Column, theirs: Any) -> bool:
    """Whether our value is the server's, or is none: of a column that stops its table."""
    try:
        ours = initial_value(column)
        held = comparable(pa.scalar(ours, arrow_type(column.type)).as_py())
    except (ValueUnrepresentable, pa.ArrowInvalid, OverflowError):
        return True
    if ours is None and "-00" in str(theirs)[:10]:
        return True  # a day that is none is NULL, as its policy says
    if isinstance(theirs, float):
        return isinstance(held, float) and math.isclose(held, theirs, rel_tol=1e-5)  # FLOAT is printed with six digits
    return bool(held == theirs)
