"""A reader never has more connections at its server than it needs: counted there, on every server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from connectors.readers.base import Bound
from connectors.readers.binlog import server_reader as module
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.readers.binlog.transport import dump
from connectors.readers.binlog.transport.connection import ConnectionLost, ServerAddress
from databases.servers import Server
from historian.errors import SourceError
from historian.positions import LogPosition

USER = "counted"


@pytest.fixture
def address(server: Server) -> Iterator[ServerAddress]:
    """Of a user of its own, so that others' connections do not count."""
    server.sql(f"DROP USER IF EXISTS {USER}")
    server.sql(f"CREATE USER {USER} IDENTIFIED BY 'x'")
    server.sql(f"GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO {USER}")
    if server.flavor == "mariadb":
        server.sql(f"GRANT BINLOG MONITOR ON *.* TO {USER}")
    yield ServerAddress(host=server.host, port=server.port, user=USER, password="x")
    server.sql(f"DROP USER {USER}")


def _dumps(server: Server) -> int:
    rows = server.sql("SELECT command FROM information_schema.processlist WHERE user = %s", USER)
    return sum("Binlog Dump" in str(row[0]) for row in rows)


def _settled(server: Server, expected: int, within_s: float = 5) -> int:
    """How many dumps there are, as soon as they are as many as *expected*."""
    until = time.monotonic() + within_s
    while (found := _dumps(server)) != expected and time.monotonic() < until:
        time.sleep(0.05)
    return found


def _follow(reader: BinlogServerReader, position: LogPosition, turns: int, timeout_s: float = 0.05) -> LogPosition:
    """What a run does at the log's end: look whether there is more, then wait. Gives the position that it has come to."""
    for _ in range(turns):
        bounds = [item for item in reader.scan(position) if isinstance(item, Bound)]
        position = bounds[-1].position if bounds else position
        reader.wait(position, timeout_s)
    return position


@pytest.mark.parametrize("rotations", [0, 3])
def test_an_idle_run_has_one_dump_through_rotations_and_none_when_it_has_ended(
    server: Server, address: ServerAddress, rotations: int
) -> None:
    reader = BinlogServerReader(address, flavor=server.flavor)
    reader.take_over("shop")
    position = reader.end()
    most = 0
    for _ in range(rotations + 1):
        position = _follow(reader, position, 5)
        most = max(most, _dumps(server))
        server.sql("FLUSH BINARY LOGS")
    _follow(reader, position, 20, timeout_s=0.02)

    assert (1, 1) == (most, _settled(server, 1))
    reader.close()
    assert 0 == _settled(server, 0)


def test_a_purge_of_the_file_that_is_waited_in_leaves_one_dump(server: Server, address: ServerAddress) -> None:
    reader = BinlogServerReader(address, flavor=server.flavor)
    position = reader.end()
    reader.wait(position, 0.05)
    server.sql("FLUSH BINARY LOGS")
    newest = server.sql("SHOW BINARY LOGS")[-1][0]
    reader.wait(position, 0.2)
    server.sql("PURGE BINARY LOGS TO %s", newest)
    for _ in range(5):
        reader.wait(position, 0.05)

    assert 1 == _settled(server, 1)
    reader.close()
    assert 0 == _settled(server, 0)


def test_what_comes_behind_a_rotation_ends_the_wait(server: Server, address: ServerAddress) -> None:
    reader = BinlogServerReader(address, flavor=server.flavor)
    position = reader.end()
    reader.wait(position, 0.05)
    server.sql("FLUSH BINARY LOGS")
    reader.wait(position, 0.2)
    server.sql("CREATE DATABASE rings")
    began = time.monotonic()
    reader.wait(position, 30)
    waited_s = time.monotonic() - began
    server.sql("DROP DATABASE rings")

    assert waited_s < 30
    assert [] != list(reader.scan(position))
    assert 0 == _settled(server, 0)
    reader.close()


def test_a_position_that_was_woken_for_without_a_plan_is_not_dumped_again(
    server: Server, address: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a server may send that brings no plan, it is asked for at the pace of a timer."""
    reader = BinlogServerReader(address, flavor=server.flavor)
    position = reader.end()
    begun: list[object] = []
    original = reader._dump
    monkeypatch.setattr(reader, "_dump", lambda begin: begun.append(begin) or original(begin))
    server.sql("CREATE DATABASE again")
    for _ in range(5):
        reader.wait(position, 0.05)
    server.sql("DROP DATABASE again")
    reader.close()

    assert 1 == len(begun)


def test_an_idle_server_is_dumped_once_behind_a_rotation(
    server: Server, address: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a new file begins with is no transaction, however often one looks; one that comes is found."""
    reader = BinlogServerReader(address, flavor=server.flavor)
    position = reader.end()
    server.sql("FLUSH BINARY LOGS")
    position = _follow(reader, position, 2)
    reader.wait(position, 0.05)
    begun: list[object] = []
    original = reader._dump
    monkeypatch.setattr(reader, "_dump", lambda begin: begun.append(begin) or original(begin))
    _follow(reader, position, 5)

    assert [] == begun
    server.sql("CREATE DATABASE behind")
    assert position != _follow(reader, position, 1)
    server.sql("DROP DATABASE behind")
    reader.close()


def test_a_closed_socket_is_noticed_by_an_idle_server(
    server: Server, address: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "HEARTBEAT_S", 0.25)
    reader = BinlogServerReader(address, flavor=server.flavor)
    position = reader.end()
    reader.wait(position, 0.05)
    assert reader._waiting is not None
    reader._waiting[1].close()  # as the end of a process does: without a word to the server
    reader._waiting = None

    assert 0 == _settled(server, 0, within_s=10)
    reader.close()


def test_a_wait_outlives_heartbeats(server: Server, address: ServerAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump, "HEARTBEAT_S", 0.25)
    reader = BinlogServerReader(address, flavor=server.flavor)
    position = reader.end()
    _follow(reader, position, 1, timeout_s=0.8)

    assert reader._woken_at is None
    assert 1 == _dumps(server)
    reader.close()


def test_the_dump_of_a_run_that_was_killed_is_ended_by_the_next_one(server: Server, address: ServerAddress) -> None:
    killed = BinlogServerReader(address, flavor=server.flavor)
    killed.take_over("shop")
    killed.wait(killed.end(), 0.05)
    other = BinlogServerReader(address, flavor=server.flavor)
    other.take_over("another")
    other.wait(other.end(), 0.05)
    assert 2 == _dumps(server)

    after = BinlogServerReader(address, flavor=server.flavor)
    after.take_over("shop")

    assert 1 == _settled(server, 1)
    other.wait(other.end(), 0.05)
    with pytest.raises(ConnectionLost):
        killed.wait(killed.end(), 5)
    for each in (killed, other, after):
        each.close()
    assert 0 == _settled(server, 0)


def test_a_defect_cannot_take_all_connections_of_a_server(mysql9: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DUMPS", 3)
    address = ServerAddress(host=mysql9.host, port=mysql9.port, user=mysql9.user, password=mysql9.password)
    with contextlib.closing(BinlogServerReader(address, flavor="mysql")) as reader:
        end = reader.end()
        opened = [reader._stream(end.file, end.offset) for _ in range(3)]
        with pytest.raises(SourceError, match="too many dumps open"):
            reader._stream(end.file, end.offset)
        opened.pop().close()
        opened.append(reader._stream(end.file, end.offset))
        for each in opened:
            each.close()


def test_a_reader_that_was_interrupted_in_a_question_asks_no_other_one_on_that_connection(
    mysql9: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next answer there is that of the question before."""
    address = ServerAddress(host=mysql9.host, port=mysql9.port, user=mysql9.user, password=mysql9.password)
    reader = BinlogServerReader(address, flavor="mysql")
    reader.wait(reader.end(), 0.05)
    asked: list[object] = []
    monkeypatch.setattr(reader._connection, "query", lambda *arguments: asked.append(arguments))
    reader._asks = True
    reader.close()

    assert [] == asked
    assert 0 == len([row for row in mysql9.sql("SHOW PROCESSLIST") if "Dump" in str(row[4]) and row[1] == USER])
    assert reader.end() is not None
    reader.close()
