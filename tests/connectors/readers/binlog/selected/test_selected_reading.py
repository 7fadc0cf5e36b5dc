"""How rows are read by SELECT: chunks and their numbers, connections, and what ends a reading."""

from __future__ import annotations

import contextlib
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from connectors.readers.binlog.selected.failures import SelectInterrupted, TableChanged
from connectors.readers.binlog.selected.reading import select_rows
from connectors.readers.binlog.selected.sessions import selecting_connection
from connectors.readers.binlog.transport.connection import ConnectionLost
from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS
from historian.errors import SourceError
from historian.plans.plans import PlannedVersion
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot
from logs.decoder_lab import capture
from logs.selected_lab import POSITION_OFFSET, address, select

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from databases.servers import Server

DATABASE = "selected_reading"
ROWS = 60_000  # more than sockets hold
FILL = f"""
INSERT INTO {DATABASE}.t SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n, CONCAT('row ', a.n, REPEAT('x', 80))
FROM {DATABASE}.ten a, {DATABASE}.ten b, {DATABASE}.ten c, {DATABASE}.ten d, {DATABASE}.ten e WHERE e.n < {ROWS // 10000}
"""


@pytest.fixture
def table(server: Server) -> Snapshot:
    """A table of ROWS rows, which nobody changes."""
    if server.sql("SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = 't'", DATABASE):
        return capture(server, DATABASE, "t")
    server.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
    server.sql(f"CREATE TABLE {DATABASE}.ten (n INT)")
    server.sql(f"INSERT INTO {DATABASE}.ten VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
    server.sql(f"CREATE TABLE {DATABASE}.t (k INT PRIMARY KEY, v VARCHAR(100))")
    server.sql(FILL)
    return capture(server, DATABASE, "t")


@pytest.fixture
def small(server: Server) -> Iterator[Snapshot]:
    """A table without rows, to be changed."""
    server.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4")
    server.sql(f"CREATE TABLE {DATABASE}.small (k INT PRIMARY KEY, v VARCHAR(100))")
    yield capture(server, DATABASE, "small")
    server.sql(f"DROP TABLE IF EXISTS {DATABASE}.small")


some = pytest.mark.parametrize("server", ["mysql9", "mariadb118"], indirect=True)


def reading(connection: Connection[Any], server: Server, table: Snapshot, **options: Any) -> Iterator[Chunk]:
    version = PlannedVersion(version=7, place=None, edits=(), snapshot=table, segment=3)
    position = LogPosition(flavor=server.flavor, gtids="", file="bin.000009", offset=POSITION_OFFSET)
    common = {"table_id": 11, "flavor": server.flavor, "position": position, "event_time_us": 123_456_789}
    return select_rows(connection, version, **common, **options)


@pytest.fixture
def connection(server: Server) -> Iterator[Any]:
    with contextlib.closing(selecting_connection(address(server), server.flavor)) as found:
        yield found


def keys(chunks: Any) -> list[int]:
    return [key for chunk in chunks for key in chunk.rows.column("h1").to_pylist()]


@some
def test_chunks_are_numbered_and_stand_at_the_position(server: Server, table: Snapshot, connection: Any) -> None:
    chunks = list(reading(connection, server, table, sequence=5, max_chunk_rows=25_000, where="k >= 100 -- all others"))

    assert [25_000, 25_000, 9_900] == [chunk.rows.num_rows for chunk in chunks]
    assert [5, 6, 7] == [chunk.sequence for chunk in chunks]
    place = f"bin.000009:{POSITION_OFFSET}"
    told = {
        (each.table_id, each.version, each.segment, each.file, each.first_position, each.last_position, each.sources)
        for each in chunks
    }
    assert {(11, 7, 3, "bin.000009", place, place, ())} == told
    assert list(range(100, ROWS)) == keys(chunks)
    for chunk in chunks:
        assert list(CHUNK_COLUMNS) == list(chunk.rows.schema)[: len(CHUNK_COLUMNS)]
    rows = [row for chunk in chunks for row in chunk.rows.select(["op", "source", "sequence"]).to_pylist()]
    assert {(0, -1, POSITION_OFFSET)} == {tuple(row.values()) for row in rows}
    assert {123_456_789} == {each.value for chunk in chunks for each in chunk.rows.column("event_time")}
    assert list(range(ROWS - 100)) == [n for chunk in chunks for n in chunk.rows.column("ordinal").to_pylist()]


@some
def test_a_connection_reads_on_and_on(server: Server, table: Snapshot, connection: Any) -> None:
    assert [] == list(reading(connection, server, table, where="k < 0"))
    for first in range(0, ROWS, 20_000):
        wanted = f"k >= {first} AND k < {first + 20_000}"
        assert list(range(first, first + 20_000)) == keys(reading(connection, server, table, where=wanted))
        with connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM information_schema.processlist")
            assert cursor.fetchone()[0] > 0


@some
def test_bytes_end_a_chunk_too(server: Server, table: Snapshot, connection: Any) -> None:
    chunks = list(reading(connection, server, table, max_chunk_bytes=1 << 20))

    assert list(range(ROWS)) == keys(chunks)
    assert 5 < len(chunks) < 15


@pytest.mark.parametrize("tls", ["disabled", "required"])
@pytest.mark.parametrize("server", ["mysql9", "mariadb118"], indirect=True)
def test_rows_come_with_and_without_tls(server: Server, table: Snapshot, tls: str) -> None:
    with contextlib.closing(selecting_connection(address(server, tls), server.flavor)) as connection:
        assert list(range(ROWS)) == keys(reading(connection, server, table))
        with connection.cursor() as cursor:
            cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
            assert (tls == "required") == bool(cursor.fetchone()[1])


@some
def test_an_iterator_that_is_closed_closes_the_connection(server: Server, table: Snapshot, connection: Any) -> None:
    chunks = reading(connection, server, table, max_chunk_rows=1000)
    assert next(chunks).rows.num_rows == 1000
    chunks.close()
    assert not connection.open


CHANGES = (
    "CHANGE v w VARCHAR(100)",
    "MODIFY v VARCHAR(101)",
    "MODIFY v TEXT",
    "MODIFY k BIGINT",
    "MODIFY k INT UNSIGNED",
    "MODIFY v VARCHAR(100) CHARACTER SET utf32",
    "RENAME TO gone",
)


@some
def test_a_table_that_was_changed_is_told_as_such(server: Server, small: Snapshot) -> None:
    for change in CHANGES:
        server.sql(f"DROP TABLE {DATABASE}.small")
        server.sql(f"CREATE TABLE {DATABASE}.small (k INT PRIMARY KEY, v VARCHAR(100))")
        assert [] == select(server, small)
        server.sql(f"ALTER TABLE {DATABASE}.small {change.replace('gone', DATABASE + '.gone')}")
        with pytest.raises(TableChanged, match=rf"{DATABASE}\.small"):
            select(server, small)
    server.sql(f"ALTER TABLE {DATABASE}.gone RENAME TO {DATABASE}.small")


@some
def test_types_of_numbers_and_times_are_compared(server: Server, small: Snapshot) -> None:
    old = "a DECIMAL(10,2), b DATETIME(3), c BIT(9), d CHAR(5), e DECIMAL(10,2)"
    new = ("a DECIMAL(10,3)", "b DATETIME(4)", "c BIT(10)", "d CHAR(6)", "e DECIMAL(11,2)")
    server.sql(f"DROP TABLE {DATABASE}.small")
    server.sql(f"CREATE TABLE {DATABASE}.small ({old})")
    snapshot = capture(server, DATABASE, "small")
    assert [] == select(server, snapshot)
    for column in new:
        server.sql(f"ALTER TABLE {DATABASE}.small MODIFY {column}")
        with pytest.raises(TableChanged, match=rf"{DATABASE}\.small\.{column[0]}"):
            select(server, snapshot)
        before = next(each for each in old.split(", ") if each[0] == column[0])
        server.sql(f"ALTER TABLE {DATABASE}.small MODIFY {before}")


@some
def test_errors_amid_rows_are_the_servers_own(server: Server, table: Snapshot, connection: Any) -> None:
    late = f"IF(k < {ROWS - 10}, 1, (SELECT n FROM {DATABASE}.ten WHERE n < k))"
    with pytest.raises(SourceError, match=r"error 1242: Subquery returns more than 1 row"):
        list(reading(connection, server, table, where=late))
    assert not connection.open


@some
def test_a_predicate_that_is_none_is_the_servers_error(server: Server, table: Snapshot) -> None:
    with pytest.raises(SourceError, match=r"error 1064"):
        select(server, table, where="k <> ) OR (")
    with pytest.raises(SourceError, match=r"a predicate with parameters"):
        select(server, table, where="k < ?")


def _run_and_kill(server: Server, table: Snapshot, connection: Any, kill: str) -> None:
    ended = threading.Event()

    def killed() -> None:
        while not ended.wait(0.05):
            with contextlib.suppress(Exception):
                server.sql(f"{kill} {connection.thread_id()}")

    thread = threading.Thread(target=killed)
    thread.start()
    try:
        list(reading(connection, server, table, where="SLEEP(0.01) = 0 OR k < 0"))
    finally:
        ended.set()
        thread.join()


@some
def test_a_connection_that_is_killed_is_lost(server: Server, table: Snapshot, connection: Any) -> None:
    with pytest.raises(ConnectionLost):
        _run_and_kill(server, table, connection, "KILL")


@some
def test_a_query_that_is_killed_may_be_tried_again(server: Server, table: Snapshot, connection: Any) -> None:
    with pytest.raises((SelectInterrupted, SourceError)) as caught:
        _run_and_kill(server, table, connection, "KILL QUERY")
    assert isinstance(caught.value, SelectInterrupted)
    assert caught.value.retryable


@some
def test_a_table_that_is_locked_is_tried_later(server: Server, small: Snapshot, connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION lock_wait_timeout = 1")
    with contextlib.closing(server.connect()) as other, other.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {DATABASE}.small WRITE")
        with pytest.raises(SelectInterrupted, match="error 1205"):
            list(reading(connection, server, small))


def test_a_user_without_the_right_to_select_is_told_so(mysql9: Server) -> None:
    mysql9.sql("CREATE DATABASE unseen")
    mysql9.sql("CREATE TABLE unseen.t (k INT)")
    mysql9.sql("CREATE USER blind IDENTIFIED BY 'x'")
    with pytest.raises(SourceError, match=r"may not read the table.*GRANT SELECT"):
        select(replace(mysql9, user="blind", password="x"), capture(mysql9, "unseen", "t"))
    mysql9.sql("DROP USER blind")


@some
def test_memory_is_that_of_a_chunk(server: Server, table: Snapshot, connection: Any) -> None:
    tracemalloc.start()
    try:
        rows = sum(chunk.rows.num_rows for chunk in reading(connection, server, table, max_chunk_rows=2_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ROWS == rows
    assert peak < 8 << 20
