"""When rows of a table changed in one partition, by offset: where a statement that another partition brings has to be looked for."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RowTimes"]


class RowTimes:
    """Of each time that is later than all before, the offset of the first row that has it. Numbers of transactions may stand for times."""

    def __init__(self) -> None:
        self._times, self._offsets = array("q"), array("q")

    def note(self, time_us: int, offset: int) -> None:
        """Notes the next row."""
        if not self._times or time_us > self._times[-1]:
            self._times.append(time_us)
            self._offsets.append(offset)

    def note_all(self, times_us: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        """Notes the next rows, in order."""
        last_us = self._times[-1] if self._times else int(times_us[0]) - 1
        latest_us = np.maximum.accumulate(np.maximum(times_us, last_us))
        is_later = np.diff(latest_us, prepend=last_us) > 0
        self._times.extend(latest_us[is_later].tolist())
        self._offsets.extend(offsets[is_later].tolist())

    def first_from(self, time_us: int) -> int | None:
        """The offset of the first row from *time_us* on; None where there is none."""
        at = bisect_left(self._times, time_us)
        return self._offsets[at] if at < len(self._times) else None

    def last_before(self, offset: int) -> int | None:
        """The latest time of rows before *offset*; None where there is none."""
        at = bisect_left(self._offsets, offset)
        return self._times[at - 1] if at else None

    def first_at(self, time_us: int) -> tuple[int, int] | None:
        """The offset of the first row from *time_us* on and its own time; None where there is none, or none before it."""
        at = bisect_left(self._times, time_us)
        return (self._offsets[at], self._times[at]) if 0 < at < len(self._times) else None

    def first_beyond(self, time_us: int) -> tuple[int, int] | None:
        """The offset of the first row that is later than *time_us*, and its own time; None where there is none."""
        at = bisect_right(self._times, time_us)
        return (self._offsets[at], self._times[at]) if at < len(self._times) else None

    def begins_by(self, offset: int) -> bool:
        """Whether there is a row up to *offset*."""
        return bool(self._offsets) and self._offsets[0] <= offset

    def latest_at(self, offset: int) -> tuple[int, int]:
        """Of the rows up to *offset*, of which there is one, the offset and the time of the latest."""
        at = bisect_right(self._offsets, offset) - 1
        return self._offsets[at], self._times[at]
