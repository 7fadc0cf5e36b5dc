"""Windows that are made in a thread of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from connectors.readers.binlog.transport.prefetch import prefetched
from connectors.readers.binlog.transport.read_buffer import FRAME_BYTES, FRAMES
from connectors.readers.binlog.transport.window import Window
from historian.errors import LogCorrupt
from logs.log_windows import window_of
from logs.row_events import event

THREAD = "historian-windows"


def window(number: int) -> Window:
    return window_of([event(29, bytes([number]))], offset=number)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == THREAD]


def test_windows_come_in_order_and_only_as_many_as_there_are_frames_are_made_before_they_are_used() -> None:
    made: list[int] = []

    def source() -> Iterator[Window]:
        for number in range(50):
            made.append(number)
            yield window(number)

    for used, found in enumerate(prefetched(source(), lambda: None)):
        assert found.offsets.tolist() == [used]
        assert made[-1] - used < FRAMES
    assert made == list(range(50))
    assert threads() == []


def test_behind_a_large_window_nothing_is_made_before_it_was_used() -> None:
    made: list[int] = []

    def source() -> Iterator[Window]:
        for number in range(9):
            made.append(number)
            some = window(number)
            large = np.concatenate([some.buffer, np.zeros(FRAME_BYTES, np.uint8)])
            yield replace(some, buffer=large) if number % 3 == 2 else some

    for used, _ in enumerate(prefetched(source(), lambda: None)):
        time.sleep(0.02)  # so that the other side would have gone on
        assert made[-1] == used if used % 3 == 2 else made[-1] - used < FRAMES
    assert len(made) == 9


def test_an_error_of_the_other_side_comes_behind_the_windows_before_it() -> None:
    def source() -> Iterator[Window]:
        yield window(1)
        raise LogCorrupt("damaged", where="here")

    windows = prefetched(source(), lambda: None)
    assert np.array_equal(next(windows).offsets, [1])
    with pytest.raises(LogCorrupt, match="damaged"):
        next(windows)
    assert threads() == []


def test_closed_early_the_other_side_ends_though_it_waits_for_bytes() -> None:
    waiting, stopped = threading.Event(), threading.Event()

    def source() -> Iterator[Window]:
        yield window(1)
        yield window(2)
        waiting.set()
        assert stopped.wait(60)

    windows = prefetched(source(), stopped.set)
    next(windows)
    assert waiting.wait(60)
    windows.close()
    assert stopped.is_set()
    assert threads() == []
