"""Ends writes of a lake's plans at every place that they reach, one after the other, with a restart behind each."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping

from historian.plans.plans import Plan
from lakes.lake import Lake
from sinks.contract.chunks import Chunks
from sinks.delta import faults

__all__ = ["Crashes", "described"]

_OF_ONE_TABLE = 4
"""So often in a plan a place of one table is crashed at: what a start tidies up is a commit that there was none of before."""


class _Crash(BaseException):
    """As the end of a process, nothing but the test itself catches it."""


class Crashes:
    """Counts the crashes at each place; each of a plan costs what the write had left to do up to there.

    Args:
        at: where there are any.
        enough: behind so many of them, only places matter that there was none at.
    """

    def __init__(self, at: Collection[str] = tuple(faults.PLACES), *, enough: int | None = None) -> None:
        self.places: Counter[str] = Counter()
        self._at = frozenset(at)
        self._enough = enough

    @property
    def count(self) -> int:
        """How many there were."""
        return self.places.total()

    @property
    def suffice(self) -> bool:
        """Whether there were enough."""
        return self._enough is not None and self.count >= self._enough

    def _matters(self, place: str) -> bool:
        return not self.suffice or place not in self.places

    def write(self, lake: Lake, plan: Plan, *, but: Collection[str] = (), often: int = _OF_ONE_TABLE) -> None:
        """Writes *plan*, which the lake lacks, with a crash where each place of it is reached first.

        A restart goes on behind what the crash left, so that each place costs what is written up to the next one.

        Args:
            but: places of this plan that are passed by.
            often: so many crashes a place has in one table.
        """
        seen = _Seen(self._at.difference(but), often)
        try:
            with lake.lab.delivered(plan) as chunks:
                while not self._written(lake, plan, chunks, seen):
                    pass
        finally:
            faults.disarm()

    def _written(self, lake: Lake, plan: Plan, chunks: Chunks, seen: _Seen) -> bool:
        dead = threading.Event()

        def fault(place: str, at: str) -> None:
            if not dead.is_set() and self._matters(place) and seen.is_new(place, at):
                self.places[place] += 1
                dead.set()
            # What other threads were about to do is not done either.
            if dead.is_set():
                raise _Crash(place, at)

        faults.arm_at(fault)
        try:
            lake.reopen()
            if lake.held < plan.number:
                lake.sink.write(plan, lake.lab.timeline, chunks)
        except _Crash:
            return False
        return True


class _Seen:
    """The places of a plan at which there was a crash, of those *wanted*, in each table so *often* at most."""

    def __init__(self, wanted: Collection[str], often: int) -> None:
        self._wanted = wanted
        self._often = often
        self._all: set[tuple[str, str]] = set()
        self._of_tables: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def is_new(self, place: str, at: str) -> bool:
        """Whether one is wanted there that was not yet; there is one now."""
        table = place, at.partition(" ")[0]
        with self._lock:
            if place not in self._wanted or (place, at) in self._all or self._of_tables[table] == self._often:
                return False
            self._all.add((place, at))
            self._of_tables[table] += 1
            return True


def described(places: Mapping[str, int]) -> str:
    """How often there was a crash at each place, for people."""
    return ", ".join(f"{place} {count}" for place, count in sorted(places.items()))
