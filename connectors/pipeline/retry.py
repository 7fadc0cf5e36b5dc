"""What may pass ends an attempt of a run, not the run: a server's restart, a store or an object storage out of reach."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from historian.errors import HistorianError, LeaseHeld

__all__ = ["Failure", "retried"]

T = TypeVar("T")

_FIRST_S, _LONGEST_S = 1.0, 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An attempt that failed, and will be made again.

    Attributes:
        error: what ended it.
        number: of the attempt, counted from the last one that wrote a plan.
        pause_s: until the next one.
    """

    error: HistorianError
    number: int
    pause_s: float

    def __str__(self) -> str:
        return f"attempt {self.number} failed: {self.error}; tries again in {self.pause_s:.0f} s"


def retried(
    attempt: Callable[[], T],
    *,
    limit_s: float,
    progress: Callable[[], int],
    wait: Callable[[float], bool],
    report: Callable[[Failure], None],
    clock_s: Callable[[], float] = time.monotonic,
    uniform: Callable[[float, float], float] = random.uniform,
) -> T | None:
    """What *attempt* returns, which is made again while it fails with what may pass.

    Pauses double from a second up to a minute, each shortened at random by up to a half: many runs do not come back
    to a server at once.

    Args:
        limit_s: how long attempts may fail before the last error is raised; ``inf``: for ever, 0: there is one attempt.
        progress: a number that changes where an attempt gets on; counts and pauses begin anew then.
        wait: for seconds; true ends the attempts, and None is returned.
        report: is told of each attempt that failed and is made again.

    Raises:
        HistorianError: what may not pass; or it has not passed in *limit_s*. Another run's lease is not waited for.
    """
    number, since_s = 0, clock_s()
    while True:
        before = progress()
        try:
            return attempt()
        except HistorianError as error:
            if progress() != before or not number:
                number, since_s = 0, clock_s()
            left_s = since_s + limit_s - clock_s()
            if not error.retryable or isinstance(error, LeaseHeld) or left_s <= 0:
                raise
            number += 1
            longest_s = min(_LONGEST_S, _FIRST_S * 2 ** (number - 1))
            failure = Failure(error=error, number=number, pause_s=min(left_s, longest_s * uniform(0.5, 1)))
        report(failure)
        if wait(failure.pause_s):
            return None
