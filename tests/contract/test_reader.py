"""What every reader of a log does, whether a live server or its files hold it."""

from __future__ import annotations

import contextlib
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from connectors.readers.base import Bound, Reader, Scanned, Statement, TableMapped
from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.readers.binlog.log_reader import BinlogReader
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.readers.binlog.transport.connection import ServerAddress
from databases.servers import Server
from historian.errors import LogPurged, SourceError
from historian.names import TableName
from historian.positions import LogPosition


@dataclass(frozen=True)
class Log:
    """A part of a server's log with some of everything in it."""

    server: Server
    start: LogPosition
    end: LogPosition


@dataclass(frozen=True)
class Event:
    """One event as the server itself lists it."""

    file: str
    offset: int
    kind: str
    info: str


def live(server: Server) -> BinlogServerReader:
    address = ServerAddress(host=server.host, port=server.port, user=server.user, password=server.password)
    return BinlogServerReader(address, flavor=server.flavor)


def files(server: Server) -> BinlogFilesReader:
    return BinlogFilesReader(server.binlog_files())


def everything(_table: TableName) -> bool:
    return True


def scanned(reader: Reader, start: LogPosition, **options: object) -> list[Scanned]:
    return list(reader.scan(start, **options))  # type: ignore[arg-type]


def without_server(item: Scanned) -> Scanned:
    return replace(item, position=replace(item.position, server="")) if isinstance(item, Bound) else item


def only_place(position: LogPosition) -> LogPosition:
    return replace(position, gtids="", server="")


def only_gtids(position: LogPosition) -> LogPosition:
    return replace(position, file="", offset=0, server="")


def write_log(server: Server) -> None:
    """DDL and DML as applications do them, over two files."""
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:

        def run(*statements: str) -> None:
            for statement in statements:
                cursor.execute(statement)

        run("DROP DATABASE IF EXISTS contract", "CREATE DATABASE contract", "USE contract")
        run("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(40), g INT AS (id + 1) VIRTUAL, s INT AS (id + 2) STORED)")
        run("CREATE TABLE m (id INT) ENGINE=MyISAM", "CREATE TABLE w (id INT, d LONGBLOB)")
        run("INSERT INTO a (id, v) VALUES (1, 'x'), (2, 'y')", "INSERT INTO m VALUES (1), (2)")
        run("BEGIN", "INSERT INTO m VALUES (3)", "INSERT INTO w VALUES (1, 'x')", "ROLLBACK")
        run("BEGIN", "SAVEPOINT one", "INSERT INTO a (id) VALUES (3)", "SAVEPOINT two", "INSERT INTO a (id) VALUES (4)")
        run("ROLLBACK TO two", "RELEASE SAVEPOINT one", "UPDATE a SET v = 'z'", "DELETE FROM a WHERE id = 1", "COMMIT")
        run("UPDATE a, w SET a.v = 'q', w.d = 'r' WHERE a.id = 2", "FLUSH BINARY LOGS")
        if server.name != "mysql57":
            run("CREATE TABLE b AS SELECT id, v FROM a")
        run(
            "SET time_zone = '+03:00', sql_mode = 'ANSI_QUOTES'",
            'ALTER TABLE "a" ADD COLUMN "ts" TIMESTAMP(6) NULL FIRST',
        )
        run("SET sql_mode = '', binlog_format = STATEMENT", "INSERT INTO w (id) VALUES (7)", "SET binlog_format = ROW")
        run("CREATE TEMPORARY TABLE tmp (i INT)", "INSERT INTO tmp VALUES (1)", "DROP TEMPORARY TABLE tmp")
        run("SET NAMES latin1", "CREATE TABLE contract.`\xe4\xf6` (`\xfc` INT) COMMENT 'na\xefve'".encode("latin1"))  # type: ignore[arg-type]
        run("SET NAMES utf8mb4", "TRUNCATE TABLE w", "DROP TABLE m", "RENAME TABLE a TO c, w TO a")
        run(
            "BEGIN",
            "INSERT INTO c (id) VALUES (10)",
            "INSERT INTO a (id) VALUES (11)",
            "INSERT INTO c (id) VALUES (12)",
            "COMMIT",
        )


@pytest.fixture(scope="module")
def log(server: Server) -> Log:
    start = live(server).end()
    write_log(server)
    return Log(server=server, start=start, end=live(server).end())


@pytest.fixture(params=[live, files])
def reader(request: pytest.FixtureRequest, log: Log) -> Iterator[BinlogReader]:
    with contextlib.closing(request.param(log.server)) as reader:
        yield reader


def own(log: Log, reader: Reader) -> LogPosition:
    """The log's start, as the reader itself would give it."""
    return replace(log.start, server=reader.start().server)


def listed(log: Log) -> list[Event]:
    """The log's events in the server's words, a question mark for each character that ASCII has not."""
    found: list[Event] = []
    with contextlib.closing(log.server.connect(use_unicode=False)) as connection, connection.cursor() as cursor:
        for file, *_ in log.server.sql("SHOW BINARY LOGS"):
            cursor.execute(f"SHOW BINLOG EVENTS IN '{file}'")
            found += [
                Event(
                    file, int(offset), kind.decode().lower(), info.decode("latin1").encode("ascii", "replace").decode()
                )
                for _, offset, kind, _, _, info in cursor.fetchall()
            ]
    keep = [event for event in found if (event.file, event.offset) >= (log.start.file, log.start.offset)]
    return [event for event in keep if (event.file, event.offset) < (log.end.file, log.end.offset)]


NO_STATEMENT = re.compile(r"(BEGIN|COMMIT|ROLLBACK|SAVEPOINT .*|ROLLBACK TO .*|RELEASE .*)$")


def test_statements_are_those_that_the_server_lists(log: Log, reader: BinlogReader) -> None:
    listed_sql = {
        (event.file, event.offset): re.sub(r" /\* xid=\d+ \*/$", "", re.sub(r"^use `\w+`; ", "", event.info))
        for event in listed(log)
        if event.kind == "query" and not NO_STATEMENT.match(event.info)
    }
    found = [item for item in scanned(reader, own(log, reader)) if isinstance(item, Statement)]
    in_ascii = {(item.place.file, item.place.offset): item.sql.encode("ascii", "replace").decode() for item in found}
    assert in_ascii == listed_sql
    assert len(found) == len(listed_sql) >= 12


def test_gtids_are_those_that_the_server_lists(log: Log, reader: BinlogReader) -> None:
    gtid, ordinal, expected = "", 0, {}
    for event in listed(log):
        ordinal += 1
        if event.kind == "gtid":
            match = re.search(r"'([^']+)'|GTID ([\d-]+)", event.info)
            assert match is not None
            gtid, ordinal = match[1] or match[2], 0
        expected[event.file, event.offset] = (gtid, ordinal)
    items = [item for item in scanned(reader, own(log, reader)) if not isinstance(item, Bound)]
    places = {(item.place.file, item.place.offset): (item.place.gtid, item.place.ordinal) for item in items}
    assert places == {place: expected[place] for place in places}


def test_each_tables_first_map_in_a_transaction_behind_a_statement_is_found(log: Log, reader: BinlogReader) -> None:
    expected, seen = [], set()
    for event in listed(log):
        if (event.kind == "query" and not NO_STATEMENT.match(event.info)) or event.kind == "rotate":
            seen.clear()
        elif event.kind == "table_map" and event.info not in seen:
            seen.add(event.info)
            expected.append((event.file, event.offset, event.info.rpartition("(")[2][:-1]))
    items = scanned(reader, own(log, reader))
    maps = [(item.place.file, item.place.offset, str(item.table)) for item in items if isinstance(item, TableMapped)]
    assert maps == expected
    assert len(maps) >= 4


def test_live_log_and_files_give_the_same(log: Log) -> None:
    items = [
        [without_server(item) for item in scanned(make(log.server), only_gtids(log.start))] for make in (live, files)
    ]
    assert items[0] == items[1]


def test_live_log_and_files_give_the_same_events(log: Log) -> None:
    events = []
    for make in (live, files):
        with (
            contextlib.closing(make(log.server)) as reader,
            contextlib.closing(reader._stream(log.start.file, log.start.offset)) as stream,
        ):
            events.append(
                [
                    (window.file, int(offset), window.buffer[start:end].tobytes())
                    for window in stream.windows()
                    for start, end, offset in zip(window.starts, window.ends, window.offsets, strict=True)
                ]
            )
    assert events[0] == events[1]
    assert [(file, offset) for file, offset, _ in events[0]] == sorted((file, offset) for file, offset, _ in events[0])


def test_context_of_a_statement_is_its_sessions(log: Log, reader: BinlogReader) -> None:
    statements = {item.sql: item for item in scanned(reader, own(log, reader)) if isinstance(item, Statement)}
    context = statements['ALTER TABLE "a" ADD COLUMN "ts" TIMESTAMP(6) NULL FIRST'].context
    assert (context.database, "ANSI_QUOTES" in context.sql_mode) == ("contract", True)
    assert context.charset == "utf8mb4"
    assert context.flavor == log.server.flavor
    major, minor, patch = re.match(r"(\d+)\.(\d+)\.(\d+)", log.server.version).groups()  # type: ignore[union-attr]
    assert context.version == int(major) * 10000 + int(minor) * 100 + int(patch)
    assert "CREATE TABLE contract.`\xe4\xf6` (`\xfc` INT) COMMENT 'na\xefve'" in statements


def test_event_times_are_of_the_run(log: Log, reader: BinlogReader) -> None:
    now_s = float(log.server.sql("SELECT UNIX_TIMESTAMP(NOW(6))")[0][0])
    times = [item.event_time_us for item in scanned(reader, own(log, reader)) if isinstance(item, (Bound, Statement))]
    assert all(now_s - 600 < time / 1e6 <= now_s + 1 for time in times)
    assert (any(time % 1_000_000 for time in times)) == (log.server.name in ("mysql8", "mysql9"))


def test_last_bound_is_the_end(log: Log, reader: BinlogReader) -> None:
    last = scanned(reader, own(log, reader))[-1]
    assert isinstance(last, Bound)
    assert last.position == reader.end() == replace(log.end, server=last.position.server)
    assert reader.near_end() == reader.end()


def test_from_the_end_nothing_comes(log: Log, reader: BinlogReader) -> None:
    assert scanned(reader, reader.end()) == []


def test_only_a_server_tells_that_nothing_came(log: Log, reader: BinlogReader) -> None:
    assert isinstance(reader, BinlogFilesReader) == reader.wait(reader.end(), 0.05)


def test_as_much_waits_as_the_files_hold(log: Log, reader: BinlogReader) -> None:
    start = own(log, reader)
    sizes = [int(size) for file, size, *_ in log.server.sql("SHOW BINARY LOGS") if file >= start.file]
    assert reader.waiting_bytes(start) == sum(sizes) - start.offset > 0
    assert reader.waiting_bytes(reader.end()) == 0
    assert reader.waiting_bytes(replace(start, server="another")) == 0


def test_a_bound_stands_before_each_other_item(log: Log, reader: BinlogReader) -> None:
    before: LogPosition | None = own(log, reader)
    gtids: set[str] = set()
    for item in scanned(reader, own(log, reader)):
        if isinstance(item, Bound):
            before = item.position
        elif item.place.gtid not in gtids:
            assert before is not None
            assert not before.gtid_set.contains_gtid(item.place.gtid)
            gtids.add(item.place.gtid)


def test_every_bound_is_found_again_by_its_gtids_and_by_its_place(log: Log, reader: BinlogReader) -> None:
    items = scanned(reader, own(log, reader))
    bounds = [item.position for item in items if isinstance(item, Bound)]
    assert len({bound.file for bound in bounds}) == 2
    tails = {bound: items[index + 1 :] for index, bound in enumerate(bounds)}
    assert tails
    for bound in bounds[:: max(1, len(bounds) // 6)]:
        by_place = reader.locate(only_place(bound))
        assert by_place == bound
        by_gtids = reader.locate(only_gtids(bound))
        assert by_gtids.gtids == bound.gtids
        others = [item for item in scanned(reader, by_gtids) if not isinstance(item, Bound)]
        assert others == [item for item in scanned(reader, bound) if not isinstance(item, Bound)]


def test_behind_one_transaction_stands_what_the_log_has_there(log: Log, reader: BinlogReader) -> None:
    whole = [item for item in scanned(reader, own(log, reader)) if isinstance(item, Statement)]
    for gtid in list(dict.fromkeys(item.place.gtid for item in whole))[::4]:
        place = reader.behind(LogPosition(flavor=log.server.flavor, gtids=gtid, file="", offset=0))
        last = max(index for index, item in enumerate(whole) if item.place.gtid == gtid)
        assert whole[last + 1 :] == [item for item in scanned(reader, place) if isinstance(item, Statement)]
        assert reader.locate(only_gtids(place)).gtids == place.gtids


def test_a_scan_by_gtids_first_says_where_it_begins(log: Log, reader: BinlogReader) -> None:
    first = scanned(reader, only_gtids(log.start))[0]
    assert isinstance(first, Bound)
    assert (first.position.gtids, first.skipped) == (log.start.gtids, True)
    assert first.position.file == log.start.file
    assert first.position.offset <= log.start.offset


def test_a_scan_without_position_begins_at_the_logs_start(log: Log, reader: BinlogReader) -> None:
    nowhere = LogPosition(flavor=log.server.flavor, gtids="", file="", offset=0)
    first = next(iter(reader.scan(nowhere)))
    assert first == Bound(position=reader.start(), event_time_us=0, skipped=True)


def test_limited_scans_add_up_to_the_whole(log: Log, reader: BinlogReader) -> None:
    whole = [item for item in scanned(reader, own(log, reader)) if not isinstance(item, Bound)]
    found: list[Scanned] = []
    position, scans = own(log, reader), 0
    while part := scanned(reader, position, limit_bytes=600):
        last = part[-1]
        assert isinstance(last, Bound)
        assert last.position != position
        position, scans = last.position, scans + 1
        found += [item for item in part if not isinstance(item, Bound)]
    # A map is new to each scan, so a table may be named again.
    assert [item for item in found if isinstance(item, Statement)] == [
        item for item in whole if isinstance(item, Statement)
    ]
    assert {item for item in found if isinstance(item, TableMapped)} >= {
        item for item in whole if isinstance(item, TableMapped)
    }
    assert scans >= 5


@pytest.mark.parametrize("form", [only_gtids, only_place])
def test_a_scan_ends_at_until(log: Log, reader: BinlogReader, form: object) -> None:
    whole = scanned(reader, own(log, reader))
    bounds = [item for item in whole if isinstance(item, Bound)]
    for bound in bounds[1::5]:
        assert callable(form)
        part = scanned(reader, own(log, reader), until=form(bound.position))
        last = part[-1]
        assert isinstance(last, Bound)
        assert last.position.gtids == bound.position.gtids
        before = [item for item in whole[: whole.index(bound)] if not isinstance(item, Bound)]
        assert [item for item in part if not isinstance(item, Bound)] == before


def test_until_that_is_reached_gives_nothing(log: Log, reader: BinlogReader) -> None:
    assert scanned(reader, own(log, reader), until=own(log, reader)) == []


def test_a_place_inside_a_transaction_is_refused(log: Log, reader: BinlogReader) -> None:
    inside = next(event for event in listed(log) if event.kind == "table_map")
    position = LogPosition(flavor=log.server.flavor, gtids="", file=inside.file, offset=inside.offset)
    with pytest.raises(SourceError, match="no transaction ends at the position"):
        reader.locate(position)


def test_gtids_that_were_never_executed_are_refused(
    log: Log, reader: BinlogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.readers.binlog.server_reader._COMMIT_LAG_S", 0.0)
    gtids = "7-7-7" if log.server.flavor == "mariadb" else "11111111-2222-3333-4444-555555555555:1-5"
    with pytest.raises(LogPurged, match="has not executed the position"):
        reader.locate(LogPosition(flavor=log.server.flavor, gtids=gtids, file="", offset=0))
    with pytest.raises(LogPurged, match="has not executed the position"):
        reader.behind(LogPosition(flavor=log.server.flavor, gtids=gtids[:38], file="", offset=0))


def test_a_file_that_is_not_in_the_log_is_refused(log: Log, reader: BinlogReader) -> None:
    with pytest.raises(LogPurged, match="file is not in the log"):
        reader.locate(LogPosition(flavor=log.server.flavor, gtids="", file="binlog.999999", offset=4))


def test_a_position_of_the_other_flavor_is_refused(log: Log, reader: BinlogReader) -> None:
    other = "mysql" if log.server.flavor == "mariadb" else "mariadb"
    with pytest.raises(SourceError, match="another kind of server"):
        reader.locate(LogPosition(flavor=other, gtids="", file="", offset=0))


def test_a_reader_travels(log: Log, reader: BinlogReader) -> None:
    with contextlib.closing(pickle.loads(pickle.dumps(reader))) as copy:
        assert copy.end() == reader.end()
