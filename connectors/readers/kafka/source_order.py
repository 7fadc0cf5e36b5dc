"""The order of statements and rows in their source's log, where messages tell files and positions.

Topics share no order, and times of the source may be told by the second. Within one server's log a file's number and a position are a total
order. So each statement has a moment that is later than those of all before it, about when it was executed. A row has its own time, moved to the
side of each statement on which its place is. Whoever compares these moments sees the log's order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.kafka.messages.source_places import NO_PLACE, SourcePlace, numbers_of, place_of
from historian.errors import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.located.batches import LocatedRows

__all__ = ["SourceOrder", "row_words"]

_SECOND_US = 1_000_000
_OWN_MOMENTS_US = 1_000
"""Statements of one second that is told alone have moments within so much of it."""
_ANOTHER = "leave source.schema_topic out, or start another connector with a store and targets of its own"


@dataclass(slots=True)
class _Log:
    """Statements of one log, in its order: their places as numbers, and their moments."""

    places: list[int]
    moments_us: list[int]


class SourceOrder:
    """Moments of statements and of rows.

    Args:
        stated: of the statements that were executed before, the moment and the place as text; "" where none was told.
    """

    def __init__(self, stated: Iterable[tuple[int, str]] = ()) -> None:
        self._logs: dict[int, _Log] = {}
        self._last_us = -1
        for moment_us, source in sorted(stated):
            if source:
                self._last_us = max(self._last_us, moment_us)
                place = SourcePlace.parsed(source)
                self._add(self._logs.setdefault(place.log, _Log([], [])), place.at, moment_us)

    @staticmethod
    def _add(log: _Log, place: int, moment_us: int) -> None:
        at = bisect_left(log.places, place)
        if at == len(log.places) or log.places[at] != place:
            log.places.insert(at, place)
            log.moments_us.insert(at, moment_us)

    def state(self, place: SourcePlace, time_us: int, where: str) -> int:
        """The moment of a statement that was executed at *time_us*; the same one where it comes again.

        Raises:
            SourceError: the log was begun anew, so that places of it have no order any more.
        """
        log = self._logs.setdefault(place.log, _Log([], []))
        at = bisect_left(log.places, place.at)
        if at < len(log.places) and log.places[at] == place.at:
            return log.moments_us[at]
        if at < len(log.places):
            # One that comes again, of which the history has nothing, was executed before what stands behind it.
            if time_us >= log.moments_us[at]:
                raise SourceError(
                    "the source's log was begun anew: a statement stands before one that was executed earlier",
                    where=where,
                    expected="one log, whose files are numbered on",
                    found=str(place),
                    next_step=_ANOTHER,
                )
            moment_us = max(time_us, log.moments_us[at - 1]) if at else time_us
        else:
            moment_us = max(time_us, self._last_us + 1)
            self._last_us = moment_us
        self._add(log, place.at, moment_us)
        return moment_us

    def has(self, words: Sequence[int]) -> bool:
        """Whether a statement stands at a place, as :func:`place_of` has it."""
        log = self._logs.get(words[3])
        return log is not None and int(numbers_of(np.array([words[1]]), np.array([words[2]]))[0]) in log.places

    @property
    def is_empty(self) -> bool:
        """Whether no statement has a place, so that moments of rows are their times."""
        return not self._logs

    def moments(self, words: NDArray[np.int64], times_us: NDArray[np.int64], where: str) -> NDArray[np.int64]:
        """Of rows the moments, in UTC microseconds, which are their times where no place is told.

        Args:
            words: of each row, as :func:`place_of` has them; zeros where no place is told.
            where: names the partition in errors.

        Raises:
            SourceError: a row may be on either side of a statement, whose log is another one and tells seconds alone.
        """
        found = times_us.astype(np.int64, copy=True)
        logs = np.where(words[:, 0] > 0, words[:, 3], 0)
        for number, log in self._logs.items():
            moments_us = np.array(log.moments_us, np.int64)
            others = logs != number
            self._check(times_us[others], moments_us, where)
            mine = ~others & (words[:, 0] > 0)
            if not mine.any() or not len(moments_us):
                continue
            behind = np.searchsorted(
                np.array(log.places, np.int64), numbers_of(words[mine, 1], words[mine, 2]), "right"
            )
            bounds = np.iinfo(np.int64)
            lowest = np.concatenate(([bounds.min], moments_us))[behind]
            highest = np.concatenate((moments_us - 1, [bounds.max]))[behind]
            found[mine] = np.minimum(np.maximum(times_us[mine], lowest), highest)
        return found

    @staticmethod
    def _check(times_us: NDArray[np.int64], moments_us: NDArray[np.int64], where: str) -> None:
        by_second = moments_us[moments_us % _SECOND_US < _OWN_MOMENTS_US] // _SECOND_US
        if len(by_second) and np.isin(times_us // _SECOND_US, by_second).any():
            raise SourceError(
                "a row and a statement of one second stand in logs of different servers, or one tells no place: the row may be on either side",
                where=where,
                expected="places in one server's log, or microseconds, as MySQL 8 with GTIDs tells them",
                next_step=_ANOTHER,
            )


def row_words(rows: LocatedRows) -> NDArray[np.int64]:
    """Of rows that compiled code has found what :meth:`SourceOrder.moments` asks for: the server's id is looked up once for rows of one log."""
    held, numbers = rows.places(), rows.program.row_messages[rows.begin : rows.end]
    found = np.column_stack((held[:, 0], held[:, 3], held[:, 4], np.zeros(len(held), np.int64)))
    alone = held[:, 0] == 0
    for log in np.unique(held[~alone, 1]):
        mine = np.flatnonzero(~alone & (held[:, 1] == log))
        ends = [place_of(rows.texts[numbers[at]] or b"") for at in (mine[0], mine[-1])]
        if ends[0] is not None and ends[1] is not None and ends[0][3] == ends[1][3]:
            found[mine, 3] = ends[0][3]
        else:
            alone[mine] = True
    # Snapshots have no place that tells repeats, but one that tells their order.
    for at in np.flatnonzero(alone).tolist():
        found[at] = place_of(rows.texts[numbers[at]] or b"") or NO_PLACE
    return found
