"""Where the targets stand, as a run notes it in the store: who asks the store need not ask the lake.

A target that goes with the connector is noted without a plan, so that a plan which changes nothing of that is not noted.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from connectors.tracking.recorded import STREAM
from historian.errors import HistorianError
from sinks.contract.base import TargetStatus

if TYPE_CHECKING:
    from historian.plans.plans import PlanHead
    from historian.store import Store
    from sinks.contract.base import Sink

__all__ = ["TargetNotes", "noted_targets"]

_log = logging.getLogger(__name__)
_PAUSE_S = 5.0
_SHARE = 50
_LONGEST_S = 300.0
"""A look at all targets of very many tables takes its time: it comes so many times as seldom as it takes long, but within the longest pause."""
_FIELDS = ("table", "target", "kind", "plan", "writer", "stopped", "ended", "path")


class TargetNotes:
    """Notes where the targets of *sinks* stand while a run goes on, and at its end."""

    def __init__(self, store: Store, sinks: Sequence[Sink]) -> None:
        self._store = store
        self._sinks = sinks
        self._noted = store.targets()
        self._stopped: dict[str, str] = {}
        self._is_due = True
        self._next_s = 0.0

    def written(self) -> None:
        """Notes it behind a plan, if it has changed: at once where a table stops or goes on, else every few seconds at most."""
        stopped = {table: reason for sink in self._sinks for table, reason in sink.stopped().items()}
        self._is_due = True
        self.look(at_once=stopped != self._stopped)
        self._stopped = stopped

    def look(self, *, at_once: bool = False) -> None:
        """Notes what plans have changed since it was noted; where nothing has, this costs nothing. A run does not end for it."""
        if not self._is_due or (not at_once and time.monotonic() < self._next_s):
            return
        self._is_due, begun_s = False, time.monotonic()
        self._next_s = begun_s + _PAUSE_S
        try:
            text = json.dumps([row for sink in self._sinks for row in _rows(sink.known())])
            if text != self._noted:
                self._store.note_targets(text)
                self._noted = text
            now_s = time.monotonic()
            self._next_s = now_s + min(max(_PAUSE_S, _SHARE * (now_s - begun_s)), _LONGEST_S)
        except HistorianError as error:
            self._is_due = True
            _log.warning("where the targets stand cannot be noted: %s", error)


def _rows(targets: Sequence[TargetStatus]) -> list[list[object]]:
    """The newest plan that targets of a sink hold is left out: sinks hear nothing of plans without tables, which all targets hold too."""
    newest = max((target.plan for target in targets), default=0)
    return [[None if n == "plan" and t.plan == newest else getattr(t, n) for n in _FIELDS] for t in targets]


def noted_targets(store: Store, newest: PlanHead | None = None) -> list[TargetStatus] | None:
    """Where the targets stand as the last run noted it, up to the last plan that it wrote; None: none has noted it.

    Args:
        newest: plan of the store, so that it is not read again.
    """
    text = store.targets()
    if not text:
        return None
    last, made = store.progress(STREAM), {0: ("", 0)}
    if newest is not None:
        made[newest.number] = (str(newest.end), newest.system_time_us)
    found = []
    for row in json.loads(text):
        fields = dict(zip(_FIELDS, row, strict=False))  # earlier releases noted no path
        number = last if fields["plan"] is None else fields["plan"]
        if number not in made:
            plan = store.plan_head(number)
            made[number] = ("", 0) if plan is None else (str(plan.end), plan.system_time_us)
        position, made_us = made[number]
        found.append(TargetStatus(**{**fields, "plan": number, "position": position, "made_us": made_us}))
    return found
