"""ALTERs that MariaDB logs when they begin and when they end: rows in between are of the table as it was."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pymysql
import pytest

from connectors.readers.base import Statement
from connectors.readers.binlog.server_reader import BinlogServerReader
from databases.servers import Server, start_server
from historian.plans.plans import PlannedTable
from historian.positions import LogPosition
from logs.binlog_lab import (
    bounds_of,
    events,
    files_reader,
    live_reader,
    only_gtids,
    planned_tables,
    range_of,
    run,
    scanned,
)
from logs.decoder_lab import changes

TWO_PHASES = "SET SESSION binlog_alter_two_phase = ON"
ALTER = "ALTER TABLE phases.t ADD COLUMN k INT FIRST, FORCE, ALGORITHM=INPLACE, LOCK=NONE"


@pytest.fixture(scope="module", params=["mariadb1011", "mariadb118"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that these tests may restart."""
    server = start_server(request.param, tmp_path_factory.mktemp(request.param))
    yield server
    server.kill()
    assert server.directory is not None
    shutil.rmtree(server.directory / "data")


@pytest.fixture
def own(running: Server) -> Server:
    """With an empty table."""
    run(running, "DROP DATABASE IF EXISTS phases", "CREATE DATABASE phases")
    run(running, "CREATE TABLE phases.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(300))")
    return running


def write_while(server: Server, statement: str) -> None:
    """Runs *statement* while two others write into the table."""
    done = threading.Event()

    def write() -> None:
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            while not done.is_set():
                cursor.execute("INSERT INTO phases.t (v) VALUES ('during')")

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        run(server, TWO_PHASES, statement)
    finally:
        done.set()
        for writer in writers:
            writer.join()


def phase(event: bytes) -> int:
    """START ALTER 2, COMMIT ALTER 4, ROLLBACK ALTER 8, where the event is one of them."""
    if event[4] != 162:
        return 0
    at = 19 + (21 if event[19 + 12] & 2 else 13)
    return int.from_bytes(event[at : at + 1], "little") & 0x0E


def test_rows_between_start_and_commit_are_of_the_table_before(own: Server) -> None:
    run(own, "INSERT INTO phases.t (v) SELECT REPEAT('x', 200) FROM phases.seq_1_to_60000")
    with contextlib.closing(live_reader(own)) as reader:
        start = reader.end()
        held = Counter(own.sql("SELECT NULL, id, v FROM phases.t"))
        (before,) = planned_tables(own, "phases.t")
        write_while(own, ALTER)
        run(own, "INSERT INTO phases.t (v, k) VALUES ('behind', 7)")
        own.restart()
        (after,) = planned_tables(own, "phases.t")
        logged = events(reader, start)
        begun, committed = (index for index, (_, _, event) in enumerate(logged) if phase(event))
        between = [event for _, _, event in logged[begun:committed] if event[4] in (23, 30)]
        assert len(between) > 5
        for each in (reader, files_reader(own)):
            begin = replace(start, server=each.start().server)
            (statement,) = (item for item in scanned(each, begin) if isinstance(item, Statement))
            assert (statement.sql, statement.place.offset) == (ALTER, logged[committed + 1][1])
            versions = (
                before.versions[0],
                replace(after.versions[0], version=2, place=statement.place),
            )
            rows = read(each, begin, PlannedTable(table_id=before.table_id, versions=versions))
            assert {sign for sign, *_ in rows} == {"+A"}
            found = Counter(tuple(values if len(values) == 3 else (None, *values)) for _, *values in rows)
            assert found + held == Counter(own.sql("SELECT k, id, v FROM phases.t"))


def read(reader: Any, start: LogPosition, table: PlannedTable) -> list[Any]:
    found: list[Any] = []
    for one, two in pairwise([start, *bounds_of(scanned(reader, start))]):
        if one.file == two.file:
            for chunk in reader.read(range_of(one, two), (table,)):
                snapshot = table.versions[chunk.version - 1].snapshot
                found += changes([chunk], snapshot, table.table_id)
    return found


def test_an_alter_that_fails_is_no_statement(own: Server) -> None:
    run(own, "INSERT INTO phases.t (v) VALUES ('a'), ('a')")
    with contextlib.closing(live_reader(own)) as reader:
        start = reader.end()
        with pytest.raises(pymysql.err.MySQLError, match="Duplicate entry"):
            run(own, TWO_PHASES, "ALTER TABLE phases.t ADD UNIQUE KEY (v), ALGORITHM=COPY")
        run(own, "INSERT INTO phases.t (v) VALUES ('b')")
        run(own, TWO_PHASES, "ALTER TABLE phases.t COMMENT 'c', ALGORITHM=COPY")
        assert [phase(event) for _, _, event in events(reader, start) if phase(event)] == [2, 8, 2, 4]
        end = reader.end()
        for each in (reader, files_reader(own)):
            begin = replace(start, server=each.start().server)
            items = scanned(each, begin)
            assert [item.sql for item in items if isinstance(item, Statement)] == [
                "ALTER TABLE phases.t COMMENT 'c', ALGORITHM=COPY"
            ]
            assert bounds_of(items)[-1].gtids == end.gtids


def test_a_scan_may_begin_between_the_phases(own: Server) -> None:
    with contextlib.closing(live_reader(own)) as reader:
        start = reader.end()
        run(own, TWO_PHASES, "ALTER TABLE phases.t COMMENT 'd', ALGORITHM=COPY")
        end = reader.end()
        behind_start = begin_of_commit(reader, start)
        for position in (behind_start, only_gtids(behind_start)):
            (statement,) = (item for item in scanned(reader, position) if isinstance(item, Statement))
            assert statement.place.gtid == end.gtids.split(",")[-1]
        assert bounds_of(scanned(reader, start, until=behind_start))[-1] == behind_start


def begin_of_commit(reader: BinlogServerReader, start: LogPosition) -> LogPosition:
    (offset,) = (offset for _, offset, event in events(reader, start) if phase(event) == 4)
    return reader.locate(LogPosition(flavor="mariadb", gtids="", file=start.file, offset=offset))
