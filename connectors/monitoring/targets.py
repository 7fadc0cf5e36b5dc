"""Where the targets stand, as a run notes it in the store: who asks the store need not ask the lake.

A target that goes with the connector is noted without a plan, so that a plan which changes nothing of that is not noted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sinks.contract.base import TargetStatus

if TYPE_CHECKING:
    from historian.store import Store
    from sinks.contract.base import Sink

__all__ = ["STREAM", "TargetNotes", "noted_targets"]

STREAM = ""
"""Under which name the store knows how far plans are written."""

_PAUSE_S = 5.0
_FIELDS = ("table", "target", "kind", "plan", "writer", "stopped", "ended")


class TargetNotes:
    """Notes where the targets of *sinks* stand, now and then while a run goes on, and at its end."""

    def __init__(self, store: Store, sinks: Sequence[Sink]) -> None:
        self._store = store
        self._sinks = sinks
        self._noted = store.targets()
        self._next_s = 0.0

    def note(self, *, is_last: bool = False) -> None:
        """Notes it, if it has changed: at most every few seconds, and in any case if it *is_last*."""
        if not is_last and time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _PAUSE_S
        last = self._store.progress(STREAM)
        targets = [target for sink in self._sinks for target in sink.known()]
        rows = [[None if n == "plan" and t.plan == last else getattr(t, n) for n in _FIELDS] for t in targets]
        text = json.dumps(rows)
        if text != self._noted:
            self._store.note_targets(text)
            self._noted = text


def noted_targets(store: Store) -> list[TargetStatus] | None:
    """Where the targets stand as the last run noted it, up to the last plan that it wrote; None: none has noted it."""
    text = store.targets()
    if not text:
        return None
    last, made = store.progress(STREAM), {0: ("", 0)}
    found = []
    for row in json.loads(text):
        fields = dict(zip(_FIELDS, row, strict=True))
        number = last if fields["plan"] is None else fields["plan"]
        if number not in made:
            plan = store.plan(number)
            made[number] = ("", 0) if plan is None else (str(plan.end), plan.system_time_us)
        position, made_us = made[number]
        target = TargetStatus(**{**fields, "plan": number, "position": position})
        found.append(replace(target, made_us=made_us))
    return found
