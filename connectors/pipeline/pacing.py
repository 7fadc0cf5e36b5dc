"""How long a run waits between two plans."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["pause"]

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
