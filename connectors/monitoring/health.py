"""Whether a run is alive, and whether it is of use: what a supervisor and a load balancer ask for."""

from __future__ import annotations

import time
from collections.abc import Callable

from connectors.config.settings import HttpConfig
from connectors.monitoring.metrics import Metrics
from connectors.monitoring.observer import Observer, WrittenPlan

__all__ = ["Health"]


class Health(Observer):
    """Takes notes of when a run was heard of last.

    Args:
        limits: of silence and lag.
        lag_s: how far the sinks are behind.
        clock_s: a clock that never goes back.
    """

    def __init__(
        self, limits: HttpConfig, lag_s: Callable[[], float], *, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._lag_s = lag_s
        self._clock_s = clock_s
        self._heard_s = clock_s()
        self._is_current = False
        self._has_failed = False

    @classmethod
    def of(cls, limits: HttpConfig, metrics: Metrics) -> Health:
        """The health of the run that *metrics* are of."""
        return cls(limits, metrics.lag_s)

    def dead(self) -> tuple[str, ...]:
        """Why the process should be started anew; (): it should not. One that tries again what may pass is alive."""
        silent_s = self._clock_s() - self._heard_s
        if silent_s <= self._limits.max_silence_s:
            return ()
        return (f"nothing was heard of the run for {silent_s:.0f} s; the limit is {self._limits.max_silence_s:.0f} s",)

    def not_ready(self) -> tuple[str, ...]:
        """Why the targets are not to be relied on; (): they are."""
        reasons = list(self.dead())
        if self._has_failed:
            reasons.append("the run tries again what failed")
        elif not self._is_current:
            reasons.append("the run has written no plan yet, nor seen the end of the log")
        lag_s = self._lag_s()
        if lag_s > self._limits.max_lag_s:
            reasons.append(f"the targets are {lag_s:.0f} s behind; the limit is {self._limits.max_lag_s:.0f} s")
        return tuple(reasons)

    def opened(self) -> None:
        """As of :class:`Observer`."""
        self._heard_s = self._clock_s()

    def closed(self) -> None:
        """As of :class:`Observer`."""
        self._is_current = False

    def written(self, written: WrittenPlan) -> None:  # noqa: ARG002 that there is one is enough
        """As of :class:`Observer`."""
        self._goes_on()

    def waits(self, waiting_bytes: int) -> None:  # noqa: ARG002 as above
        """As of :class:`Observer`."""
        self._goes_on()

    def failed(self, failure: str) -> None:  # noqa: ARG002 it may have names in it, which the page does not tell
        """As of :class:`Observer`."""
        self._heard_s = self._clock_s()
        self._has_failed = True

    def _goes_on(self) -> None:
        self._heard_s = self._clock_s()
        self._is_current, self._has_failed = True, False
