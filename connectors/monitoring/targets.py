"""Where the targets stand, as a run notes it in the store: who asks the store need not ask the lake.

A target that goes with the connector is noted without a plan, so that a plan which changes nothing of that is not noted.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectors.tracking.recorded import STREAM
from historian.errors import HistorianError
from historian.history.stored_timeline import digest_of
from sinks.contract.base import TargetStatus

if TYPE_CHECKING:
    from historian.plans.plans import PlanHead
    from historian.store import Store
    from sinks.contract.base import Sink

__all__ = ["MOST_LISTED", "UP_TO_DATE", "ListedTargets", "TargetNotes", "listed_targets", "noted_targets"]

_log = logging.getLogger(__name__)
_PAUSE_S = 5.0
_SHARE = 50
_LONGEST_S = 300.0
"""A look at all targets of very many tables takes its time: it comes so many times as seldom as it takes long, but within the longest pause."""
_FIELDS = ("table", "target", "kind", "plan", "writer", "stopped", "ended", "path")
_PLAN = _FIELDS.index("plan")
_NOT_UP_TO_DATE = tuple(map(_FIELDS.index, ("stopped", "ended")))

MOST_LISTED = 100
"""Of more targets those that are up to date are counted, and not listed, unless somebody wants all."""

UP_TO_DATE = "up to date"
_STANDINGS = (UP_TO_DATE, "behind", "stopped", "ended")


class TargetNotes:
    """Notes where the targets of *sinks* stand while a run goes on, and at its end."""

    def __init__(self, store: Store, sinks: Sequence[Sink]) -> None:
        self._store = store
        self._sinks = sinks
        self._noted = ""
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
            rows = [row for sink in self._sinks for row in _rows(sink.known())]
            text = json.dumps(rows)
            if (noted := digest_of(text)) != self._noted:
                self._store.note_targets(text, _apart(rows))
                self._noted = noted
            now_s = time.monotonic()
            self._next_s = now_s + min(max(_PAUSE_S, _SHARE * (now_s - begun_s)), _LONGEST_S)
        except HistorianError as error:
            self._is_due = True
            _log.warning("where the targets stand cannot be noted: %s", error)


def _rows(targets: Sequence[TargetStatus]) -> list[list[object]]:
    """The newest plan that targets of a sink hold is left out: sinks hear nothing of plans without tables, which all targets hold too."""
    newest = max((target.plan for target in targets), default=0)
    return [[None if n == "plan" and t.plan == newest else getattr(t, n) for n in _FIELDS] for t in targets]


def _apart(rows: Sequence[list[object]]) -> str:
    """Those of many rows that are not up to date, and how many are; "": there are few."""
    if len(rows) <= MOST_LISTED:
        return ""
    others = [row for row in rows if any(row[at] for at in _NOT_UP_TO_DATE) or row[_PLAN] is not None]
    return json.dumps({"up to date": len(rows) - len(others), "others": others})


@dataclass(frozen=True, slots=True)
class ListedTargets:
    """Where targets stand.

    Attributes:
        listed: those that are told one by one.
        counts: how many of all are :data:`UP_TO_DATE`, behind, stopped and ended, without zeros.
    """

    listed: list[TargetStatus]
    counts: dict[str, int]

    @classmethod
    def of(cls, targets: Iterable[TargetStatus], *, lists_all: bool) -> ListedTargets:
        """*targets*; of more than :data:`MOST_LISTED` those alone that are not up to date, unless it *lists_all*."""
        held = list(targets)
        newest = max((target.plan for target in held), default=0)
        standings = [_standing(target, newest) for target in held]
        counts = Counter(standings)
        if not lists_all and len(held) > MOST_LISTED:
            held = [each for each, standing in zip(held, standings, strict=True) if standing != UP_TO_DATE]
        return cls(held, {name: counts[name] for name in _STANDINGS if counts[name]})


def _standing(target: TargetStatus, newest: int) -> str:
    if target.stopped or target.ended:
        return "stopped" if target.stopped else "ended"
    return UP_TO_DATE if target.plan == newest else "behind"


def listed_targets(store: Store, newest: PlanHead | None = None, *, lists_all: bool) -> ListedTargets | None:
    """What :func:`noted_targets` gives as :meth:`ListedTargets.of` lists it. Targets that are not listed are not read."""
    apart = "" if lists_all else store.targets_apart()
    if not apart:
        noted = noted_targets(store, newest)
        return None if noted is None else ListedTargets.of(noted, lists_all=lists_all)
    held = json.loads(apart)
    others = _Plans(store, newest).targets(held["others"])
    found = ListedTargets.of(others, lists_all=True).counts
    # The newest plan is held by those that are not listed.
    behind = found.pop("behind", 0) + found.pop(UP_TO_DATE, 0)
    counts = {UP_TO_DATE: held["up to date"], "behind": behind, **found}
    return ListedTargets(others, {name: counts[name] for name in _STANDINGS if counts.get(name)})


def noted_targets(store: Store, newest: PlanHead | None = None) -> list[TargetStatus] | None:
    """Where the targets stand as the last run noted it, up to the last plan that it wrote; None: none has noted it.

    Args:
        newest: plan of the store, so that it is not read again.
    """
    text = store.targets()
    return _Plans(store, newest).targets(json.loads(text)) if text else None


class _Plans:
    """The few plans that targets stand at, each read once."""

    def __init__(self, store: Store, newest: PlanHead | None) -> None:
        self._store = store
        self._last = store.progress(STREAM)
        self._made = {0: ("", 0)}
        if newest is not None:
            self._made[newest.number] = (str(newest.end), newest.system_time_us)

    def targets(self, rows: Iterable[Sequence[object]]) -> list[TargetStatus]:
        found = []
        for row in rows:
            fields: dict[str, Any] = dict(zip(_FIELDS, row, strict=False))  # earlier releases noted no path
            number = self._last if fields["plan"] is None else fields["plan"]
            position, made_us = self._of(number)
            found.append(TargetStatus(**{**fields, "plan": number, "position": position, "made_us": made_us}))
        return found

    def _of(self, number: int) -> tuple[str, int]:
        if number not in self._made:
            plan = self._store.plan_head(number)
            self._made[number] = ("", 0) if plan is None else (str(plan.end), plan.system_time_us)
        return self._made[number]
