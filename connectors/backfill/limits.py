"""How much is copied at a time, and how fast."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CopyLimits", "Pace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """How much a plan copies from the source.

    Attributes:
        connections: that read side by side.
        chunk_rows, chunk_bytes: what one of them reads in a plan, about.
        rows_per_s: over all tables; 0: as many as come.
    """

    connections: int = 2
    chunk_rows: int = 200_000
    chunk_bytes: int = 64 << 20
    rows_per_s: int = 0


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
