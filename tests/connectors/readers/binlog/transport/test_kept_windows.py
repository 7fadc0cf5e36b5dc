"""What a scan keeps: each range is given its own part, which is gone once it is read."""

from __future__ import annotations

import numpy as np

from connectors.readers.binlog.transport.log_cache import LogCache, cached_windows
from connectors.readers.binlog.transport.window import Window
from connectors.readers.room import Room
from historian.plans.plans import LogRange

EVENT_BYTES, EVENTS = 50, 4
WINDOW_BYTES = EVENT_BYTES * EVENTS
ROOM_BYTES = 10 * WINDOW_BYTES


def _window(first: int, file: str) -> Window:
    at = np.arange(EVENTS) * EVENT_BYTES
    body = np.full(WINDOW_BYTES, first % 251, np.uint8)
    return Window(buffer=body, starts=at, ends=at + EVENT_BYTES, offsets=first + at, file=file)


def _cache(room: Room) -> LogCache:
    """Three windows of one file, and one of the next."""
    made = LogCache("server", "b.1", 100, room)
    for number in range(3):
        first = 100 + number * WINDOW_BYTES
        made.add(_window(first, "b.1"), first + WINDOW_BYTES)
    made.add(_window(4, "b.2"), 4 + WINDOW_BYTES)
    return made


def _range(start: int, end: int, file: str = "b.1") -> LogRange:
    return LogRange(file=file, start=start, end=end, server="server", after="")


def _offsets(planned: LogRange, cache: LogCache) -> list[list[int]]:
    log = cache.cached(planned)
    assert log is not None
    return [window.offsets.tolist() for window in cached_windows(planned, log)]


def test_a_range_is_given_the_windows_that_hold_it() -> None:
    cache = _cache(Room(ROOM_BYTES))
    assert [len(cache.cached(each) or ()) for each in (_range(100, 300), _range(300, 700), _range(150, 350))] == [
        1,
        2,
        2,
    ]
    assert [[150, 200, 250], [300]] == _offsets(_range(150, 350), cache)
    assert [[4, 54, 104, 154]] == _offsets(_range(4, 204, "b.2"), cache)


def test_what_is_not_all_there_is_not_given() -> None:
    cache = _cache(Room(ROOM_BYTES))
    for planned in (_range(50, 300), _range(100, 701), _range(4, 205, "b.2"), _range(4, 204, "b.3")):
        assert cache.cached(planned) is None


def test_memory_is_given_back_window_by_window() -> None:
    room, planned = Room(ROOM_BYTES), _range(100, 700)
    log = _cache(room).cached(planned)
    assert log is not None
    left = []
    for window in cached_windows(planned, log):
        left.append(room._left_bytes)
        del window
    assert [ROOM_BYTES - number * WINDOW_BYTES for number in (3, 2, 1)] == left
    assert room._left_bytes == ROOM_BYTES
    assert [] == log


def test_a_copy_is_read_as_often_as_wanted() -> None:
    planned = _range(100, 700)
    log = tuple(_cache(Room(ROOM_BYTES)).cached(planned) or ())
    first, again = ([window.offsets.tolist() for window in cached_windows(planned, log)] for _ in range(2))
    assert first == again
    assert len(first) == 3
