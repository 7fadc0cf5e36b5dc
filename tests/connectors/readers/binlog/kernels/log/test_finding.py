"""Events found in files and in packets, however the bytes arrive."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest

from connectors.readers.binlog.kernels.log.finding import (
    BAD_POSITION,
    BAD_SIZE,
    END,
    ERROR,
    EVENT_END,
    EVENT_START,
    OFFSET,
    SPECIAL,
    find_in_file,
    find_in_packets,
)
from connectors.readers.binlog.transport.read_buffer import FRAME_BYTES, WINDOW_BYTES, ReadBuffer
from logs.log_files import packets, placed
from logs.row_events import event

END_OF_DATA = b"\xfe\0\0\2\0"


def laid_out(events: Iterable[bytes], offset: int = 4) -> list[bytes]:
    found = []
    for raw in events:
        found.append(placed(raw, offset, checksum=True))
        offset += len(found[-1])
    return found


def gather(data: bytes, *, step: int, find: object, offset: int = 4) -> tuple[list[tuple[int, bytes]], int, ReadBuffer]:
    """Feeds *data* in steps; offset and bytes of each event, and the last code."""
    assert callable(find)
    read_buffer = ReadBuffer("binlog.000001", offset)
    read_buffer.checksum_bytes = 4
    found: list[tuple[int, bytes]] = []

    def take() -> None:
        window = read_buffer.window()
        if window is not None:
            for start, end, place in zip(window.starts, window.ends, window.offsets, strict=True):
                found.append((int(place), window.buffer[start:end].tobytes()))

    at, code = 0, 0
    while at < len(data):
        room = read_buffer.room()
        part = data[at : at + min(step, len(room))]
        room[: len(part)] = part
        read_buffer.fill += len(part)
        at += len(part)
        code = find(*read_buffer.arguments())
        while read_buffer.is_full():
            take()
            code = find(*read_buffer.arguments())
        if code:
            break
    take()
    return found, code, read_buffer


SIZES = (0, 1, 30, 4000, 70_000, 5)


@pytest.mark.parametrize("step", [1, 7, 1000, 1 << 20])
def test_events_of_a_file_are_found_however_it_is_read(step: int) -> None:
    sizes = SIZES if step > 1 else (0, 1, 30)
    events = laid_out(event(29, bytes([size % 251]) * size) for size in sizes)
    found, code, read_buffer = gather(b"".join(events), step=step, find=find_in_file)
    assert [data for _, data in found] == [raw[:-4] for raw in events]
    assert [place for place, _ in found] == [4 + sum(map(len, events[:index])) for index in range(len(events))]
    assert (code, read_buffer.missing_bytes, read_buffer.offset) == (0, 0, 4 + sum(map(len, events)))


@pytest.mark.parametrize("step", [1, 7, 1000, 1 << 20])
def test_events_of_packets_are_found_however_they_arrive(step: int) -> None:
    sizes = SIZES if step > 1 else (0, 1, 30)
    events = laid_out(event(29, bytes([size % 251]) * size) for size in sizes)
    data = packets([b"\0" + raw for raw in events] + [END_OF_DATA])
    found, code, _ = gather(data, step=step, find=find_in_packets)
    assert [raw for _, raw in found] == [raw[:-4] for raw in events]
    assert [place for place, _ in found] == [4 + sum(map(len, events[:index])) for index in range(len(events))]
    assert code == END


@pytest.mark.parametrize("step", [70_001, 1 << 22])
@pytest.mark.parametrize(
    "size", [WINDOW_BYTES, 0xFFFFFF - 24 - 1, 0xFFFFFF - 24, 0xFFFFFF - 23, 2 * 0xFFFFFF - 24, 40_000_000]
)
def test_an_event_larger_than_the_buffer_or_a_packet_is_whole(size: int, step: int) -> None:
    events = laid_out(
        [event(29, b"before"), event(29, (bytes(range(256)) * (size // 256 + 1))[:size]), event(29, b"after")]
    )
    for data, find in (
        (packets([b"\0" + raw for raw in events] + [END_OF_DATA]), find_in_packets),
        (b"".join(events), find_in_file),
    ):
        found, _, _ = gather(data, step=step, find=find)
        assert [raw for _, raw in found] == [raw[:-4] for raw in events]


def test_more_events_than_the_index_holds_come_in_several_windows() -> None:
    raw = placed(event(29, b""), 0, checksum=False)[:13] + bytes(6)
    count = 150_000
    read_buffer = ReadBuffer("binlog.000001", 4)
    data = raw * count
    room = read_buffer.room()
    room[: len(data)] = data
    read_buffer.fill = len(data)
    sizes = []
    while True:
        find_in_file(*read_buffer.arguments())
        window = read_buffer.window()
        if window is None:
            break
        sizes.append(len(window.starts))
    assert sum(sizes) == count
    assert len(sizes) == 3


def test_a_rest_that_is_no_whole_event_is_named() -> None:
    (whole,) = laid_out([event(29, bytes(100))])
    for keep, missing in ((5, 1), (19, len(whole) - 19), (len(whole) - 1, 1)):
        _, code, read_buffer = gather(whole[:keep], step=1 << 20, find=find_in_file)
        assert (code, read_buffer.missing_bytes) == (0, missing)


def test_a_size_that_no_event_has_is_found() -> None:
    bad = struct.pack("<IBIIIH", 0, 29, 0, 22, 26, 0) + bytes(20)
    assert gather(bad, step=1 << 20, find=find_in_file)[1] == BAD_SIZE
    assert gather(packets([b"\0" + bad]), step=1 << 20, find=find_in_packets)[1] == BAD_SIZE
    assert gather(packets([b"\7" + bytes(30)]), step=1 << 20, find=find_in_packets)[1] == BAD_SIZE


def test_an_event_that_does_not_say_its_own_place_is_found() -> None:
    (elsewhere,) = laid_out([event(29, b"x")], offset=100)
    assert gather(elsewhere, step=1 << 20, find=find_in_file)[1] == BAD_POSITION
    assert gather(packets([b"\0" + elsewhere]), step=1 << 20, find=find_in_packets, offset=5000)[1] == BAD_POSITION


def test_events_without_place_stand_behind_the_one_before() -> None:
    # As MariaDB 11 writes them inside transactions.
    events = [raw[:13] + bytes(4) + raw[17:] for raw in laid_out([event(29, b"x"), event(29, b"yy")])]
    data = packets([b"\0" + raw for raw in events])
    read_buffer = ReadBuffer("binlog.000001", 4)
    read_buffer.room()[: len(data)] = data
    read_buffer.fill = len(data)
    find_in_packets(*read_buffer.arguments())
    window = read_buffer.window()
    assert window is not None
    assert window.offsets.tolist() == [4, 4 + 24]


@pytest.mark.parametrize("offset", [(1 << 32) - 60, (1 << 32) + 5000, 3 * (1 << 32) - 22])
def test_places_beyond_four_gigabytes_are_whole_numbers(offset: int) -> None:
    events = laid_out([event(29, bytes(size)) for size in (10, 50, 20)], offset=offset)
    places = [offset + sum(map(len, events[:index])) for index in range(3)]
    for data, find in ((b"".join(events), find_in_file), (packets([b"\0" + raw for raw in events]), find_in_packets)):
        found, _, read_buffer = gather(data, step=1 << 20, find=find, offset=offset)
        assert [place for place, _ in found] == places
        assert read_buffer.state[OFFSET] == offset + sum(map(len, events))


def test_a_gap_that_the_server_left_out_is_passed() -> None:
    (event_behind,) = laid_out([event(29, b"x")], offset=9000)
    found, _, _ = gather(packets([b"\0" + event_behind]), step=1 << 20, find=find_in_packets)
    assert [place for place, _ in found] == [9000]


@pytest.mark.parametrize("raw", [event(15, bytes(30)), event(27, b"f"), event(4, bytes(8) + b"f", flags=0x20)])
def test_events_of_the_connection_are_given_to_the_caller(raw: bytes) -> None:
    data = packets([b"\0" + placed(raw, 4, checksum=True), b"\0" + laid_out([event(29, b"x")])[0]])
    found, code, read_buffer = gather(data, step=1 << 20, find=find_in_packets)
    assert (found, code) == ([], SPECIAL)
    start, end = int(read_buffer.state[EVENT_START]), int(read_buffer.state[EVENT_END])
    assert read_buffer.buffer[start:end].tobytes() == placed(raw, 4, checksum=True)


def test_an_error_packet_is_given_to_the_caller() -> None:
    _, code, read_buffer = gather(packets([b"\xff\xd4\x04#HY000gone"]), step=1 << 20, find=find_in_packets)
    start, end = int(read_buffer.state[EVENT_START]), int(read_buffer.state[EVENT_END])
    assert (code, read_buffer.buffer[start:end].tobytes()) == (ERROR, b"\xff\xd4\x04#HY000gone")


def test_one_large_event_leaves_no_large_memory() -> None:
    sizes = [100, 3 * WINDOW_BYTES, 200, 4 * WINDOW_BYTES, *([WINDOW_BYTES] * 30)]
    events = laid_out([event(29, bytes([size & 0xFF]) * size) for size in sizes])
    found, _, read_buffer = gather(b"".join(events), step=1 << 19, find=find_in_file)
    assert [raw for _, raw in found] == [raw[:-4] for raw in events]
    assert len(read_buffer.buffer) == FRAME_BYTES
