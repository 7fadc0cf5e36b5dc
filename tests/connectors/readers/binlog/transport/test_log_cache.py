"""Short scans of a live server that keep what they read, and the wait for more."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from connectors.readers.base import Bound
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.readers.binlog.transport.log_cache import MAX_KEPT_BYTES
from connectors.readers.room import ROOM
from connectors.tracking.ranges import cut_ranges
from databases.servers import Server
from historian.plans.plans import LogRange
from historian.positions import LogPosition
from logs.binlog_lab import files_reader, live_reader, run, scanned
from logs.decoder_lab import capture, planned


@pytest.fixture(params=["mysql9", "mariadb118"])
def source(request: pytest.FixtureRequest) -> Iterator[Server]:
    server: Server = request.getfixturevalue(request.param)
    run(server, "DROP DATABASE IF EXISTS kept", "CREATE DATABASE kept")
    run(server, "CREATE TABLE kept.t (id INT PRIMARY KEY, v LONGTEXT)")
    yield server
    run(server, "DROP DATABASE kept")


def ranges_of(reader: BinlogServerReader, start: LogPosition, range_bytes: int = 1 << 30) -> tuple[LogRange, ...]:
    """What a plan behind *start* would be read in."""
    return cut_ranges(start, [item for item in scanned(reader, start) if isinstance(item, Bound)], range_bytes)


def test_a_range_that_travels_gives_the_rows_without_a_connection(
    source: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(live_reader(source)) as reader:
        start = reader.end()
        for number in range(5):
            run(
                source,
                f"INSERT INTO kept.t VALUES ({number}, 'text')",
                f"UPDATE kept.t SET v = 'x' WHERE id = {number}",
            )
            if number == 2:
                run(source, "FLUSH BINARY LOGS")
        tables = planned(capture(source, "kept", "t"))
        ranges = ranges_of(reader, start, 1)
        assert len({part.file for part in ranges}) == 2
        expected = [[chunk.rows for chunk in reader.read(part, tables)] for part in ranges]
        kept = [pickle.loads(pickle.dumps(reader.cached(part))) for part in ranges]
    elsewhere = live_reader(source)
    monkeypatch.setattr(BinlogServerReader, "_connected", lambda _: pytest.fail("a connection was asked for"))
    found = [
        [chunk.rows for chunk in elsewhere.read(part, tables, log=log)] for part, log in zip(ranges, kept, strict=True)
    ]
    assert found == expected
    assert sum(rows.num_rows for chunk in expected for rows in chunk) == 15


def test_what_was_not_scanned_is_not_kept(source: Server) -> None:
    with contextlib.closing(live_reader(source)) as reader:
        first = reader.end()
        run(source, "INSERT INTO kept.t VALUES (1, 'a')")
        second = reader.end()
        run(source, "INSERT INTO kept.t VALUES (2, 'b')")
        (part,) = ranges_of(reader, first)
        assert reader.cached(part) is not None
        assert reader.cached(replace(part, server="another")) is None
        assert reader.cached(replace(part, end=part.end + 1)) is None
        list(scanned(reader, second))
        assert reader.cached(part) is None
        run(source, f"INSERT INTO kept.t VALUES (3, REPEAT('c', {MAX_KEPT_BYTES}))")
        (part,) = ranges_of(reader, second)
        assert reader.cached(part) is None
        files = files_reader(source)
        list(scanned(files, replace(second, server="")))
        assert files.cached(replace(part, server="")) is None


def test_a_scan_that_keeps_all_gives_each_range_and_its_memory_back(source: Server) -> None:
    with contextlib.closing(live_reader(source)) as reader:
        start = reader.end()
        for number in range(4):
            run(source, f"INSERT INTO kept.t VALUES ({number}, REPEAT('c', {8 * MAX_KEPT_BYTES}))")
            if number == 2:
                run(source, "FLUSH BINARY LOGS")
        tables = planned(capture(source, "kept", "t"))
        free = _free_bytes()
        reader.keeps_scans = True
        ranges = ranges_of(reader, start, 1)
        assert len(ranges) > len({part.file for part in ranges}) == 2
        assert free - _free_bytes() > 4 * MAX_KEPT_BYTES
        kept = [reader.cached(part) for part in ranges]
        reader.forget()
        assert {None} == {reader.cached(part) for part in ranges}
        expected = [[chunk.rows for chunk in reader.read(part, tables)] for part in ranges]
        found = [
            [chunk.rows for chunk in reader.read(part, tables, log=log)] for part, log in zip(ranges, kept, strict=True)
        ]
        assert found == expected
        assert sum(rows.num_rows for each in found for rows in each) == 4
        assert free == _free_bytes(), "what is read is gone"
        assert kept == [[] for _ in ranges]


def _free_bytes() -> int:
    return ROOM._left_bytes


def test_the_wait_ends_when_something_is_written(source: Server) -> None:
    with contextlib.closing(live_reader(source)) as reader:
        position = reader.end()
        begin = time.monotonic()
        assert not reader.wait(position, 0.2)
        assert time.monotonic() - begin >= 0.2
        writer = threading.Timer(0.1, run, [source, "INSERT INTO kept.t VALUES (1, 'a')"])
        writer.start()
        assert reader.wait(position, 60)
        assert time.monotonic() - begin < 30
        writer.join()
        assert reader.end() != position
        # What stands there already ends it soon; another file brings nothing.
        reader.wait(position, 60)
        position = reader.end()
        run(source, "FLUSH BINARY LOGS")
        assert time.monotonic() - begin < 30
        flushed = time.monotonic()
        reader.wait(position, 0.5)
        assert time.monotonic() - flushed >= 0.5
