"""Sockets read in bulk: many bytes at once, and the last few of them without a wait."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.readers.binlog.transport.bulk_socket import BulkSocket

MANY_BYTES = 8 << 20


@pytest.fixture
def ends() -> Iterator[tuple[Any, socket.socket]]:
    """A connection as the library has it, and the server's end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        server, _ = listening.accept()
    with client, server:
        yield SimpleNamespace(_sock=client, _read_timeout=7), server


def test_the_last_bytes_are_there_as_soon_as_they_come(ends: tuple[Any, socket.socket]) -> None:
    connection, server = ends
    bulk = BulkSocket(connection, 30)
    room = memoryview(bytearray(MANY_BYTES))

    def sent() -> None:
        server.sendall(bytes(MANY_BYTES))
        time.sleep(0.2)
        server.sendall(b"end")

    thread = threading.Thread(target=sent)
    begin = time.monotonic()
    thread.start()
    taken = 0
    while taken < MANY_BYTES + 3:
        taken += bulk.receive(room)
    thread.join()

    assert MANY_BYTES + 3 == taken
    assert time.monotonic() - begin < 10
    bulk.give_back()
    assert 7 == connection._sock.gettimeout()
    server.close()
    assert 0 == bulk.receive(room)


def test_a_silent_server_is_waited_for_no_longer_than_said(ends: tuple[Any, socket.socket]) -> None:
    bulk = BulkSocket(ends[0], 0.05)

    assert not bulk.wait(0)
    with pytest.raises(TimeoutError, match=r"no byte came within 0\.05 s"):
        bulk.receive(memoryview(bytearray(10)))
    ends[1].sendall(b"x")
    assert bulk.wait(5)
