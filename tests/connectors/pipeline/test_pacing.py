"""The pause between two plans, on a clock that stands still unless someone waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connectors.pipeline.pacing import pause


class _Clock:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.asked_s: list[float] = []
        self.stops_at_s = 1e9

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        return self.now_s >= self.stops_at_s

    def enough_from(self, at_s: float) -> Callable[[], bool]:
        def is_enough() -> bool:
            self.asked_s.append(self.now_s)
            return self.now_s >= at_s

        return is_enough


@pytest.mark.parametrize(
    "until_s, enough_s, ends_s",
    [
        (104.5, 1e9, 104.5),
        (104.5, 102.0, 102.0),
        (104.5, 101.2, 102.0),
        (100.25, 0.0, 100.25),
        (99.0, 0.0, 100.0),
    ],
    ids=["quiet", "enough", "asked_each_second", "short", "late"],
)
def test_a_pause_ends_at_its_time_or_where_enough_waits(until_s: float, enough_s: float, ends_s: float) -> None:
    clock = _Clock()

    pause(until_s, wait=clock.wait, is_enough=clock.enough_from(enough_s), clock_s=lambda: clock.now_s)

    assert ends_s == clock.now_s


def test_a_short_pause_asks_nothing() -> None:
    clock = _Clock()
    pause(101.0, wait=clock.wait, is_enough=clock.enough_from(0.0), clock_s=lambda: clock.now_s)
    assert clock.asked_s == []


def test_a_run_that_is_stopped_does_not_wait() -> None:
    clock = _Clock()
    clock.stops_at_s = 102.0
    pause(900.0, wait=clock.wait, is_enough=clock.enough_from(1e9), clock_s=lambda: clock.now_s)
    assert clock.now_s == 102.0
