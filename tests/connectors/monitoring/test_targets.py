"""How often a run notes where its targets stand."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.monitoring import targets
from connectors.monitoring.targets import TargetNotes
from historian.errors import StoreUnreachable
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

    def note_targets(self, _: str) -> None:
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
