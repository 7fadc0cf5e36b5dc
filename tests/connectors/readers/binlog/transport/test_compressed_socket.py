"""Packets in compressed frames: what is taken from the wire in whatever pieces, what is sent, and frames that are wrong."""

from __future__ import annotations

import contextlib
import pickle
import random
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from connectors.readers.binlog.transport.bulk_socket import BulkSocket
from connectors.readers.binlog.transport.compressed_socket import CompressedSocket, FrameCorrupt
from connectors.readers.binlog.transport.connection import ConnectionLost
from connectors.readers.binlog.transport.dump import Dump
from historian.errors import SourceError

ALGORITHMS = ["zlib", "zstd"]
PLAIN = b"".join(b"row %d of a table, " % number for number in range(20_000))


def packed(algorithm: str, data: bytes) -> bytes:
    return zlib.compress(data) if algorithm == "zlib" else pa.Codec("zstd").compress(data, asbytes=True)  # type: ignore[no-any-return]


def frame(algorithm: str, data: bytes, *, size: int | None = None, number: int = 0) -> bytes:
    """A frame that says that it unpacks to *size* bytes; 0: it is not compressed."""
    size = len(data) if size is None else size
    body = packed(algorithm, data) if size else data
    return len(body).to_bytes(3, "little") + bytes([number]) + size.to_bytes(3, "little") + body


@pytest.fixture(params=ALGORITHMS)
def algorithm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def compressed(ours: socket.socket, algorithm: str) -> CompressedSocket:
    return CompressedSocket(ours, algorithm, "u@db:3306")


def bulk_of(ours: Any, silence_s: float = 30) -> BulkSocket:
    connection: Any = SimpleNamespace(_sock=ours, _read_timeout=7)
    return BulkSocket(connection, silence_s)


def sent_in_pieces(theirs: socket.socket, sent: bytes, longest: int) -> threading.Thread:
    choice = random.Random(3)

    def send() -> None:
        at = 0
        while at < len(sent):
            piece = choice.randint(1, longest)
            theirs.sendall(sent[at : at + piece])
            at += piece
        theirs.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.parametrize("longest", [1, 5000])
@pytest.mark.parametrize("room_bytes", [7, 1 << 20])
def test_frames_cut_anywhere_give_the_bytes_they_hold(
    ends: tuple[socket.socket, socket.socket], algorithm: str, longest: int, room_bytes: int
) -> None:
    sent, expected = b"", b""
    for number in range(40):
        data = PLAIN[number * 100 : number * 100 + 3 + number**2]
        sent += frame(algorithm, data, size=0 if number % 3 == 0 else None)
        sent += frame(algorithm, b"", size=0)
        expected += data
    thread = sent_in_pieces(ends[1], sent, longest)
    bulk = bulk_of(compressed(ends[0], algorithm))
    room, found = memoryview(bytearray(room_bytes)), bytearray()
    while taken := bulk.receive(room):
        found += room[:taken]
    thread.join()

    assert expected == bytes(found)


def test_a_frame_of_16_mb_comes_whole(ends: tuple[socket.socket, socket.socket], algorithm: str) -> None:
    data = random.Random(1).randbytes(0xFFFFFF)
    sent = frame(algorithm, data, size=0) + frame(algorithm, bytes(0xFFFFFF)) + frame(algorithm, b"end")
    thread = sent_in_pieces(ends[1], sent, 1 << 20)
    bulk = bulk_of(compressed(ends[0], algorithm))
    room = memoryview(bytearray(2 * 0xFFFFFF + 3))
    fill = 0
    while taken := bulk.receive(room[fill:]):
        fill += taken
        if fill == len(room):
            break
    thread.join()

    assert data + bytes(0xFFFFFF) + b"end" == bytes(room)


def test_the_library_reads_what_it_asks_for(ends: tuple[socket.socket, socket.socket], algorithm: str) -> None:
    thread = sent_in_pieces(ends[1], frame(algorithm, PLAIN) + frame(algorithm, b"end"), 9000)
    with contextlib.closing(compressed(ends[0], algorithm).makefile()) as file:
        found = [file.read(4), file.read(len(PLAIN) - 4), file.read(3), file.read(1)]
    thread.join()

    assert [PLAIN[:4], PLAIN[4:], b"end", b""] == found


def test_what_is_sent_stands_in_numbered_frames(ends: tuple[socket.socket, socket.socket], algorithm: str) -> None:
    ours, theirs = ends
    long = random.Random(2).randbytes(0xFFFFFF)
    packets = [
        b"\x05\x00\x00\x00\x03ping",
        len(PLAIN).to_bytes(3, "little") + b"\0" + PLAIN,
        b"\xff\xff\xff\0" + long,
        b"\x01\x00\x00\x01x",
    ]

    def send() -> None:
        for packet in packets:
            compressed_end.sendall(packet)
        ours.shutdown(socket.SHUT_WR)

    compressed_end = compressed(ours, algorithm)
    thread = threading.Thread(target=send)
    thread.start()
    heads, found = [], b""
    with theirs.makefile("rb") as file:
        while head := file.read(7):
            body = file.read(int.from_bytes(head[:3], "little"))
            size = int.from_bytes(head[4:], "little")
            assert len(body) < (size or len(body) + 1)
            codec = pa.Codec("zstd")
            if size:
                body = zlib.decompress(body) if algorithm == "zlib" else codec.decompress(body, size, asbytes=True)
            heads.append((head[3], len(body), bool(size)))
            found += body
    thread.join()

    # A command begins with frame 0; a packet of 16 MB and its head are longer than a frame can be.
    assert [
        (0, 9, False),
        (0, len(PLAIN) + 4, True),
        (0, 0xFFFFFF, False),
        (1, 4, False),
        (2, 5, False),
    ] == heads
    assert b"".join(packets) == found


def test_bytes_that_are_unpacked_already_need_no_more_from_the_wire(
    ends: tuple[socket.socket, socket.socket], algorithm: str
) -> None:
    ends[1].sendall(frame(algorithm, b"first") + frame(algorithm, b"second") + frame(algorithm, b"third")[:9])
    bulk = bulk_of(compressed(ends[0], algorithm), 0.05)
    assert bulk.wait(5)

    room = memoryview(bytearray(3))
    found = []
    while bulk.wait(0):
        found.append(bytes(room[: bulk.receive(room)]))

    assert b"firstsecond" == b"".join(found)
    with pytest.raises(TimeoutError, match=r"no byte came within 0\.05 s"):
        bulk.receive(room)
    ends[1].sendall(frame(algorithm, b"third")[9:])
    assert bulk.wait(5)
    assert 3 == bulk.receive(room)
    assert b"thi" == bytes(room)


def test_a_server_that_sends_a_frame_slowly_is_not_silent(
    ends: tuple[socket.socket, socket.socket], algorithm: str
) -> None:
    sent = frame(algorithm, b"slow but not silent" * 50)

    def send() -> None:
        for at in range(len(sent)):
            ends[1].sendall(sent[at : at + 1])
            time.sleep(0.01)

    thread = threading.Thread(target=send)
    thread.start()
    room = memoryview(bytearray(10_000))
    # The whole takes longer than a silence may last, no part of it does.
    taken = bulk_of(compressed(ends[0], algorithm), min(0.3, 0.005 * len(sent))).receive(room)
    thread.join()

    assert b"slow but not silent" * 50 == bytes(room[:taken])


def _by_the_library(own: CompressedSocket) -> None:
    with contextlib.closing(own.makefile()) as file:
        file.read(4)


def _in_bulk(own: CompressedSocket) -> None:
    bulk_of(own).receive(memoryview(bytearray(2 * len(PLAIN))))


@pytest.mark.parametrize("taken", [_by_the_library, _in_bulk])
@pytest.mark.parametrize(
    "damage",
    [
        lambda sent: sent[:20] + bytes([sent[20] ^ 255]) + sent[21:],
        lambda sent: sent[:4] + (len(PLAIN) + 1).to_bytes(3, "little") + sent[7:],
        lambda sent: sent[:4] + (len(PLAIN) - 1).to_bytes(3, "little") + sent[7:],
        lambda sent: (len(sent) - 7 - 5).to_bytes(3, "little") + sent[3:],
        lambda sent: (len(sent) - 7 + 2).to_bytes(3, "little") + sent[3:] + b"xx",
    ],
    ids=["a byte is wrong", "larger than it is", "smaller than it is", "cut off", "with more behind it"],
)
def test_a_frame_that_is_wrong_is_told_as_such(
    ends: tuple[socket.socket, socket.socket], algorithm: str, taken: Any, damage: Any
) -> None:
    ends[1].sendall(damage(frame(algorithm, PLAIN)))
    own = compressed(ends[0], algorithm)

    with pytest.raises(FrameCorrupt, match=rf"a {algorithm} frame cannot be unpacked \(u@db:3306\)") as raised:
        taken(own)

    assert isinstance(raised.value, SourceError)
    assert not getattr(raised.value, "retryable", False)
    assert "source.compression: none" in str(raised.value)
    assert str(raised.value) == str(pickle.loads(pickle.dumps(raised.value)))


class _Connected:
    """A connection and an address to it, as far as a dump asks for them."""

    def __init__(self, own: CompressedSocket) -> None:
        self._sock: CompressedSocket | None = own
        self._read_timeout = 5
        self.timeout_s = 5
        self.open = True

    def connect(self) -> Any:
        return self

    def _execute_command(self, command: int, body: bytes) -> None: ...

    def _force_close(self) -> None:
        if self._sock is not None:
            self._sock.close()
        self._sock = None


def dump_of(own: CompressedSocket) -> Dump:
    address: Any = _Connected(own)
    dump: Any = Dump(address, "mysql")
    dump._send(0x12, b"")
    return dump  # type: ignore[no-any-return]


def test_a_connection_cut_amid_a_frame_is_lost(ends: tuple[socket.socket, socket.socket], algorithm: str) -> None:
    ends[1].sendall(frame(algorithm, PLAIN)[:50])
    ends[1].shutdown(socket.SHUT_WR)

    with pytest.raises(ConnectionLost, match="the server closed the connection during a dump") as raised:
        next(dump_of(compressed(ends[0], algorithm)).windows())
    assert raised.value.retryable


def test_a_dump_that_is_closed_wakes_who_waits_for_it(
    ends: tuple[socket.socket, socket.socket], algorithm: str
) -> None:
    dump = dump_of(compressed(ends[0], algorithm))
    woken: list[ConnectionLost] = []

    def wait() -> None:
        try:
            next(dump.windows())
        except ConnectionLost as error:
            woken.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    begin = time.monotonic()
    dump.close()
    thread.join(4)

    assert time.monotonic() - begin < 3
    assert 1 == len(woken)
