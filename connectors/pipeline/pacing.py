"""When a run makes its next plan: how long it waits for that, or that the plan is made while the one before it is written."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectors.pipeline.decoding import PlannedLog
    from connectors.tracking.tracker import Tracker
    from historian.plans.plans import Plan

__all__ = ["PlansAhead", "pause"]

_log = logging.getLogger(__name__)
_POLL_S = 1.0


def pause(
    until_s: float,
    *,
    wait: Callable[[float], bool],
    is_enough: Callable[[], bool],
    clock_s: Callable[[], float] = time.monotonic,
) -> None:
    """Waits up to a time of *clock_s*, and no longer than there *is_enough* to do, which is asked every second.

    Args:
        wait: for seconds at most; true ends the pause.
    """
    while (left_s := until_s - clock_s()) > 0:
        if wait(min(left_s, _POLL_S)) or (left_s > _POLL_S and is_enough()):
            return


class PlansAhead:
    """The plans of a tracker, one of which may be there before it is asked for. A scan is one thread, which waits for the source.

    Plans are stored as they are made, so one that nobody takes any more is one of the next run's first. Only where much log stands behind the
    plan before it: near the log's end a plan that is made later takes more. Not where rows are copied: which of them a
    plan has depends on what sinks hold by then.

    Args:
        check: asked right before each plan is made; raises where the connector is another run's by now.
        log_of: a plan with its log, as the tracker's reader has it right behind the scan.
        decode: one with its rows, if they are to be decoded ahead, too: commits and the last of several threads leave cores to it.
        limit_bytes, until: of each plan, see :meth:`connectors.tracking.tracker.Tracker.plan_after`.
        enough_bytes: of log behind a plan, so that the next one is made ahead.
    """

    def __init__(
        self,
        tracker: Tracker,
        check: Callable[[], None],
        *,
        log_of: Callable[[Plan], PlannedLog],
        decode: Callable[[PlannedLog], PlannedLog],
        limit_bytes: int,
        enough_bytes: int,
        until: str | None,
    ) -> None:
        self._tracker, self._check, self._log_of, self._decode = tracker, check, log_of, decode
        self._limit_bytes, self._enough_bytes, self._until = limit_bytes, enough_bytes, until
        self._behind: int | None = None
        self._made: tuple[int, Future[PlannedLog | None]] | None = None

    def plan_after(self, number: int) -> PlannedLog | None:
        """The plan behind plan *number*. Raises what :meth:`connectors.tracking.tracker.Tracker.plan_after`, *check* and *decode* do, whoever asked them."""
        made, self._made, self._behind = self._made, None, None
        if made is not None and made[0] == number and (planned := made[1].result()) is not None:
            return planned  # Where there was none, the log may have gone on since.
        return self._make(number)

    def _make(self, number: int) -> PlannedLog | None:
        # Versions and plans are stored now, which a run that was suspended would do beside the connector's new owner.
        self._check()
        plan = self._tracker.plan_after(number, limit_bytes=self._limit_bytes, until=self._until)
        return None if plan is None else self._log_of(plan)

    def _make_ahead(self, number: int) -> PlannedLog | None:
        planned = self._make(number)
        return None if planned is None else self._decode(planned)

    def wanted_behind(self, plan: Plan) -> None:
        """Tells that the plan behind *plan*, whose rows are about to be written, will be asked for next."""
        reader = self._tracker.reader
        copies = self._tracker.copier is not None or any(table.copy is not None for table in plan.tables)
        if not copies and reader.waiting_bytes(plan.end) >= self._enough_bytes:
            self._behind = plan.number

    @contextmanager
    def making(self, number: int) -> Iterator[None]:
        """While plan *number* is written. Where the one behind it is wanted it is made meanwhile, and the ``with`` ends when it is there.

        Until then nobody else may use tracker and reader; copies of the reader are others' own. An error of the writing waits for the scan too,
        which reads as much log as a plan takes, or waits for a server up to its timeouts.
        """
        if self._behind != number:
            yield
            return
        with ThreadPoolExecutor(1, "historian plan") as pool:
            made = pool.submit(self._make_ahead, number)
            self._made = (number, made)
            try:
                yield
            except BaseException:
                if (error := made.exception()) is not None:  # The writing's is the one that is told.
                    _log.debug("the plan behind plan %d could not be made either: %s", number, error)
                raise
