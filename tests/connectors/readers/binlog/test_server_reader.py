"""The reader of a live server: what happens to its log, its connections and its user."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest

from connectors.readers.base import Statement, TableMapped
from connectors.readers.binlog.events.crosscheck import mismatch
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.readers.binlog.transport.connection import ConnectionLost, TlsSettings, take_server_id
from connectors.readers.binlog.transport.dump import Dump
from databases.replication import follow, wait_for
from databases.servers import Server, start_server
from historian.errors import LogCorrupt, LogPurged, SourceError
from historian.positions import GtidSet, LogPosition
from logs.binlog_lab import (
    address,
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

MEGABYTE = 1 << 20
WRITE_ROWS = (23, 30)


@pytest.fixture(scope="module", params=["mysql9", "mariadb118"])
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose log these tests may purge and whose settings they may change."""
    server = start_server(request.param, tmp_path_factory.mktemp(request.param), "max_allowed_packet=64M")
    run(server, "CREATE DATABASE own", "CREATE TABLE own.t (id INT PRIMARY KEY, v LONGBLOB)")
    yield server
    server.kill()
    assert server.directory is not None
    shutil.rmtree(server.directory / "data")


@pytest.fixture
def reader(own: Server) -> Iterator[BinlogServerReader]:
    with contextlib.closing(live_reader(own)) as reader:
        yield reader


def test_an_event_of_several_packets_comes_whole(own: Server, reader: BinlogServerReader) -> None:
    start = reader.end()
    run(
        own,
        "REPLACE INTO own.t VALUES (2, 'small')",
        f"REPLACE INTO own.t VALUES (1, REPEAT('a', {36 * MEGABYTE}))",
        "REPLACE INTO own.t VALUES (3, 'last')",
    )
    live = events(reader, start)
    assert live == events(files_reader(own), start)
    assert max(len(event) for _, _, event in live) > 36 * MEGABYTE
    assert bounds_of(scanned(reader, start))[-1] == reader.end()
    run(own, "TRUNCATE TABLE own.t")


@pytest.mark.parametrize("mode", ["disabled", "required"])
def test_a_log_that_comes_in_a_stream_is_the_one_in_the_files(own: Server, mode: str) -> None:
    with contextlib.closing(live_reader(own, tls=TlsSettings(mode=mode))) as reader:
        start = reader.end()
        run(own, *(f"REPLACE INTO own.t VALUES ({n}, REPEAT('s', {n * n * n}))" for n in range(40, 120)))
        live = events(reader, start)
        assert live == events(files_reader(own), start)
        assert sum(len(event) for _, _, event in live) > 32 * MEGABYTE
        run(own, "TRUNCATE TABLE own.t")


def test_an_event_of_just_one_full_packet_is_followed_by_an_empty_one(own: Server, reader: BinlogServerReader) -> None:
    start = reader.end()
    run(own, "INSERT INTO own.t VALUES (1, REPEAT('b', 1000))")
    (rows,) = (event for _, _, event in events(reader, start) if event[4] in WRITE_ROWS)
    # A packet holds a zero byte, the event and its checksum; the longest one has 2^24 - 1 bytes.
    longest = (1 << 24) - 1 - 1 - 4 - (len(rows) - 1000)
    for number, length in enumerate((longest - 1, longest, longest + 1), 2):
        run(own, f"INSERT INTO own.t VALUES ({number}, REPEAT('b', {length}))")
    live = events(reader, start)
    assert live == events(files_reader(own), start)
    sizes = [len(event) + 5 for _, _, event in live if event[4] in WRITE_ROWS]
    assert sizes[1:] == [(1 << 24) - 2, (1 << 24) - 1, 1 << 24]
    run(own, "TRUNCATE TABLE own.t")


def test_logs_with_and_without_checksums_read_alike(own: Server, reader: BinlogServerReader) -> None:
    start = reader.end()
    for setting in ("NONE", "CRC32"):
        run(own, f"SET GLOBAL binlog_checksum = {setting}", "INSERT INTO own.t VALUES (1, 'x')", "DELETE FROM own.t")
    run(own, "SET GLOBAL binlog_checksum = NONE", "INSERT INTO own.t VALUES (1, 'x')", "DELETE FROM own.t")
    try:
        deadline_s = time.monotonic() + 5
        # MariaDB writes a checkpoint behind a rotation when its engines hold all of the file before.
        while (live := events(reader, start)) != (written := events(files_reader(own), start)):
            assert time.monotonic() < deadline_s, (live, written)
            time.sleep(0.1)
        assert len({file for file, _, _ in live}) == 4
        last = bounds_of(scanned(reader, start))[-1]
        assert last == reader.end()
        assert replace(last, server="") == files_reader(own).end()
    finally:
        run(own, "SET GLOBAL binlog_checksum = CRC32")


def test_positions_behind_a_purge_are_refused_and_later_ones_not(own: Server, reader: BinlogServerReader) -> None:
    before = reader.end()
    run(own, "INSERT INTO own.t VALUES (1, 'x')", "FLUSH BINARY LOGS", "DELETE FROM own.t")
    kept = reader.end()
    # A log that a dump was just reading is kept until the server notices that nobody reads it any more.
    while reader.start().file != kept.file:
        run(own, f"PURGE BINARY LOGS TO '{kept.file}'")
    for position in (before, only_place(before), only_gtids(before)):
        with pytest.raises(LogPurged, match=r"purged|not in the log") as raised:
            scanned(reader, position)
        assert raised.value.next_step is not None
    with pytest.raises(LogPurged, match="gone, or was never there"):
        list(reader._stream(before.file, before.offset).windows())
    assert reader.start().file == kept.file
    assert reader.locate(reader.start()) == reader.start()
    assert reader.locate(only_gtids(kept)).gtids == kept.gtids
    assert [item for item in scanned(reader, reader.start()) if isinstance(item, TableMapped)]


def test_the_log_goes_on_after_a_restart(own: Server, reader: BinlogServerReader) -> None:
    start = reader.end()
    run(own, "INSERT INTO own.t VALUES (1, 'x')")
    own.restart()
    run(own, "DELETE FROM own.t")
    items = scanned(reader, start)
    assert [str(item.table) for item in items if isinstance(item, TableMapped)] == ["own.t", "own.t"]
    assert bounds_of(items)[-1] == reader.end()
    assert bounds_of(items)[-1].file != start.file


def test_end_is_exact_while_others_write(own: Server, reader: BinlogServerReader) -> None:
    done = threading.Event()

    def write() -> None:
        with contextlib.closing(own.connect()) as connection, connection.cursor() as cursor:
            for number in itertools.count():
                cursor.execute("REPLACE INTO own.t VALUES (%s, %s)", (threading.get_ident() % 1000, number))
                if done.is_set():
                    break

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        ends = [reader.end()]
        while len({end.offset for end in ends}) < 5:
            ends.append(reader.end())
    finally:
        done.set()
        for writer in writers:
            writer.join()
    for end in ends:
        assert reader.locate(only_place(end)) == end
    run(own, "DELETE FROM own.t")


def test_rows_of_a_range_are_the_same_live_and_from_files(own: Server, reader: BinlogServerReader) -> None:
    start = reader.end()
    run(own, "INSERT INTO own.t VALUES (1, 'x'), (2, 'y')", "UPDATE own.t SET v = 'z'", "DELETE FROM own.t")
    planned, tables = range_of(start, reader.end()), planned_tables(own, "own.t")
    live = list(reader.read(planned, tables))
    files = list(files_reader(own).read(replace(planned, server=""), tables))
    assert [chunk.rows.to_pylist() for chunk in live] == [chunk.rows.to_pylist() for chunk in files]
    assert [chunk.rows.column("op").to_pylist() for chunk in live] == [[0, 0, 2, 3, 2, 3, 1, 1]]


def test_a_range_that_the_log_does_not_end_is_refused(own: Server, reader: BinlogServerReader) -> None:
    start = reader.end()
    run(own, "REPLACE INTO own.t VALUES (1, 'x')")
    planned, tables = range_of(start, reader.end()), planned_tables(own, "own.t")
    for end in (planned.end - 1, planned.end + 1000):
        for each in (reader, files_reader(own)):
            with pytest.raises(
                LogCorrupt, match=r"does not end an event where the range ends|ends inside a transaction"
            ):
                list(each.read(replace(planned, end=end, server=each.start().server), tables))


# ---- connections ---------------------------------------------------------------------------------------------------
def test_a_wrong_password_is_named(own: Server) -> None:
    with pytest.raises(SourceError, match="refuses the user or its password") as raised:
        live_reader(own, password="wrong").start()
    assert "wrong" not in str(raised.value)
    assert "wrong" not in repr(address(own, password="wrong"))


def test_a_missing_privilege_is_named_with_its_grant(own: Server) -> None:
    run(own, "CREATE USER nobody@'%' IDENTIFIED BY 'pw'")
    for act in (lambda one: one.start(), lambda one: list(one._stream("", 4).windows())):
        with pytest.raises(SourceError, match="may not") as raised:
            act(live_reader(own, user="nobody", password="pw"))
        assert "GRANT REPLICATION SLAVE, REPLICATION CLIENT" in str(raised.value)
    run(own, "DROP USER nobody@'%'")


def test_nobody_at_location_is_worth_a_retry() -> None:
    from connectors.readers.binlog.transport.connection import ServerAddress

    with pytest.raises(ConnectionLost, match="cannot be reached") as raised:
        ServerAddress(host="127.0.0.1", port=1, user="u", timeout_s=2).connect()
    assert raised.value.retryable


def test_a_server_of_the_other_flavor_is_refused(own: Server) -> None:
    other = "mysql" if own.flavor == "mariadb" else "mariadb"
    with pytest.raises(SourceError, match="another kind"):
        BinlogServerReader(address(own), flavor=other).start()


def test_dumps_are_encrypted_as_asked(own: Server) -> None:
    for mode, encrypted in (("disabled", False), ("preferred", True), ("required", True)):
        with contextlib.closing(live_reader(own, tls=TlsSettings(mode=mode))) as reader:
            assert hasattr(reader._connected()._sock, "cipher") is encrypted  # type: ignore[attr-defined]
            assert events(reader, reader.start())


def test_a_certificate_is_verified_against_its_authority(own: Server) -> None:
    with pytest.raises(SourceError, match="no TLS connection can be made as asked"):
        live_reader(own, tls=TlsSettings(mode="verify_ca")).start()
    if own.flavor == "mysql":
        assert own.directory is not None
        ca = str(own.directory / "data" / "ca.pem")
        assert live_reader(own, tls=TlsSettings(mode="verify_ca", ca=ca)).start().file
        with pytest.raises(SourceError, match="no TLS connection can be made as asked"):
            live_reader(own, tls=TlsSettings(mode="verify_identity", ca=ca)).start()


def test_a_dump_that_is_killed_is_worth_a_retry(own: Server, reader: BinlogServerReader) -> None:
    start = reader.end()
    run(own, *(f"REPLACE INTO own.t VALUES ({number}, REPEAT('k', 4000000))" for number in range(12)))
    with contextlib.closing(reader._stream(start.file, start.offset)) as stream:
        assert isinstance(stream, Dump)
        windows = stream.windows()
        next(windows)
        ((thread,),) = own.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'")
        own.sql(f"KILL {thread}")
        with pytest.raises(ConnectionLost) as raised:
            list(windows)
    assert raised.value.retryable
    run(own, "DELETE FROM own.t")


def test_a_question_survives_a_lost_connection(own: Server, reader: BinlogServerReader) -> None:
    first = reader.start()
    ((thread,),) = reader._ask("SELECT CONNECTION_ID()")
    own.sql(f"KILL {thread}")
    assert reader.start() == first


def test_each_dump_has_a_server_id_of_its_own(own: Server) -> None:
    ids = (5400, 5402)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(contextlib.closing(address(own).connect())) for _ in range(4)]
        assert {take_server_id(connection, ids, "here") for connection in connections[:3]} == {5400, 5401, 5402}
        with pytest.raises(SourceError, match="no server id is free"):
            take_server_id(connections[3], ids, "here")


def test_a_server_id_is_waited_for_until_the_server_has_noticed_that_its_connection_is_closed(own: Server) -> None:
    ids = (5400, 5400)
    one = address(own).connect()
    with contextlib.closing(address(own).connect()) as other:
        take_server_id(one, ids, "here")
        closing = threading.Timer(0.5, one.close)
        closing.start()
        assert take_server_id(other, ids, "here") == 5400
        closing.join()


def test_two_dumps_at_once_do_not_cut_each_other_off(own: Server) -> None:
    with contextlib.closing(live_reader(own, server_ids=(5400, 5401))) as reader:
        start = reader.start()
        with (
            contextlib.closing(reader._stream(start.file, 4)) as one,
            contextlib.closing(reader._stream(start.file, 4)) as other,
        ):
            assert sum(len(window.starts) for window in one.windows()) == sum(
                len(window.starts) for window in other.windows()
            )


# ---- schemas -------------------------------------------------------------------------------------------------------
COLUMNS = """
    t TINYINT UNSIGNED, b BOOL, si SMALLINT, mi MEDIUMINT UNSIGNED, i INT, bi BIGINT UNSIGNED, y YEAR, d DECIMAL(10, 2),
    dw DECIMAL(65, 30) UNSIGNED, f FLOAT, fp FLOAT(7, 3), db DOUBLE, dp DOUBLE(9, 2) UNSIGNED, b1 BIT, b9 BIT(9),
    b64 BIT(64), da DATE, ti TIME, ti3 TIME(3), dt DATETIME, dt6 DATETIME(6), ts TIMESTAMP NULL, ts2 TIMESTAMP(2) NULL,
    c CHAR(1), c10 CHAR(10), c255 CHAR(255) CHARACTER SET utf8mb4, cl CHAR(255) CHARACTER SET latin1, v VARCHAR(10),
    vl VARCHAR(300) CHARACTER SET latin1, vc VARCHAR(9) CHARACTER SET cp1251, bn BINARY(10), vb VARBINARY(20),
    tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB, js JSON,
    e ENUM('a', 'b') NOT NULL, el ENUM('\u00e4', '\u00f6''') CHARACTER SET latin1, s SET('q', 'r'),
    s9 SET('1', '2', '3', '4', '5', '6', '7', '8', '9'), g GEOMETRY, p POINT, gv INT AS (i + 1) VIRTUAL,
    gs INT AS (i + 1) STORED, nn INT NOT NULL, PRIMARY KEY (nn, c10)
"""
HIDDEN = {
    "mysql9": ", inv INT INVISIBLE, ve VECTOR(3), KEY k ((i + 1))",
    "mysql8": ", inv INT INVISIBLE, KEY k ((i + 1))",
}
HIDDEN |= {
    "mariadb105": ", inv INT INVISIBLE, i6 INET6",
    "mariadb1011": ", inv INT INVISIBLE, u UUID, i6 INET6, i4 INET4",
    "mariadb118": ", inv INT INVISIBLE, ve VECTOR(3)",
}


def mapped(server: Server, create: str) -> list[str | None]:
    """What the cross-check says of table ``mapped.t`` with and without metadata."""
    with contextlib.closing(live_reader(server)) as reader:
        start = reader.end()
        run(server, "CREATE DATABASE IF NOT EXISTS mapped", "DROP TABLE IF EXISTS mapped.t", create)
        metadata = (
            ()
            if server.name == "mysql57"
            else ("SET @old = @@GLOBAL.binlog_row_metadata", "SET GLOBAL binlog_row_metadata = FULL")
        )
        back = ("SET GLOBAL binlog_row_metadata = @old",) if metadata else ()
        run(server, "SET sql_mode = ''", *metadata, "INSERT INTO mapped.t () VALUES ()", *back)
        run(server, "SET sql_mode = ''", "UPDATE mapped.t SET nn = nn + 1")
        (table,) = planned_tables(server, "mapped.t")
        snapshot = table.versions[-1].snapshot
        assert snapshot is not None
        maps = [item for item in scanned(reader, start) if isinstance(item, TableMapped)]
        assert len(maps) == (1 if server.name == "mysql57" else 2)
        return [mismatch(snapshot, item.columns, server.flavor) for item in maps]


def test_every_type_fits_its_captured_schema(server: Server) -> None:
    assert mapped(server, f"CREATE TABLE mapped.t ({COLUMNS}{HIDDEN.get(server.name, '')})") == [None] * (
        1 if server.name == "mysql57" else 2
    )


def test_what_columns_are_stored_as_is_no_part_of_their_schema(mariadb1011: Server) -> None:
    run(mariadb1011, "SET GLOBAL mysql56_temporal_format = OFF")
    try:
        found = mapped(
            mariadb1011,
            "CREATE TABLE mapped.t (nn INT PRIMARY KEY, dt DATETIME, t3 TIME(3), ts TIMESTAMP(6) NULL,"
            " v VARCHAR(300) COMPRESSED, b BLOB COMPRESSED, l VARCHAR(9) CHARACTER SET latin1 COMPRESSED)",
        )
    finally:
        run(mariadb1011, "SET GLOBAL mysql56_temporal_format = ON")
    assert found == [None, None]


def test_sql_modes_are_the_servers(server: Server) -> None:
    with contextlib.closing(live_reader(server)) as reader:
        start = reader.end()
        run(server, "CREATE DATABASE IF NOT EXISTS modes")
        expected: dict[str, set[str]] = {}
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            for bit in (0, 1, 2, 3, 5, 6, 7, 18, 19, 20, 21, 25, 27, 29, 30, 31, 32, 33):
                try:
                    cursor.execute(f"SET sql_mode = {1 << bit}")
                except pymysql.err.MySQLError:
                    continue  # a mode that this server has not
                cursor.execute("SELECT @@sql_mode")
                ((names,),) = cursor.fetchall()
                expected[f"ALTER DATABASE modes CHARACTER SET utf8mb4 /* {bit} */"] = set(names.split(","))
                cursor.execute(f"ALTER DATABASE modes CHARACTER SET utf8mb4 /* {bit} */")
        found = {item.sql: item.context.sql_mode for item in scanned(reader, start) if isinstance(item, Statement)}
        for sql, names in expected.items():
            assert found[sql] == names - {"NO_AUTO_CREATE_USER"}
        assert len(expected) >= 15


# ---- GTIDs in other orders -----------------------------------------------------------------------------------------
@pytest.fixture
def mysql(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue("mysql8")
    run(server, "CREATE DATABASE IF NOT EXISTS orders", "CREATE TABLE IF NOT EXISTS orders.t (id INT)")
    return server


def with_gtid(server: Server, gtid: str, *statements: str) -> None:
    run(server, f"SET gtid_next = '{gtid}'", *statements)


OTHER = "aaaaaaaa-0000-0000-0000-000000000000"
THIRD = "bbbbbbbb-0000-0000-0000-000000000000"


def test_transactions_of_the_start_that_stand_later_are_skipped(mysql: Server) -> None:
    with contextlib.closing(live_reader(mysql)) as reader:
        start = reader.end()
        for source, number in ((OTHER, 7), (OTHER, 3), (THIRD, 1), (OTHER, 4), (THIRD, 2), (OTHER, 9)):
            with_gtid(mysql, f"{source}:{number}", f"INSERT INTO orders.t VALUES ({number})")
        end = reader.end()
        held = str(GtidSet.parse(f"{start.gtids},{OTHER}:3-4,{THIRD}:1"))
        for each in (reader, files_reader(mysql)):
            items = scanned(each, LogPosition(flavor="mysql", gtids=held, file="", offset=0))
            bounds = [item for item in items if not isinstance(item, TableMapped)]
            reads = []
            for before, after in itertools.pairwise(bounds):
                if not after.skipped:
                    gained = after.position.gtid_set.subtract(before.position.gtid_set)
                    reads.append((before.position.offset, after.position.offset, str(gained)))
            assert [gained for _, _, gained in reads] == [f"{OTHER}:7", f"{OTHER}:9,{THIRD}:2"]
            assert bounds[-1].position.gtids == end.gtids
            assert bounds[-1].position.offset == end.offset
            # The same from a place with a file, where more of the log has been read than stands before it.
            place = replace(bounds[0].position, gtids=held)
            again = [item for item in scanned(each, place) if not isinstance(item, TableMapped)]
            assert [item.position for item in again] == [item.position for item in bounds[1:]]


def test_a_start_by_gtids_before_transactions_without_gtid_is_refused(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("mysql8")
    run(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT)")
    with contextlib.closing(live_reader(server)) as reader:
        start = reader.end()
        run(server, "SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET gtid_next = 'ANONYMOUS'", "INSERT INTO d.t VALUES (1)")
        with pytest.raises(SourceError, match="without GTID cannot be placed"):
            scanned(reader, only_gtids(start))
        by_place = scanned(reader, start)
        assert [item.place.gtid for item in by_place if isinstance(item, TableMapped)] == [""]
        assert bounds_of(by_place)[-1] == reader.end()


def test_a_server_without_gtids_is_read_by_place(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("mysql57", "gtid_mode=OFF", "enforce_gtid_consistency=OFF")
    with contextlib.closing(live_reader(server)) as reader:
        start = reader.end()
        assert start.gtids == ""
        run(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT)", "FLUSH BINARY LOGS", "INSERT INTO d.t VALUES (1)")
        for each in (reader, files_reader(server)):
            items = scanned(each, replace(start, server=each.start().server))
            assert [item.place.gtid for item in items if not hasattr(item, "position")] == [""] * 3
            last = bounds_of(items)[-1]
            assert last == each.end()
            assert scanned(each, last) == []
            assert each.locate(only_place(last)) == last
        with pytest.raises(SourceError, match="position of another server, without GTIDs"):
            reader.locate(replace(start, server="11111111-2222-3333-4444-555555555555"))


def test_sequence_numbers_that_go_back_are_refused(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("mariadb118", "gtid_strict_mode=OFF")
    run(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT)")
    with contextlib.closing(live_reader(server)) as reader:
        start = reader.end()
        run(
            server,
            "SET gtid_seq_no = 100",
            "INSERT INTO d.t VALUES (1)",
            "SET gtid_seq_no = 50",
            "INSERT INTO d.t VALUES (2)",
        )
        with pytest.raises(SourceError, match="sequence numbers do not ascend"):
            scanned(reader, start)


def test_domains_are_read_each_on_its_own(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("mariadb1011")
    run(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT)")
    with contextlib.closing(live_reader(server)) as reader:
        middle = reader.end()
        for domain in (0, 5, 0, 7, 5):
            run(server, f"SET gtid_domain_id = {domain}", f"INSERT INTO d.t VALUES ({domain})")
        end = reader.end()
        assert [domain for domain, _, _ in end.gtid_set.last] == [0, 5, 7]  # type: ignore[union-attr]
        assert bounds_of(scanned(reader, middle))[-1] == end
        port = server.port
        held = f"{middle.gtids},5-{port}-2"
        items = scanned(reader, LogPosition(flavor="mariadb", gtids=held, file="", offset=0))
        assert bounds_of(items)[-1] == end
        pairs = [(one, two) for one, two in itertools.pairwise(items) if getattr(two, "skipped", False)]
        assert len(pairs) == 2


# ---- failover ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name, of_primary, of_replica",
    [
        ("mysql8", (), ()),
        ("mysql9", ("binlog_transaction_compression=ON",), ()),
        ("mysql8", (), ("binlog_transaction_compression=ON",)),
        ("mariadb105", ("log_bin_compress=ON", "log_bin_compress_min_len=10"), ()),
        ("mariadb1011", (), ("log_bin_compress=ON", "log_bin_compress_min_len=10")),
    ],
)
def test_a_range_is_read_on_the_replica_after_a_failover(
    name: str, of_primary: tuple[str, ...], of_replica: tuple[str, ...], fresh_server: Callable[..., Server]
) -> None:
    primary, replica = fresh_server(name, *of_primary), fresh_server(name, *of_replica)
    # The replica's log is another one: files and offsets differ.
    run(replica, "FLUSH BINARY LOGS")
    statements = (
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))",
        "INSERT INTO d.t VALUES (1, 'a')",
    )
    run(primary, *statements)
    with contextlib.closing(live_reader(primary)) as old, contextlib.closing(live_reader(replica)) as new:
        start = old.end()
        run(primary, "INSERT INTO d.t VALUES (2, 'b')", "UPDATE d.t SET v = 'c'")
        end = old.end()
        run(primary, "DELETE FROM d.t")
        follow(replica, primary)
        wait_for(replica, old.end().gtids)
        planned, tables = range_of(start, end), planned_tables(primary, "d.t")
        here = [chunk.rows.drop_columns(["ordinal"]).to_pylist() for chunk in old.read(planned, tables)]
        there = [chunk.rows.drop_columns(["ordinal"]).to_pylist() for chunk in new.read(planned, tables)]
        assert there == here
        assert sum(len(chunk) for chunk in here) == 5
        position = new.locate(start)
        assert (position.gtids, position.server) == (start.gtids, new.start().server)
        assert bounds_of(scanned(new, start))[-1] == new.end()


def test_a_log_that_was_reset_is_refused(fresh_server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.readers.binlog.server_reader._COMMIT_LAG_S", 0.0)
    server = fresh_server("mysql57")
    run(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT)")
    with contextlib.closing(live_reader(server)) as reader:
        position = reader.end()
        run(server, "RESET MASTER")
        for form in (position, only_gtids(position)):
            with pytest.raises(LogPurged, match="has not executed the position"):
                scanned(reader, form)
        with pytest.raises(LogPurged, match="the log ends before the position"):
            scanned(reader, only_place(position))


def test_files_of_a_server_that_still_writes_are_read_to_the_last_whole_transaction(
    own: Server, tmp_path: Path
) -> None:
    run(own, "FLUSH BINARY LOGS", "REPLACE INTO own.t VALUES (1, 'x')", "REPLACE INTO own.t VALUES (2, 'y')")
    path = own.binlog_files()[-1]
    whole = files_reader(own).end()
    copy = tmp_path / path.name
    from connectors.readers.binlog.files_reader import BinlogFilesReader

    copy.write_bytes(path.read_bytes()[: whole.offset - 5])
    reader = BinlogFilesReader([copy])
    last = bounds_of(scanned(reader, reader.start()))[-1]
    assert last == reader.end()
    assert last.offset < whole.offset
