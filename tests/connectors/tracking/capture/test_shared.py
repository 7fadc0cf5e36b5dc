"""Captures that connectors of one server share: as exact as one's own, and few."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from connectors.tracking.capture.shared import HeadCaptures, SharedCaptures
from historian.errors import SourceError
from historian.positions import LogPosition
from historian.schema.snapshots import Catalog

PLACE = LogPosition(flavor="mysql", gtids="", file="binlog.000001", offset=400, server="s")
LATER = LogPosition(flavor="mysql", gtids="", file="binlog.000001", offset=500, server="s")


@dataclass
class Log:
    """Where a log ends, one look after the other; the last one stays."""

    ends: list[LogPosition] = field(default_factory=lambda: [PLACE])

    def near_end(self) -> LogPosition:
        return self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]


class Asked:
    """Gives catalogs that tell which question they answer."""

    def __init__(self) -> None:
        self.questions: list[frozenset[str] | None] = []

    def __call__(self, databases: frozenset[str] | None) -> Catalog:
        self.questions.append(databases)
        return Catalog(next_table_id=len(self.questions))


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def _head(asked: Asked, shared: SharedCaptures, *databases: str) -> HeadCaptures:
    return HeadCaptures(asked, frozenset(databases) or None, shared)


def _number(head: HeadCaptures, place: LogPosition = PLACE) -> int:
    """Of the question that is answered to who stands at *place*, where the log ends."""
    found = head.standing_at(place, Log([place]))
    assert found is not None
    return found.next_table_id


def test_all_that_stand_at_one_place_share_a_capture_of_their_databases_for_a_minute() -> None:
    asked, clock = Asked(), Clock()
    shared = SharedCaptures(clock)
    heads = [_head(asked, shared, f"d{number}") for number in range(3)]
    for head in heads:
        head.standing_at(PLACE, Log())
    clock.now_s = 59
    assert {1} == {_number(head) for head in heads}
    assert frozenset({"d0", "d1", "d2"}) == asked.questions[-1]
    clock.now_s = 121
    assert {2} == {_number(head) for head in heads}


def test_a_capture_of_some_databases_does_not_serve_who_wants_all() -> None:
    asked, shared = Asked(), SharedCaptures()
    _head(asked, shared, "one").standing_at(PLACE, Log())
    assert 2 == _number(_head(asked, shared))
    assert [frozenset({"one"}), None] == asked.questions


@pytest.mark.parametrize("ends, number", [((LATER,), 1), ((PLACE, LATER), 2)], ids=["before", "meanwhile"])
def test_nothing_is_told_of_a_place_that_the_log_has_gone_beyond(ends: tuple[LogPosition, ...], number: int) -> None:
    asked, shared = Asked(), SharedCaptures()
    assert _head(asked, shared).standing_at(PLACE, Log(list(ends))) is None
    found = _head(asked, shared).standing_at(PLACE, Log())
    assert found is not None
    assert number == found.next_table_id, "what was captured meanwhile is kept for nobody"


def test_a_capture_at_one_place_does_not_serve_another_place() -> None:
    asked, shared = Asked(), SharedCaptures()
    head = _head(asked, shared)
    assert [1, 2] == [_number(head, place) for place in (PLACE, LATER)]


def test_who_comes_while_a_capture_runs_gets_one_that_begins_later() -> None:
    shared, runs, go_on, given = SharedCaptures(), threading.Event(), threading.Event(), []

    def ask() -> Catalog:
        given.append(Catalog(next_table_id=len(given) + 1))
        runs.set()
        assert go_on.wait(30)
        return given[-1]

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(shared.begun_from_now, "all", ask)
        assert runs.wait(30)
        others = [pool.submit(shared.begun_from_now, "all", ask) for _ in range(3)]
        go_on.set()
        found = [each.result(30).next_table_id for each in others]
    assert 1 == first.result().next_table_id
    assert 2 <= min(found)


def test_what_fails_for_one_is_asked_again_by_each_that_waited() -> None:
    shared, runs, fail = SharedCaptures(), threading.Event(), threading.Event()

    def refused() -> Catalog:
        runs.set()
        assert fail.wait(30)
        raise SourceError("cut off")

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(shared.begun_from_now, "all", refused)
        assert runs.wait(30)
        others = [pool.submit(shared.begun_from_now, "all", lambda: Catalog(next_table_id=7)) for _ in range(2)]
        fail.set()
        assert [7, 7] == [each.result(30).next_table_id for each in others]
        assert isinstance(first.exception(), SourceError)
    assert 8 == shared.begun_from_now("all", lambda: Catalog(next_table_id=8)).next_table_id


def test_databases_of_those_who_look_no_more_are_captured_for_nobody() -> None:
    asked, clock = Asked(), Clock()
    shared = SharedCaptures(clock)
    one, other = _head(asked, shared, "one"), _head(asked, shared, "other")
    everything = _head(asked, shared)
    assert 1 == _number(one)
    everything.close()
    everything.close()
    clock.now_s = 61
    assert {2} == {_number(one), _number(other)}
    other.close()
    clock.now_s = 122
    assert 3 == _number(one)
    one.close()
    assert [4, 5] == [_number(other), _number(one)], "whoever goes on captures his own, which is nobody's else"
    assert [
        None,
        frozenset({"one", "other"}),
        frozenset({"one"}),
        frozenset({"other"}),
        frozenset({"one"}),
    ] == asked.questions


def test_who_came_behind_a_capture_asks_for_his_own_databases_until_it_is_renewed() -> None:
    asked, clock = Asked(), Clock()
    shared = SharedCaptures(clock)
    first = [_head(asked, shared, name) for name in ("one", "other")]
    assert {1} == {_number(head) for head in first}
    late = _head(asked, shared, "late")
    assert [2, 1] == [_number(late), _number(first[0])]
    clock.now_s = 61
    assert {3} == {_number(head) for head in (*first, late)}
    assert [frozenset({"one", "other"}), frozenset({"late"}), frozenset({"one", "other", "late"})] == asked.questions


@pytest.mark.parametrize(
    "ends, later_s, number",
    [([], 59, 1), ([], 61, 2), ([PLACE, LATER, LATER], 0, 2), ([PLACE, PLACE, LATER], 0, 2)],
    ids=["unchanged", "too long ago", "logged meanwhile", "logged since"],
)
def test_what_was_captured_serves_again_as_long_as_nothing_was_logged(
    ends: list[LogPosition], later_s: float, number: int
) -> None:
    asked, clock = Asked(), Clock()
    shared = SharedCaptures(clock)
    log = Log([*ends, LATER] if ends else [PLACE])
    assert 1 == shared.unchanged("all", log.near_end, lambda: asked(None)).next_table_id
    clock.now_s = later_s
    assert number == shared.unchanged("all", log.near_end, lambda: asked(None)).next_table_id


def test_a_capture_in_other_words_is_another_one_and_goes_with_the_last_who_looks() -> None:
    asked, shared = Asked(), SharedCaptures(Clock())
    head = _head(asked, shared, "one")
    found = [shared.unchanged(what, Log().near_end, lambda: asked(None)).next_table_id for what in ("a", "b", "a")]
    head.close()
    assert [1, 2, 1, 3] == [*found, shared.unchanged("a", Log().near_end, lambda: asked(None)).next_table_id]
