"""How often a run notes where its targets stand, and what of many is read again."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from connectors.monitoring import targets
from connectors.monitoring.targets import (
    MOST_LISTED,
    ListedTargets,
    TargetNotes,
    listed_targets,
    noted_targets,
)
from databases.stores import a_plan
from historian.errors import StoreUnreachable
from historian.store import Store
from sinks.contract.base import TargetStatus


class Clock:
    """Moves by *took_s* each time that a sink is asked, and by what a test adds."""

    def __init__(self, took_s: float) -> None:
        self.now_s, self.took_s, self.asked = 0.0, took_s, 0

    def known(self) -> tuple[TargetStatus, ...]:
        self.now_s += self.took_s
        self.asked += 1
        return ()

    def stopped(self) -> dict[str, str]:
        return {}

    def targets(self) -> str:
        return ""

    def note_targets(self, _: str, __: str) -> None:
        if self.took_s < 0.1:
            raise StoreUnreachable("the store does not answer")


@pytest.mark.parametrize("took_s, pause_s", [(0.5, 25.0), (100.0, 300.0), (0.05, 5.0)])
def test_a_long_look_comes_seldom_and_one_that_failed_soon_again(
    took_s: float, pause_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock: Any = Clock(took_s)
    monkeypatch.setattr(targets.time, "monotonic", lambda: clock.now_s)
    notes = TargetNotes(clock, [clock])
    notes.written()
    begun_s = clock.now_s - (took_s if pause_s == 5.0 else 0)

    clock.now_s = begun_s + pause_s - 0.01
    notes.written()
    assert clock.asked == 1
    clock.now_s = begun_s + pause_s
    notes.written()
    assert clock.asked == 2


class Sink:
    """Says where its targets stand."""

    def __init__(self, *targets: TargetStatus) -> None:
        self.targets = targets

    def known(self) -> tuple[TargetStatus, ...]:
        return self.targets

    def stopped(self) -> dict[str, str]:
        return {}


def _target(number: int, plan: int, **facts: str) -> TargetStatus:
    return TargetStatus(table=f"shop.t{number}", target=f"t{number}", kind="mirror", plan=plan, position="", **facts)


MANY = [_target(number, 2) for number in range(MOST_LISTED)]
OTHERS = [
    _target(1001, 1),
    _target(1002, 2, stopped="does not fit"),
    _target(1003, 1, ended="dropped in plan 1"),
    _target(1004, 0),
]


@pytest.mark.parametrize(
    "many, others, listed",
    [(MANY, OTHERS, 4), (MANY, [], MOST_LISTED), ([*MANY, _target(999, 2)], [], 0), (MANY[:3], OTHERS, 7)],
)
def test_of_many_targets_those_that_are_up_to_date_are_counted_and_not_read(
    many: list[TargetStatus], others: list[TargetStatus], listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Sink(*others[:2], *many), Sink(*others[2:])
    with closing(Store.open("sqlite://")) as store:
        for number in (1, 2):
            store.append_plan(a_plan(number))
        store.note_progress("", 2)
        assert listed_targets(store, lists_all=False) is None
        TargetNotes(store, [one, other]).look()  # type: ignore[list-item]
        whole = noted_targets(store)
        assert whole is not None
        if listed < len(whole):
            monkeypatch.setattr(store, "targets", lambda: pytest.fail("all were read"))
        found = listed_targets(store, lists_all=False)
        monkeypatch.undo()
        everything = listed_targets(store, lists_all=True)

    assert found is not None
    assert (found, listed) == (ListedTargets.of(whole, lists_all=False), len(found.listed))
    assert everything == ListedTargets(whole, found.counts)
    assert sum(found.counts.values()) == len(many) + len(others)
