"""Values of every type as real servers log them, against what the same servers SELECT."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from logs.decoder_lab import capture, changes, decode, log_end, planned
from logs.decoder_values import (
    CHARSETS,
    UNICODE,
    Case,
    cases,
    charset_cases,
    mariadb_cases,
    temporal_cases,
    vector_cases,
)

if TYPE_CHECKING:
    from databases.servers import Server

SEED = 20240229
DATABASE = "decoder_values"
CASES_A_TABLE = 10


@pytest.fixture
def cursor(server: Server) -> Iterator[Any]:
    with database(server) as found:
        yield found


@contextlib.contextmanager
def database(server: Server) -> Iterator[Any]:
    with contextlib.closing(server.connect()) as connection, connection.cursor() as found:
        found.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        found.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        found.execute(f"USE {DATABASE}")
        found.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
        yield found
        found.execute(f"DROP DATABASE {DATABASE}")


def fill(cursor: Any, wanted: list[Case], table: str) -> list[tuple[Any, ...]]:
    """Writes the cases' values, one case a column, NULL where one has no more; changes and deletes the rows.

    Returns what the server read back in between.
    """
    columns = ", ".join(f"v{n} {case.type}" for n, case in enumerate(wanted))
    cursor.execute(f"CREATE TABLE {table} (k INT PRIMARY KEY, {columns}, w INT NOT NULL)")
    for k in range(1 + max(len(case.values) for case in wanted)):
        cells = [case.values[k] if k < len(case.values) else None for case in wanted]
        sql = [cell[4:].decode() if isinstance(cell, bytes) and cell.startswith(b"sql:") else "%s" for cell in cells]
        values = [cell for cell, expression in zip(cells, sql, strict=True) if expression == "%s"]
        cursor.execute(f"INSERT INTO {table} VALUES ({k}, {', '.join(sql)}, 0)", values)
    reads = ", ".join(case.read.replace("v", f"v{n}", 1) for n, case in enumerate(wanted))
    cursor.execute(f"SELECT {reads} FROM {table} ORDER BY k")
    found = list(cursor.fetchall())
    cursor.execute(f"UPDATE {table} SET w = 1 ORDER BY k")
    cursor.execute(f"UPDATE {table} SET k = k + 100000 ORDER BY k")
    cursor.execute(f"DELETE FROM {table} ORDER BY k DESC")
    return found


def expected(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [("+A", k, *cells, 0) for k, cells in enumerate(rows)]
    for k, cells in enumerate(rows):
        found += [("-C", k, *cells, 0), ("+C", k, *cells, 1)]
    for k, cells in enumerate(rows):
        found += [("-R", k, *cells, 1), ("+A", k + 100000, *cells, 1)]
    return found + [("-R", k + 100000, *cells, 1) for k, cells in reversed(list(enumerate(rows)))]


def bits_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Floats as their bits, so that -0.0 is not 0.0; Decimals with their exponent."""
    return tuple(struct.pack("<d", cell) if isinstance(cell, float) else repr(cell) for cell in row)


def check(server: Server, cursor: Any, wanted: list[Case], *, as_text: bool = False, prefix: str = "t") -> None:
    since = log_end(server)
    groups = [wanted[first : first + CASES_A_TABLE] for first in range(0, len(wanted), CASES_A_TABLE)]
    cursor.execute("BEGIN")
    read = [fill(cursor, group, f"{prefix}{number}") for number, group in enumerate(groups)]
    snapshots = [capture(server, DATABASE, f"{prefix}{number}") for number in range(len(groups))]
    chunks = decode(server, planned(*snapshots), since, as_text=as_text)
    for number, (group, rows, snapshot) in enumerate(zip(groups, read, snapshots, strict=True), 1):
        expects = [(as_text and case.text) or case.expect for case in group]
        values = [
            tuple(None if cell is None else expect(cell) for cell, expect in zip(row, expects, strict=True))
            for row in rows
        ]
        found = [bits_of(row) for row in changes(chunks, snapshot, number)]
        wanted_rows = [bits_of(row) for row in expected(values)]
        for column, case in enumerate(group, 2):
            texts = [row[column] for row in found], [row[column] for row in wanted_rows]
            assert texts[0] == texts[1], f"{case.type} on {server.version}"
        assert found == wanted_rows


def test_every_type_decodes_to_what_the_server_selects(server: Server, cursor: Any) -> None:
    check(server, cursor, cases(SEED))


@pytest.fixture(params=["mariadb1011", "mariadb118"])
def mariadb(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


def test_types_of_mariadb_decode_to_what_the_server_selects(mariadb: Server) -> None:
    with database(mariadb) as cursor:
        check(mariadb, cursor, mariadb_cases(SEED))
        cursor.execute("SET SESSION column_compression_zlib_wrap = ON, column_compression_threshold = 10")
        check(mariadb, cursor, [case for case in mariadb_cases(SEED + 1) if "COMPRESSED" in case.type], prefix="w")


@pytest.mark.parametrize(
    "name,function", [("mysql9", "STRING_TO_VECTOR"), ("mariadb118", "VEC_FromText")], ids=["mysql9", "mariadb118"]
)
def test_vectors_are_the_bytes_that_the_server_selects(
    name: str, function: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(name)
    with database(server) as cursor:
        check(server, cursor, vector_cases(SEED, function))


def test_temporal_columns_of_before_mysql_5_6_decode_to_what_the_server_selects(mariadb: Server) -> None:
    with database(mariadb) as cursor:
        cursor.execute("SET GLOBAL mysql56_temporal_format = OFF")
        try:
            check(mariadb, cursor, temporal_cases(SEED))
            check(mariadb, cursor, temporal_cases(SEED + 1), as_text=True, prefix="x")
        finally:
            cursor.execute("SET GLOBAL mysql56_temporal_format = ON")


def test_temporal_columns_as_text_are_the_servers_own_text(server: Server, cursor: Any) -> None:
    check(server, cursor, [case for case in cases(SEED) if case.text is not None], as_text=True)


def test_every_character_set_decodes_to_what_the_server_selects(server: Server, cursor: Any) -> None:
    cursor.execute("SHOW CHARACTER SET")
    bytes_a_character = {row[0]: row[3] for row in cursor.fetchall()}
    draw = random.Random(SEED)
    wanted = []
    for charset in (charset for charset in CHARSETS if charset in bytes_a_character):
        codes = range(32, 256 if bytes_a_character[charset] == 1 else 127)
        chars = (f"CONVERT(CONVERT(X'{code:02x}' USING {charset}) USING utf8mb4)" for code in codes)
        cursor.execute(f"SELECT {', '.join(chars)}" if charset not in UNICODE else "SELECT 'a'")
        characters = "".join(char for char in cursor.fetchone() if char not in {None, "\ufffd"})
        wanted += charset_cases(draw, charset, characters)
    check(server, cursor, wanted)
