"""Logs of real servers that compress what they write: rows, positions and places are those of plain logs."""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from connectors.readers.base import Statement, TableMapped
from connectors.readers.binlog.log_reader import BinlogReader
from connectors.readers.binlog.transport.unpacking import unpacked
from databases.servers import Server, start_server
from historian.plans.plans import PlannedTable
from historian.positions import LogPosition
from logs.binlog_lab import (
    bounds_of,
    events,
    files_reader,
    live_reader,
    only_gtids,
    only_place,
    planned_tables,
    range_of,
    run,
    scanned,
)
from logs.decoder_lab import changes

TABLE = """
    CREATE TABLE packed.t (id INT PRIMARY KEY, v VARCHAR(3000), d DECIMAL(20, 6), dt DATETIME(6), b MEDIUMBLOB,
        u BIGINT UNSIGNED NOT NULL)
"""
ROWS = "SELECT id, v, d, dt, b, u FROM packed.t"
MEGABYTE = 1 << 20
PACKED = (40, 165, 166, 167, 168)
MYSQL_ON = "SET SESSION binlog_transaction_compression = ON"
MARIADB_ON = "SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10"
MARIADB_OFF = "SET GLOBAL log_bin_compress = OFF"


@pytest.fixture(scope="module", params=["mysql8", "mysql9", "mariadb105", "mariadb1011", "mariadb118"])
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that these tests may restart."""
    server = start_server(request.param, tmp_path_factory.mktemp(request.param), "max_allowed_packet=256M")
    run(server, "CREATE DATABASE packed", TABLE)
    yield server
    server.kill()
    assert server.directory is not None
    shutil.rmtree(server.directory / "data")


@pytest.fixture
def reader(own: Server) -> Iterator[BinlogReader]:
    run(own, "DELETE FROM packed.t")
    with contextlib.closing(live_reader(own)) as reader:
        yield reader


@contextlib.contextmanager
def compressing(server: Server) -> Iterator[Callable[[str], Any]]:
    """Runs statements on a connection whose transactions are logged compressed."""
    if server.flavor == "mariadb":
        run(server, MARIADB_ON)
    try:
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            if server.flavor == "mysql":
                cursor.execute(MYSQL_ON)
            yield cursor.execute
    finally:
        if server.flavor == "mariadb":
            run(server, MARIADB_OFF)


def change(execute: Callable[[str], Any], random: Random) -> None:
    """One transaction of random changes."""
    execute("BEGIN")
    for _ in range(random.randint(1, 6)):
        first = random.randrange(200)
        kind = random.randrange(4)
        if kind == 0:
            execute(f"DELETE FROM packed.t WHERE id BETWEEN {first} AND {first + random.randrange(5)}")
        elif kind == 1:
            execute(f"UPDATE packed.t SET v = REPEAT('{first}', {first}), d = d - 1 WHERE id >= {first}")
        elif kind == 2:
            execute("SAVEPOINT a_name_that_is_long_enough_to_be_compressed")
            execute(f"REPLACE INTO packed.t (id, u) VALUES ({first}, 1)")
            execute("ROLLBACK TO a_name_that_is_long_enough_to_be_compressed")
        else:
            rows = ",".join(
                f"({key}, REPEAT('\u00e9{key}', {random.randrange(60)}), {random.uniform(-1e9, 1e9):.6f},"
                f" '2024-02-29 01:02:03.{random.randrange(10**6):06d}',"
                f" {random.choice(['NULL', '0x00ff', 'REPEAT(0x00, 5000)', f'0x{random.randbytes(700).hex()}'])},"
                f" {random.choice([0, 2**64 - 1])})"
                for key in range(first, first + random.randint(1, 40))
            )
            execute(f"REPLACE INTO packed.t VALUES {rows}")
    execute(random.choice(["COMMIT", "COMMIT", "ROLLBACK"]))


def read(reader: BinlogReader, start: LogPosition, tables: tuple[PlannedTable, ...]) -> list[Any]:
    """All changes behind *start*, range by range as the scan cuts the log."""
    bounds = [start, *bounds_of(scanned(reader, start))]
    found: list[Any] = []
    snapshot = tables[0].versions[-1].snapshot
    assert snapshot is not None
    for one, two in pairwise(bounds):
        if one.file == two.file and one.offset < two.offset:
            found += changes(reader.read(range_of(one, two), tables), snapshot, snapshot.table_id)
    return found


def remaining(rows: list[Any]) -> Counter[tuple[Any, ...]]:
    """What the changes leave of a table that was empty."""
    left: Counter[tuple[Any, ...]] = Counter()
    for sign, *values in rows:
        left[tuple(values)] += 1 if sign.startswith("+") else -1
    return Counter({row: count for row, count in left.items() if count})


def test_compressed_changes_leave_what_the_table_holds(own: Server, reader: BinlogReader) -> None:
    start = reader.end()
    random = Random(own.name)
    for compressed in (True, False, True):
        with contextlib.ExitStack() as stack:
            if compressed:
                execute = stack.enter_context(compressing(own))
            else:
                execute = stack.enter_context(stack.enter_context(contextlib.closing(own.connect())).cursor()).execute
            for _ in range(12):
                change(execute, random)
        own.restart()
    kinds = Counter(event[4] for _, _, event in events(reader, start))
    assert sum(kinds[kind] for kind in PACKED) > 10
    tables = planned_tables(own, "packed.t")
    live = read(reader, start, tables)
    files = files_reader(own)
    assert live == read(files, only_place(start), tables)
    assert remaining(live) == Counter(own.sql(ROWS))
    assert len(live) > 300


def test_positions_in_a_compressed_log_are_found_in_all_ways(own: Server, reader: BinlogReader) -> None:
    start = reader.end()
    random = Random(3)
    ends = []
    with compressing(own) as execute:
        for _ in range(12):
            change(execute, random)
            ends.append(reader.end())
    bounds = bounds_of(scanned(reader, start))
    assert bounds[-1] == ends[-1]
    for end in ends:
        assert reader.locate(only_place(end)) == end
        assert reader.locate(only_gtids(end)) == end
        (stop,) = (item for item in bounds_of(scanned(reader, start, until=end))[-1:] or [start])
        assert stop == end
        assert files_reader(own).locate(only_gtids(end)).offset == end.offset
        assert files_reader(own).locate(only_place(end)).gtids == end.gtids


def test_a_compressed_transaction_has_the_events_of_the_plain_one(own: Server, reader: BinlogReader) -> None:
    """Ordinals are what remains of places inside a payload."""
    tables = planned_tables(own, "packed.t")
    statements = (
        "REPLACE INTO packed.t (id, v, u) VALUES (1, REPEAT('a', 300), 7), (2, REPEAT('b', 300), 8)",
        "UPDATE packed.t SET v = REPEAT('c', 299)",
        "DELETE FROM packed.t",
    )
    found = []
    for compressed in (True, False):
        start = reader.end()
        with contextlib.ExitStack() as stack:
            if compressed:
                execute = stack.enter_context(compressing(own))
            else:
                execute = stack.enter_context(stack.enter_context(contextlib.closing(own.connect())).cursor()).execute
            for statement in ("BEGIN", *statements, "COMMIT"):
                execute(statement)
        end = reader.end()
        rows = [
            row
            for chunk in reader.read(range_of(start, end), tables)
            for row in chunk.rows.drop_columns(["sequence", "event_time", "source"]).to_pylist()
        ]
        maps = [item.place.ordinal for item in scanned(reader, start) if isinstance(item, TableMapped)]
        found.append((rows, maps))
    assert found[0] == found[1]
    assert [row["op"] for row in found[0][0]] == [0, 0, 2, 3, 2, 3, 1, 1]


def test_statements_of_a_compressed_log_are_whole(own: Server, reader: BinlogReader) -> None:
    start = reader.end()
    comment = "\u00e9c" * 400
    with compressing(own) as execute:
        execute(f"ALTER TABLE packed.t COMMENT '{comment}'")
        execute("CREATE TABLE packed.copy SELECT * FROM packed.t")
        execute("DROP TABLE packed.copy")
    kinds = {event[4] for _, _, event in events(reader, start)}
    assert own.flavor == "mysql" or 165 in kinds
    for each in (reader, files_reader(own)):
        begin = start if each is reader else only_place(start)
        sql = [item.sql for item in scanned(each, begin) if isinstance(item, Statement)]
        assert sql[0] == f"ALTER TABLE packed.t COMMENT '{comment}'"
        assert [text.split()[:2] for text in sql[1:]] == [["CREATE", "TABLE"], ["DROP", "TABLE"]]
        assert bounds_of(scanned(each, begin))[-1].gtids == reader.end().gtids


def test_a_large_payload_comes_in_several_windows(mysql8: Server) -> None:
    run(mysql8, "CREATE DATABASE packed", TABLE)
    with contextlib.closing(live_reader(mysql8)) as reader:
        start = reader.end()
        with compressing(mysql8) as execute:
            execute("SET SESSION cte_max_recursion_depth = 100000")
            execute("BEGIN")
            execute(
                "INSERT INTO packed.t (id, b, u) WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n"
                " WHERE i < 20000) SELECT i, REPEAT('x', 5000), i FROM n"
            )
            execute(f"INSERT INTO packed.t (id, b, u) VALUES (0, REPEAT('y', {14 * MEGABYTE}), 0)")
            execute("DELETE FROM packed.t WHERE id % 2")
            execute("COMMIT")
        (payload,) = (event for _, _, event in events(reader, start) if event[4] == 40)
        assert len(payload) < 10 * MEGABYTE
        with contextlib.closing(reader._stream(start.file, start.offset)) as stream:
            sizes = [int((window.ends - window.starts).sum()) for window in unpacked(stream.windows())]
        assert sum(sizes) > 150 * MEGABYTE
        assert max(sizes) < 64 * MEGABYTE
        found = read(reader, start, planned_tables(mysql8, "packed.t"))
    assert len(found) == 30_001
    assert remaining(found) == Counter(mysql8.sql(ROWS))
    run(mysql8, "DROP DATABASE packed")
