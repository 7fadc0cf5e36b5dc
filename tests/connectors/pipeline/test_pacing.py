"""When a plan is made: the pause before it, on a clock that stands still unless someone waits, and a plan that is made ahead."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connectors.pipeline.pacing import PlansAhead, Silence, pause, rest
from historian.errors import LeaseHeld, LogPurged, RowCorrupt
from historian.plans.plans import PartitionRange, Plan
from historian.positions import KAFKA, parse_position

WAIT_S = 60
ENOUGH_BYTES = 5


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


def test_a_silent_log_is_asked_after_5_20_and_then_every_60_seconds_until_it_goes_on() -> None:
    silence = Silence()
    silent_s = [silence.look_in_s() for _ in range(5)]
    silence.broken()

    assert [5, 20, 60, 60, 60] == silent_s
    assert [5, 20] == [silence.look_in_s() for _ in range(2)]


@pytest.mark.parametrize(
    "rest_s, goes_on_s, wanted_s, ends_s, waits_s",
    [
        (5, 1e9, 1e9, 105, [1, 4]),
        (60, 1e9, 1e9, 160, [1, 20, 20, 19]),
        (0.5, 1e9, 1e9, 101, [1]),
        (60, 110, 1e9, 110, [1, 20]),
        (60, 1e9, 110, 121, [1, 20]),
        (60, 100.5, 1e9, 100.5, [1]),
    ],
    ids=["short", "long", "due", "the_log_goes_on", "a_wish", "soon"],
)
def test_a_rest_ends_at_its_time_where_the_log_goes_on_or_behind_a_wait_for_a_wish(
    rest_s: float, goes_on_s: float, wanted_s: float, ends_s: float, waits_s: list[float]
) -> None:
    clock, waited_s = _Clock(), []

    def wait(for_s: float) -> bool:
        waited_s.append(for_s)
        goes_on = clock.now_s + for_s >= goes_on_s
        clock.now_s = min(clock.now_s + for_s, goes_on_s)
        return goes_on

    rest(rest_s, longest_s=20.0, wait=wait, is_wanted=lambda: clock.now_s >= wanted_s, clock_s=lambda: clock.now_s)

    assert (ends_s, waits_s) == (clock.now_s, waited_s)


class Planned(str):
    """A plan with so much log."""

    __slots__ = ("end", "start")

    start: Any
    end: Any


def _planned(name: str, size_bytes: int, file: str = "b.1") -> Planned:
    made = Planned(name)
    made.start = SimpleNamespace(file="b.1", offset=100)
    made.end = SimpleNamespace(flavor="mysql", file=file, offset=100 + size_bytes)
    return made


class Tracker:
    """Notes who asks for plans, and in which thread."""

    def __init__(self, flavor: str = "mysql", copier: object = None, error: Exception | None = None) -> None:
        self.waiting = ENOUGH_BYTES
        self.reader = SimpleNamespace(flavor=flavor, waiting_bytes=lambda _end: self.waiting)
        self.copier, self._error = copier, error
        self.asked: list[tuple[int, dict[str, object], bool]] = []
        self.was_asked = threading.Event()
        self.nothing = 0
        self.made_bytes: list[int] = []

    def plan_after(self, number: int, **limits: object) -> Planned | None:
        self.asked.append((number, limits, threading.current_thread() is threading.main_thread()))
        self.was_asked.set()
        if self._error is not None:
            raise self._error
        if len(self.asked) <= self.nothing:
            return None
        return _planned(f"plan {number + 1}", self.made_bytes.pop(0) if self.made_bytes else 0)


def _plan(number: int, *copies: object) -> Any:
    tables = [SimpleNamespace(copy=copy) for copy in (None, *copies)]
    return SimpleNamespace(number=number, tables=tables, end=f"end of {number}")


def _same(each: Any, *_: object) -> Any:
    return each


class Rows:
    """A plan whose rows are decoded once somebody lets them be, or gives up."""

    def __init__(self, gives_up: Callable[[], bool]) -> None:
        self.gives_up = gives_up
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def _ahead(
    tracker: Any,
    check: Callable[[], None] = lambda: None,
    decode: Callable[[Any, Any], Any] = _same,
    stopping: Any = None,
    first_bytes: int = 7,
    limit_bytes: int = 7,
) -> PlansAhead:
    return PlansAhead(
        tracker,
        check,
        log_of=_same,
        decode=decode,
        stopping=stopping or threading.Event(),
        limit_bytes=limit_bytes,
        first_bytes=first_bytes,
        enough_bytes=ENOUGH_BYTES,
        until="end",
    )


def test_a_wanted_plan_is_made_while_the_one_before_it_is_written() -> None:
    tracker = Tracker()
    ahead = _ahead(tracker)
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        made_meanwhile = tracker.was_asked.wait(WAIT_S)
    assert made_meanwhile
    assert ahead.plan_after(3) == "plan 4"
    assert tracker.asked == [(3, {"limit_bytes": 7, "until": "end"}, False)]


def test_the_first_plans_are_small_and_each_full_one_doubles_the_next() -> None:
    tracker = Tracker()
    tracker.made_bytes = [2, 3, 4, 8, 7]
    ahead = _ahead(tracker, first_bytes=2)
    full = []
    for number in range(5):
        plan: Any = ahead.plan_after(number)
        full.append(ahead.is_full(plan))
    assert [limits["limit_bytes"] for _, limits, _ in tracker.asked] == [2, 4, 4, 7, 7]
    assert full == [True, False, True, True, True]


def test_a_plan_that_ends_in_another_file_is_full() -> None:
    assert _ahead(Tracker()).is_full(cast("Any", _planned("plan 4", 1, file="b.2")))


def test_a_small_plan_is_made_ahead_where_there_is_enough_for_it() -> None:
    tracker = Tracker()
    tracker.waiting = 2
    ahead = _ahead(tracker, first_bytes=2)
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        made_meanwhile = tracker.was_asked.wait(WAIT_S)
    assert made_meanwhile


def test_its_rows_are_decoded_meanwhile_too() -> None:
    decoded = threading.Event()

    def decode(plan: str, _: object) -> str:
        decoded.set()
        return f"{plan} with rows"

    ahead = _ahead(Tracker(), decode=decode)
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        decoded_meanwhile = decoded.wait(WAIT_S)
    assert decoded_meanwhile
    assert ahead.plan_after(3) == "plan 4 with rows"
    assert ahead.plan_after(4) == "plan 5", "one that is made when it is asked for is decoded by who asks"


def test_rows_that_cannot_be_decoded_are_an_error_of_their_own_plan() -> None:
    def decode(plan: str, _: object) -> str:
        raise RowCorrupt(plan)

    ahead = _ahead(Tracker(), decode=decode)
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        pass
    with pytest.raises(RowCorrupt, match="plan 4"):
        ahead.plan_after(3)


def test_who_writes_waits_for_the_plan_and_not_for_its_rows() -> None:
    written = threading.Event()
    ahead = _ahead(Tracker(), decode=lambda plan, _: f"{plan}, {written.wait(WAIT_S)}")
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        pass
    written.set()
    assert ahead.plan_after(3) == "plan 4, True"


@pytest.mark.parametrize("left", ["writing fails", "run ends", "another plan is asked for"])
def test_rows_that_nobody_takes_are_freed(left: str) -> None:
    made: list[Rows] = []

    def decode(_: object, gives_up: Callable[[], bool]) -> Rows:
        made.append(Rows(gives_up))
        return made[0]

    ahead = _ahead(Tracker(), decode=decode)
    ahead.wanted_behind(_plan(3))
    with suppress(ValueError), ahead.making(3):
        assert _comes(lambda: made)
        assert not made[0].gives_up()
        if left == "writing fails":
            raise ValueError("sink")
    if left == "run ends":
        ahead.close()
    elif left == "another plan is asked for":
        assert ahead.plan_after(4) == "plan 5"
    assert (made[0].closed, made[0].gives_up()) == (1, True)


def test_a_run_that_stops_gives_rows_up() -> None:
    stopping = threading.Event()

    def decode(plan: str, gives_up: Callable[[], bool]) -> str:
        return f"{plan}, {_comes(gives_up)}"

    ahead = _ahead(Tracker(), decode=decode, stopping=stopping)
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        stopping.set()
    assert ahead.plan_after(3) in ("plan 4", "plan 4, True")


def _comes(what: Callable[[], object]) -> bool:
    until_s = time.monotonic() + WAIT_S
    while not what() and time.monotonic() < until_s:
        time.sleep(0.001)
    return bool(what())


@pytest.mark.parametrize("wanted", [None, 2])
def test_a_plan_that_nobody_wanted_is_made_when_it_is_asked_for(wanted: int | None) -> None:
    tracker = Tracker()
    ahead = _ahead(tracker)
    if wanted is not None:
        ahead.wanted_behind(_plan(wanted))
    with ahead.making(3):
        pass
    assert tracker.asked == []
    assert ahead.plan_after(3) == "plan 4"
    assert tracker.asked == [(3, {"limit_bytes": 7, "until": "end"}, True)]


@pytest.mark.parametrize(
    "tracker, written",
    [(Tracker(copier=object()), _plan(3)), (Tracker(), _plan(3, "rows"))],
    ids=["copies", "a plan with copies"],
)
def test_what_depends_on_more_than_the_log_is_never_made_ahead(tracker: Tracker, written: Any) -> None:
    ahead = _ahead(tracker)
    ahead.wanted_behind(written)
    with ahead.making(3):
        pass
    assert tracker.asked == []


def test_an_error_is_told_to_who_asks_for_the_plan_and_not_to_who_writes() -> None:
    tracker = Tracker(error=LogPurged("gone"))
    ahead = _ahead(tracker)
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        pass
    with pytest.raises(LogPurged, match="gone"):
        ahead.plan_after(3)
    assert len(tracker.asked) == 1


def test_a_plan_behind_another_one_is_made_anew() -> None:
    tracker = Tracker()
    ahead = _ahead(tracker)
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        pass
    assert ahead.plan_after(4) == "plan 5"
    assert [number for number, *_ in tracker.asked] == [3, 4]


def test_the_plan_is_there_when_a_failed_writing_is_left() -> None:
    tracker = Tracker()
    ahead = _ahead(tracker)
    ahead.wanted_behind(_plan(3))
    with pytest.raises(ValueError, match="sink"), ahead.making(3):
        raise ValueError("sink")
    assert tracker.was_asked.is_set()


def test_a_log_that_had_nothing_is_asked_again() -> None:
    tracker = Tracker()
    tracker.nothing = 1
    ahead = _ahead(tracker)
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        pass
    assert ahead.plan_after(3) == "plan 4"
    assert len(tracker.asked) == 2


def test_near_the_end_of_the_log_no_plan_is_made_ahead() -> None:
    tracker = Tracker()
    tracker.waiting = ENOUGH_BYTES - 1
    ahead = _ahead(tracker)
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        pass
    assert tracker.asked == []


def test_a_run_that_lost_its_lease_makes_no_plan() -> None:
    def lost() -> None:
        raise LeaseHeld("another run")

    tracker = Tracker()
    ahead = _ahead(tracker, lost)
    ahead.wanted_behind(_plan(3))
    with ahead.making(3):
        pass
    for _ in ("made ahead", "when it is asked for"):
        with pytest.raises(LeaseHeld, match="another run"):
            ahead.plan_after(3)
    assert tracker.asked == []


def test_where_writing_and_scan_fail_the_writing_s_error_is_told_and_the_scan_s_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ahead = _ahead(Tracker(error=LogPurged("gone")))
    ahead.wanted_behind(_plan(3))
    with caplog.at_level(logging.DEBUG), pytest.raises(ValueError, match="sink"), ahead.making(3):
        raise ValueError("sink")
    assert "could not be made either: gone" in caplog.text


@pytest.mark.parametrize("messages, size_bytes, is_full", [(24, 999, False), (25, 50, True), (2, 1003, True)])
def test_a_plan_of_topics_is_full_by_its_messages_too(messages: int, size_bytes: int, is_full: bool) -> None:
    parts = (
        PartitionRange(topic="t", partition=0, start=5, end=6, bytes_read=size_bytes),
        PartitionRange(topic="t", partition=1, start=0, end=messages - 1, bytes_read=0),
    )
    start, end = parse_position("t:0:5,t:1:0", KAFKA), parse_position(f"t:0:6,t:1:{messages - 1}", KAFKA)
    plan = Plan(
        number=1,
        previous=0,
        connector="c",
        start=start,
        end=end,
        ranges=parts,
        tables=(),
        version=0,
        system_time_us=0,
        revision="",
    )

    assert is_full == _ahead(Tracker(), first_bytes=1003, limit_bytes=1003).is_full(plan)
