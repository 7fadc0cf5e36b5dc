"""Compressed connections to every server: what comes is what comes without, in fewer bytes, and they end as others do."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from connectors.pipeline.signals import Stopping
from connectors.readers.binlog.selected.failures import SelectInterrupted
from connectors.readers.binlog.selected.reading import select_rows
from connectors.readers.binlog.selected.sessions import selecting_connection
from connectors.readers.binlog.transport.compressed_socket import network_socket
from connectors.readers.binlog.transport.connection import ConnectionLost, TlsSettings
from databases.servers import Server, global_setting
from historian.errors import SourceError
from historian.plans.plans import PlannedVersion
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot
from logs.binlog_lab import address, events, files_reader, live_reader, run
from logs.decoder_lab import capture
from logs.selected_lab import typed_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.readers.binlog.transport.connection import ServerAddress

DATABASE = "compressed"
TINY_ROWS = 100_000
LONG_BYTES = 17 << 20
FILL = f"""
INSERT INTO {DATABASE}.tiny SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n, 'a row'
FROM {DATABASE}.ten a, {DATABASE}.ten b, {DATABASE}.ten c, {DATABASE}.ten d, {DATABASE}.ten e
"""
# Redo logs of test servers are too small for rows as long as these.
LONG = f"CREATE TABLE {DATABASE}.long_rows (k INT PRIMARY KEY, v LONGBLOB) ENGINE=MyISAM"
ZLIB, ZSTD = "zlib", "zstd"
some = pytest.mark.parametrize("server", ["mysql8", "mariadb118"], indirect=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Two tables, and where the log of their rows begins."""

    tables: tuple[Snapshot, ...]
    start: LogPosition


@pytest.fixture(scope="session")
def _written() -> dict[str, Written]:
    return {}


@pytest.fixture
def written(server: Server, _written: dict[str, Written]) -> Written:
    """Many tiny rows, a row that takes several packets, and one that cannot be compressed; nobody changes them."""
    if server.name not in _written:
        run(server, f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {DATABASE}.ten (n INT)")
        run(server, f"INSERT INTO {DATABASE}.ten VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
        run(server, f"CREATE TABLE {DATABASE}.tiny (k INT PRIMARY KEY, v VARCHAR(9))", LONG, "FLUSH BINARY LOGS")
        with contextlib.closing(live_reader(server)) as reader:
            start = reader.end()
        noise = "".join(f"{(n * 2654435761) % 2**32:08x}" for n in range(20_000))
        with global_setting(server, "max_allowed_packet", str(64 << 20)):
            run(
                server,
                FILL,
                f"INSERT INTO {DATABASE}.long_rows VALUES (1, REPEAT('long', {LONG_BYTES // 4})), (2, UNHEX('{noise}'))",
            )
        tables = tuple(capture(server, DATABASE, name) for name in ("tiny", "long_rows"))
        _written[server.name] = Written(tables=tables, start=start)
    return _written[server.name]


def _offered(server: Server) -> list[str]:
    newer = server.flavor == "mysql" and not server.version.startswith("5.")
    return [ZLIB, ZSTD] if newer else [ZLIB]


def _modes(server: Server) -> list[str]:
    """TLS modes; older servers have no certificate unless they are given one."""
    return ["disabled", "required"] if server.name in ("mysql9", "mysql8", "mariadb118") else ["disabled"]


def _addresses(server: Server) -> Iterator[ServerAddress]:
    for compression in _offered(server):
        for mode in _modes(server):
            yield address(server, compression=compression, tls=TlsSettings(mode=mode))


def _reading(connection: Any, server: Server, table: Snapshot, where: str = "") -> Iterator[Any]:
    return select_rows(
        connection,
        PlannedVersion(version=7, place=None, edits=(), snapshot=table, segment=3),
        table_id=11,
        where=where,
        flavor=server.flavor,
        position=LogPosition(flavor=server.flavor, gtids="", file="bin.000009", offset=4),
        event_time_us=5,
    )


def _rows(connection: Any, server: Server, table: Snapshot) -> pa.Table | None:
    return typed_rows(_reading(connection, server, table))


def _sent_bytes(connection: Any) -> int:
    """That the server has sent over a connection."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Bytes_sent'")
        return int(cursor.fetchone()[1])


@pytest.fixture
def usual(server: Server, written: Written) -> tuple[list[Any], int]:
    """Rows of each table, and the bytes that they take on the wire without compression."""
    with contextlib.closing(selecting_connection(address(server), server.flavor)) as connection:
        return [_rows(connection, server, table) for table in written.tables], _sent_bytes(connection)


def test_the_same_rows_are_selected_in_fewer_bytes(
    server: Server, written: Written, usual: tuple[list[Any], int]
) -> None:
    rows, usual_bytes = usual
    assert [TINY_ROWS, 2] == [table.num_rows for table in rows]
    for where in _addresses(server):
        with contextlib.closing(selecting_connection(where, server.flavor)) as connection:
            assert bool(getattr(network_socket(connection), "cipher", None)) == (where.tls.mode == "required")
            assert 60 == network_socket(connection).getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            # One connection reads on and on, and is asked in between.
            assert rows == [_rows(connection, server, table) for table in written.tables]
            assert _sent_bytes(connection) < usual_bytes / 5


def test_the_same_events_are_dumped_in_fewer_bytes(server: Server, written: Written) -> None:
    expected = events(files_reader(server), written.start)
    assert max(len(event) for _, _, event in expected) > LONG_BYTES
    log_bytes = sum(len(event) for _, _, event in expected)
    for where in _addresses(server):
        with contextlib.closing(live_reader(server, compression=where.compression, tls=where.tls)) as reader:
            before = _all_sent_bytes(server)
            assert expected == events(reader, written.start)
        assert _all_sent_bytes(server) - before < log_bytes / 4


def _all_sent_bytes(server: Server) -> int:
    return int(server.sql("SHOW GLOBAL STATUS LIKE 'Bytes_sent'")[0][1])


def test_statements_of_several_packets_are_compressed_too(server: Server) -> None:
    long = "long" * (LONG_BYTES // 4)
    with global_setting(server, "max_allowed_packet", str(64 << 20)):
        for where in _addresses(server):
            with contextlib.closing(where.connect()) as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT '{long}', 1")
                assert ((long, 1),) == cursor.fetchall()
                cursor.execute("SHOW SESSION STATUS LIKE 'Bytes_received'")
                assert int((cursor.fetchone() or ("", LONG_BYTES))[1]) < LONG_BYTES // 4


@pytest.mark.parametrize(
    "server, compression, expected",
    [
        ("mysql57", ZSTD, r"expected zstd; found zlib of 5\.7.*set source.compression to zlib or none; MySQL 8\.0\.18"),
        ("mariadb118", ZSTD, r"expected zstd; found zlib of 11\.8.*set source.compression to zlib or none"),
    ],
    indirect=["server"],
)
def test_an_algorithm_that_the_server_does_not_have_is_named(server: Server, compression: str, expected: str) -> None:
    with pytest.raises(SourceError, match=rf"does not offer the compression.*{expected}") as raised:
        address(server, compression=compression).connect()
    assert not getattr(raised.value, "retryable", False)


@pytest.mark.parametrize("server", ["mysql8", "mysql9"], indirect=True)
def test_what_the_server_is_set_to_is_told(server: Server) -> None:
    cases = [
        ("uncompressed", ZLIB, r"expected zlib; found none of .*set source.compression to none"),
        ("zstd", ZLIB, r"expected zlib; found zstd of .*set source.compression to zstd or none"),
        ("zstd", "none", r"takes no connection without compression.*3922.*set source.compression to zlib or zstd"),
    ]
    # The connection that sets it back is one that was there before.
    with contextlib.closing(server.connect()) as stays, stays.cursor() as cursor:
        try:
            for said, asked, expected in cases:
                cursor.execute(f"SET GLOBAL protocol_compression_algorithms = '{said}'")
                with pytest.raises(SourceError, match=expected) as raised:
                    address(server, compression=asked).connect()
                assert not getattr(raised.value, "retryable", False)
        finally:
            cursor.execute("SET GLOBAL protocol_compression_algorithms = DEFAULT")


@some
def test_a_connection_that_is_killed_is_lost(server: Server, written: Written) -> None:
    for kill, error in (("KILL", ConnectionLost), ("KILL QUERY", SelectInterrupted)):
        with contextlib.closing(selecting_connection(address(server, compression=ZLIB), server.flavor)) as connection:
            ended = threading.Event()

            def killed(statement: str, ended: threading.Event = ended) -> None:
                while not ended.wait(0.05):
                    with contextlib.suppress(Exception):
                        server.sql(statement)

            thread = threading.Thread(target=killed, args=(f"{kill} {connection.thread_id()}",))
            thread.start()
            try:
                with pytest.raises(error):
                    list(_reading(connection, server, written.tables[0], "SLEEP(0.01) = 0 OR k < 0"))
            finally:
                ended.set()
                thread.join()


@some
def test_a_reading_that_is_closed_early_leaves_nothing(server: Server, written: Written) -> None:
    connection = selecting_connection(address(server, compression=ZLIB), server.flavor)
    chunks: Any = _reading(connection, server, written.tables[0])
    assert next(chunks).rows.num_rows
    chunks.close()
    assert not connection.open


@pytest.mark.parametrize("mode", ["disabled", "required"])
@some
def test_a_wait_ends_with_what_comes_and_its_dump_can_be_ended(server: Server, mode: str) -> None:
    run(server, f"CREATE DATABASE IF NOT EXISTS {DATABASE}", f"CREATE TABLE {DATABASE}.waited (k INT PRIMARY KEY)")
    compression = _offered(server)[-1]
    with contextlib.closing(live_reader(server, compression=compression, tls=TlsSettings(mode=mode))) as reader:
        position = reader.end()
        begin = time.monotonic()
        reader.wait(position, 0.2)
        assert 0.2 <= time.monotonic() - begin < 2
        assert 1 == _dumps(server)
        for number in range(2):
            waited: list[float] = []
            thread = threading.Thread(target=lambda: waited.append(_seconds_of_wait(reader, position)))  # noqa: B023
            thread.start()
            time.sleep(0.1)
            run(server, f"INSERT INTO {DATABASE}.waited VALUES ({number})")
            thread.join()
            assert waited[0] < 5
            position = reader.end()
        stopping = Stopping()
        threading.Timer(0.1, stopping.set).start()
        for _ in range(2):
            begin = time.monotonic()
            assert not reader.wait(position, 60, stopping)
            assert time.monotonic() - begin < 5
        reader.wait(position, 0)
    until = time.monotonic() + 5
    while _dumps(server) and time.monotonic() < until:
        time.sleep(0.05)
    assert 0 == _dumps(server)
    run(server, f"DROP TABLE {DATABASE}.waited")


def _seconds_of_wait(reader: Any, position: LogPosition) -> float:
    begin = time.monotonic()
    reader.wait(position, 10)
    return time.monotonic() - begin


def _dumps(server: Server) -> int:
    rows = server.sql("SELECT command FROM information_schema.processlist")
    return sum("Binlog Dump" in str(row[0]) for row in rows)


class Cut:
    """An address that leads to *server*, and cuts a connection amid what the server sends."""

    def __init__(self, server: Server, after_bytes: int) -> None:
        self._server, self._left = server, after_bytes
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()

    def close(self) -> None:
        self._thread.join()
        self._listening.close()

    def _carry(self) -> None:
        client, _ = self._listening.accept()
        with client, socket.create_connection((self._server.host, self._server.port)) as server:
            back = threading.Thread(target=_copy, args=(client, server))
            back.start()
            while self._left and (piece := server.recv(self._left)):
                client.sendall(piece)
                self._left -= len(piece)
            for each in (client, server):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)


@pytest.mark.parametrize("after_bytes", [6_000, 12_345])
@some
def test_a_select_that_is_cut_is_lost(server: Server, written: Written, after_bytes: int) -> None:
    with contextlib.closing(Cut(server, after_bytes)) as cut:
        reached = address(server, host="127.0.0.1", port=cut.port, compression=ZLIB, tls=TlsSettings(mode="disabled"))
        connection = selecting_connection(reached, server.flavor)
        with pytest.raises(ConnectionLost) as raised:
            list(_reading(connection, server, written.tables[0]))
    assert raised.value.retryable
