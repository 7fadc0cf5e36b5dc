"""How fast rows are copied."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Pace"]


class Pace:
    """Keeps to a number of rows a second, over plans."""

    def __init__(self, rows_per_s: int, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._rows_per_s = rows_per_s
        self._clock_s = clock_s
        self._free_s = 0.0

    def is_free(self) -> bool:
        """Whether more may be copied now."""
        return self._clock_s() >= self._free_s

    def took(self, rows: int) -> None:
        """Takes note of *rows* that were copied."""
        if self._rows_per_s:
            self._free_s = max(self._free_s, self._clock_s()) + rows / self._rows_per_s
