"""Values of every type read by SELECT, against the same rows decoded from the log, on all servers."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from logs.decoder_lab import capture, log_end
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
from logs.selected_lab import filled, same_rows

if TYPE_CHECKING:
    from databases.servers import Server

SEED = 20240229
DATABASE = "selected_values"
CASES_A_TABLE = 10


@pytest.fixture
def cursor(server: Server) -> Iterator[Any]:
    with contextlib.closing(server.connect()) as connection, connection.cursor() as found:
        found.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        found.execute(f"USE {DATABASE}")
        found.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
        yield found
        found.execute(f"DROP DATABASE {DATABASE}")


def check(server: Server, cursor: Any, wanted: Sequence[Case]) -> None:
    since = log_end(server)
    groups = [wanted[first : first + CASES_A_TABLE] for first in range(0, len(wanted), CASES_A_TABLE)]
    for number, group in enumerate(groups):
        filled(cursor, group, f"t{number}")
    same_rows(server, [capture(server, DATABASE, f"t{number}") for number in range(len(groups))], since)


def test_every_type_is_as_the_log_has_it(server: Server, cursor: Any) -> None:
    wanted = cases(SEED)
    if server.flavor == "mariadb" and server.name != "mariadb105":
        wanted += mariadb_cases(SEED)
    if server.name in ("mysql9", "mariadb118"):
        wanted += vector_cases(SEED, "STRING_TO_VECTOR" if server.flavor == "mysql" else "VEC_FromText")
    check(server, cursor, wanted)


@pytest.mark.parametrize("server", ["mysql9", "mysql57", "mariadb118"], indirect=True)
def test_every_character_set_is_as_the_log_has_it(server: Server, cursor: Any) -> None:
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


@pytest.mark.parametrize("server", ["mariadb1011", "mariadb118"], indirect=True)
def test_temporal_columns_of_before_mysql_5_6_are_as_the_log_has_them(server: Server, cursor: Any) -> None:
    cursor.execute("SET GLOBAL mysql56_temporal_format = OFF")
    try:
        check(server, cursor, temporal_cases(SEED))
    finally:
        cursor.execute("SET GLOBAL mysql56_temporal_format = ON")
