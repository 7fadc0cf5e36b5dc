"""When a run makes its next plan: how long it waits for that, or that the plan is made while the one before it is written."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from historian.plans.plans import LEAST_MESSAGE_BYTES, PartitionRange
from historian.positions import KAFKA

if TYPE_CHECKING:
    from connectors.pipeline.decoding import PlannedLog
    from connectors.tracking.tracker import Tracker
    from historian.plans.plans import Plan

__all__ = ["FIRST_BYTES", "PlansAhead", "Silence", "pause", "rest"]

_log = logging.getLogger(__name__)
_POLL_S = 1.0
_LOOK_S, _LONGEST_LOOK_S = 5.0, 60.0
FIRST_BYTES = 32_000_000
"""Of log in a run's first plan at most. Until that is scanned there is nothing to write, so the sizes of the first plans double up to the limit."""


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


class Silence:
    """How long a log that is silent is believed to be so: longer behind each look that found nothing. A server that has gone away in silence is missed by then."""

    def __init__(self) -> None:
        self._next_s = _LOOK_S

    def broken(self) -> None:
        """Notes that the log went on."""
        self._next_s = _LOOK_S

    def look_in_s(self) -> float:
        """When to ask store and source again, in seconds from now, of which each call takes one."""
        found_s, self._next_s = self._next_s, min(4 * self._next_s, _LONGEST_LOOK_S)
        return found_s


def rest(
    rest_s: float,
    *,
    longest_s: float,
    wait: Callable[[float], bool],
    is_wanted: Callable[[], bool],
    clock_s: Callable[[], float] = time.monotonic,
) -> None:
    """Waits *rest_s* seconds for a log to go on.

    Args:
        longest_s: of one wait. The log's next change ends it at once, but what *is_wanted* asks does not.
        wait: for the log, so many seconds at most; true: it goes on.
        is_wanted: whether the run has something else to do, asked behind each wait.
    """
    until_s, wait_s = clock_s() + rest_s, _POLL_S
    while not wait(wait_s) and (left_s := until_s - clock_s()) > 0 and not is_wanted():
        wait_s = min(longest_s, left_s)


class PlansAhead:
    """The plans of a tracker, one of which may be there before it is asked for. A scan is one thread, which waits for the source. Close it at the end.

    Plans are stored as they are made, so one that nobody takes any more is one of the next run's first. Only where much log stands behind the
    plan before it: near the log's end a plan that is made later takes more. Not where rows are copied: which of them a
    plan has depends on what sinks hold by then.

    Args:
        check: asked right before each plan is made; raises where the connector is another run's by now.
        log_of: a plan with its log, as the tracker's reader has it right behind the scan.
        decode: one with its rows, so that they are there, too: commits and the last of several threads leave cores to it. It uses neither tracker
            nor reader, and gives up where its second argument says so.
        stopping: set where no further plan will be asked for.
        limit_bytes, until: of each plan, see :meth:`connectors.tracking.tracker.Tracker.plan_after`.
        first_bytes: the first plan's limit; each that was full doubles it, up to *limit_bytes*.
        enough_bytes: of log behind a plan, or as much as the next plan takes, so that that one is made ahead.
    """

    def __init__(  # noqa: PLR0913 each by name, and each is wanted
        self,
        tracker: Tracker,
        check: Callable[[], None],
        *,
        log_of: Callable[[Plan], PlannedLog],
        decode: Callable[[PlannedLog, Callable[[], bool]], PlannedLog],
        stopping: threading.Event,
        limit_bytes: int,
        first_bytes: int,
        enough_bytes: int,
        until: str | None,
    ) -> None:
        self._tracker, self._check, self._log_of, self._decode = tracker, check, log_of, decode
        self._stopping = stopping
        self._limit_bytes, self._enough_bytes, self._until = limit_bytes, enough_bytes, until
        self._next_bytes = self._asked_bytes = min(first_bytes, limit_bytes)
        self._behind: int | None = None
        self._made: _Made | None = None

    def plan_after(self, number: int) -> PlannedLog | None:
        """The plan behind plan *number*, to be closed. Raises what :meth:`connectors.tracking.tracker.Tracker.plan_after`, *check* and *decode* do, whoever asked them."""
        made, self._behind = self._made, None
        if made is not None and made.behind == number:
            self._made = None
            if (planned := made.taken()) is not None:
                return planned  # Where there was none, the log may have gone on since.
        self.close()
        return self._make(number)

    def _make(self, number: int) -> PlannedLog | None:
        # Versions and plans are stored now, which a run that was suspended would do beside the connector's new owner.
        self._check()
        self._asked_bytes = self._next_bytes
        plan = self._tracker.plan_after(number, limit_bytes=self._asked_bytes, until=self._until)
        if plan is None:
            return None
        if self.is_full(plan):
            self._next_bytes = min(2 * self._asked_bytes, self._limit_bytes)
        return self._log_of(plan)

    def is_full(self, plan: Plan) -> bool:
        """Whether the log goes on behind the plan that was made last, as far as is known: it took all that it was to take."""
        if plan.end.flavor == KAFKA:
            messages = sum(each.end - each.start for each in plan.ranges if isinstance(each, PartitionRange))
            is_many = messages >= max(1, self._asked_bytes // LEAST_MESSAGE_BYTES)
            return is_many or sum(each.size_bytes for each in plan.ranges) >= self._asked_bytes
        return plan.start.file != plan.end.file or plan.end.offset - plan.start.offset >= self._asked_bytes

    def wanted_behind(self, plan: Plan) -> None:
        """Tells that the plan behind *plan*, whose rows are about to be written, will be asked for next."""
        reader = self._tracker.reader
        copies = self._tracker.copier is not None or any(table.copy is not None for table in plan.tables)
        if not copies and reader.waiting_bytes(plan.end) >= min(self._enough_bytes, self._next_bytes):
            self._behind = plan.number

    @contextmanager
    def making(self, number: int) -> Iterator[None]:
        """While plan *number* is written. Where the one behind it is wanted it is made meanwhile, and the ``with`` ends when it is there; its rows may come later.

        Until then nobody else may use tracker and reader; copies of the reader are others' own. An error of the writing waits for the scan too,
        which reads as much log as a plan takes, or waits for a server up to its timeouts.
        """
        if self._behind != number:
            yield
            return
        self.close()
        made = self._made = _Made(number, self._make, self._decode, self._stopping)
        try:
            yield
        except BaseException:
            if (error := made.scanned()) is not None:  # The writing's is the one that is told.
                _log.debug("the plan behind plan %d could not be made either: %s", number, error)
            self.close()
            raise
        made.scanned()

    def close(self) -> None:
        """Gives up what is made and not taken, whose scan is waited for."""
        made, self._made = self._made, None
        if made is not None:
            made.close()


class _Made:
    """A plan behind plan *behind* that a thread makes, and decodes then."""

    def __init__(
        self,
        behind: int,
        make: Callable[[int], PlannedLog | None],
        decode: Callable[[PlannedLog, Callable[[], bool]], PlannedLog],
        stopping: threading.Event,
    ) -> None:
        self.behind = behind
        self._stopping = stopping
        self._is_given_up = False
        self._pool = ThreadPoolExecutor(1, "historian plan")
        self._plan = self._pool.submit(make, behind)

        def with_rows() -> PlannedLog | None:
            planned = self._plan.result()
            return None if planned is None or self._gives_up() else decode(planned, self._gives_up)

        self._rows = self._pool.submit(with_rows)

    def _gives_up(self) -> bool:
        return self._is_given_up or self._stopping.is_set()

    def scanned(self) -> BaseException | None:
        """Waits for the plan; gives its error."""
        return self._plan.exception()

    def taken(self) -> PlannedLog | None:
        """The plan with its rows, where they were not given up. Raises what making either raised."""
        try:
            return self._rows.result() or self._plan.result()
        except BaseException:
            self._is_given_up = True
            raise
        finally:
            self._pool.shutdown()

    def close(self) -> None:
        """Ends the thread and frees the rows."""
        self._is_given_up = True
        self._pool.shutdown()
        if self._rows.exception() is None and (planned := self._rows.result()) is not None:
            planned.close()
