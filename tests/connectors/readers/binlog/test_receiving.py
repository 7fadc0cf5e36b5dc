"""Bytes of a connection, many at a time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from connectors.readers.binlog.receiving import Receiver

MANY = 1 << 20


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    with one, other:
        yield one, other


def taken(receiver: Receiver, size: int, *, sure: bool) -> bytes:
    found, room = b"", memoryview(bytearray(3 * MANY))
    while len(found) < size:
        count = receiver.take(room, size - len(found) if sure else None)
        assert count
        found += room[:count].tobytes()
    return found


@pytest.mark.parametrize("sure", [False, True])
def test_all_bytes_come_in_order_whether_it_is_known_how_many_or_not(
    pair: tuple[socket.socket, socket.socket], sure: bool
) -> None:
    data = bytes(range(251)) * 40_000 + b"the end"
    sender = threading.Thread(target=pair[1].sendall, args=(data,))
    sender.start()
    receiver = Receiver(pair[0], 10.0)
    assert taken(receiver, len(data), sure=sure) == data
    sender.join()


def test_who_has_sent_much_and_then_little_is_not_waited_for_until_there_is_much(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    receiver = Receiver(pair[0], 10.0)
    receiver._wanted_bytes = MANY
    pair[1].sendall(b"little")
    assert taken(receiver, 6, sure=False) == b"little"
    assert receiver._wanted_bytes == 1


def test_no_more_is_waited_for_than_there_is_room(pair: tuple[socket.socket, socket.socket]) -> None:
    receiver = Receiver(pair[0], 10.0)
    receiver._wanted_bytes = MANY
    pair[1].sendall(bytes(200))
    assert receiver.take(memoryview(bytearray(100)), None) == 100
    assert receiver._least_bytes == 100


def test_an_end_is_told_and_silence_is_an_error(pair: tuple[socket.socket, socket.socket]) -> None:
    receiver, room = Receiver(pair[0], 0.01), memoryview(bytearray(10))
    receiver._wanted_bytes = MANY
    assert not receiver.waits(0)
    with pytest.raises(TimeoutError):
        receiver.take(room, None)
    pair[1].shutdown(socket.SHUT_WR)
    assert receiver.waits(1)
    assert receiver.take(room, None) == 0
