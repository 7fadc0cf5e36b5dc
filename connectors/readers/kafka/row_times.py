"""When rows of a table changed in one partition, by offset: where a statement that another partition brings has to be looked for."""

from __future__ import annotations

from array import array
from bisect import bisect_left

__all__ = ["RowTimes"]


class RowTimes:
    """Of each time that is later than all before, the offset of the first row that has it."""

    def __init__(self) -> None:
        self._times, self._offsets = array("q"), array("q")

    def note(self, time_us: int, offset: int) -> None:
        """Notes the next row."""
        if not self._times or time_us > self._times[-1]:
            self._times.append(time_us)
            self._offsets.append(offset)

    def first_at(self, time_us: int) -> tuple[int, int] | None:
        """The offset of the first row from *time_us* on and its own time; None where there is none, or none before it."""
        at = bisect_left(self._times, time_us)
        return (self._offsets[at], self._times[at]) if 0 < at < len(self._times) else None
