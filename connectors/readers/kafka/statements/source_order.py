"""The order of statements and rows in their source's log, where messages tell files and positions.

Topics share no order, and times of the source may be told by the second. Within one server's log a file's number and a position are a total
order. So each statement has a moment that is later than those of all before it, about when it was executed. A row has its own time, moved to the
side of each statement on which its place is. Whoever compares these moments sees the log's order.

A log is known by the server that executed a change, and by the name of its files. Yet a replica's log has changes of its source, under the same
name, at other places. So that both places are of one log is shown by numbers of GTIDs, or by a partition that goes on. Of what is shown to be of
another log, times decide, or the run ends where these are told by the second and may be of either side.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.kafka.messages.source_places import SourcePlace, numbers_of
from connectors.readers.kafka.statements.logs import StatedLog, seconds_of
from connectors.readers.kafka.statements.refusals import (
    NEXT_STEP,
    begun_anew,
    check_not_anew,
    check_numbers,
    check_seconds,
)
from historian.errors import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.messages.source_places import Newest

__all__ = ["SourceOrder"]

_SECOND_US = 1_000_000
_FILE_AT = 32
_WRAP = 1 << 31
"""Offsets of a file are told in 32 bits: one that falls by so much has begun anew."""
_BOUNDS = np.iinfo(np.int64)


class SourceOrder:
    """Moments of statements and of rows.

    Args:
        stated: of the statements that were executed before, the moment and the place as text; "" where none was told.
        goes_on: what is read now comes behind all of them in its partition; else it is read once more.
    """

    def __init__(self, stated: Iterable[tuple[int, str]] = (), *, goes_on: bool = True) -> None:
        self._goes_on = goes_on
        self._logs: dict[int, StatedLog] = {}
        self._last_us = -1
        self._transactions: dict[str, int] = {}
        # Of statements at places that have another order than their times: by log and place the moments.
        self._apart: dict[tuple[int, int], int] = {}
        self._moments_us: list[int] | None = None
        self._new_us: set[int] = set()
        for moment_us, source in sorted(stated):
            if source:
                place = SourcePlace.parsed(source)
                log = self._log_of(place)
                at = bisect_left(log.places, place.at)
                is_exact = at < len(log.places) and not (place.by_second or log.by_second[at])
                is_apart = is_exact and moment_us > log.moments_us[at]
                self._take(place, moment_us, by_second=place.by_second, is_apart=is_apart)

    def _take(self, place: SourcePlace, moment_us: int, *, by_second: bool, is_apart: bool = False) -> int:
        self._last_us = max(self._last_us, moment_us)
        if place.gtid:
            self._transactions[place.gtid] = moment_us
        if is_apart:
            self._apart[place.log, place.at] = moment_us
        else:
            self._log_of(place).add(place, moment_us, by_second=by_second)
        return moment_us

    def _log_of(self, place: SourcePlace) -> StatedLog:
        return self._logs.setdefault(place.log, StatedLog(place.server, place.base, place.unnamed_log))

    def state(self, place: SourcePlace, time_us: int, where: str) -> int | None:
        """The moment of a statement that was executed at *time_us*; the same one where it comes again.

        None: it comes again, and the history has nothing of it. It stands before one that came, and their topic has one partition.

        Raises:
            SourceError: the log was begun anew, so that places of it have no order any more.
        """
        self._moments_us = None
        log, by_second = self._log_of(place), time_us % _SECOND_US == 0
        at = bisect_left(log.places, place.at)
        is_there = at < len(log.places) and log.places[at] == place.at
        known_us = self._transactions.get(place.gtid, -1)
        if time_us <= known_us and not is_there:
            return known_us  # another replica has sent it
        if self._goes_on and not is_there and self._came_before(place, time_us, by_second=by_second):
            return None  # another replica has sent it
        if at == len(log.places):
            self._new_us.add(moment_us := max(time_us, self._last_us + 1))
            return self._take(place, moment_us, by_second=by_second)
        if log.is_newer(at, place, time_us, by_second=by_second):
            if by_second or log.by_second[at] or log.counts_anew(at, place):
                raise begun_anew(place, where)
            # Of another replica, whose files have other numbers. Microseconds are the order of rows too.
            return self._take(place, time_us, by_second=False, is_apart=True)
        if is_there:
            return log.moments_us[at]
        if self._goes_on:
            return None
        moment_us = min(time_us, log.moments_us[at] - 1)
        moment_us = max(moment_us, log.moments_us[at - 1]) if at else moment_us
        log.add(place, moment_us, by_second=by_second)
        return moment_us

    def _came_before(self, place: SourcePlace, time_us: int, *, by_second: bool) -> bool:
        """Whether a statement came, of which the history has nothing, and another replica has sent it."""
        log = self._log_of(place)
        # Statements that commit side by side are in one scan, and follow each other.
        is_next = bool(log.places) and 0 <= (place.at >> _FILE_AT) - (log.places[-1] >> _FILE_AT) <= 1
        return any(
            each.came_before(place, time_us, by_second=by_second, but=self._new_us if is_next else ())
            for each in self._logs.values()
            if each.server == place.server
        )

    def check_snapshot(self, place: SourcePlace, time_us: int, where: str) -> None:
        """Refuses a statement of a snapshot that was made at *time_us*, where the log stood at *place*, before statements that were executed earlier.

        Raises:
            SourceError: so it is, and seconds alone are told.
        """
        for log in self._logs.values() if self._goes_on else ():
            at = bisect_left(log.places, place.at)
            is_behind = any(
                by_second and time_us // _SECOND_US > moment_us // _SECOND_US
                for by_second, moment_us in zip(log.by_second[at:], log.moments_us[at:], strict=True)
            )
            if log.unnamed == place.unnamed_log and is_behind:
                raise begun_anew(place, where)

    def has(self, words: Sequence[int]) -> bool:
        """Whether a statement stands at a place, as :func:`.source_places.place_of` has it."""
        log, at = self._logs.get(words[3]), int(numbers_of(np.array([words[1]]), np.array([words[2]]))[0])
        return (log is not None and at in log.places) or (words[3], at) in self._apart

    @property
    def is_empty(self) -> bool:
        """Whether no statement has a place, so that moments of rows are their times."""
        return not self._logs

    @property
    def statement_moments_us(self) -> list[int]:
        """The moments of all statements that have a place, ascending."""
        if self._moments_us is None:
            of_logs = (each for log in self._logs.values() for each in log.moments_us)
            self._moments_us = sorted([*self._apart.values(), *of_logs])
        return self._moments_us

    def check_goes_on(self, words: NDArray[np.int64], times_us: NDArray[np.int64], newest: Newest, where: str) -> None:
        """Refuses changes of a partition that are new, and stand before what came.

        Their log is another one, so that places say nothing of them. What a producer sends again is no later than all that came.
        Where statements have GTIDs of the same server, a change of another replica's log has a greater number.

        Args:
            words: of changes, in their order, as :class:`.repeats.Places` has them.
            newest: of the partition before.
            where: names the partition in errors.

        Raises:
            SourceError: there are such ones, and statements whose time is told by the second.
        """
        if not any(len(log.columns.seconds.told) for log in self._logs.values()):
            return
        compared = {server for log in self._logs.values() for server in log.columns.of_servers}
        told = words[:, 0] > 0
        for server in set(np.unique(words[told, 1]).tolist()):
            mine = told & (words[:, 1] == server)
            begin_number, begin = newest[1:3] if newest.server == server else (_BOUNDS.min, _BOUNDS.min)
            places = np.concatenate(([begin], numbers_of(words[mine, 3], words[mine, 4])))
            latest_us = np.maximum.accumulate(np.concatenate(([newest.time_us], times_us[mine])))
            is_later = latest_us[1:] > latest_us[:-1]
            highest = np.maximum.accumulate(places)[:-1]
            is_anew = (places[1:] < highest) & is_later
            if server in compared:
                most = np.maximum.accumulate(np.concatenate(([begin_number], words[mine, 2])))[:-1]
                is_anew &= words[mine, 2] < most
            else:
                is_anew |= (highest >> _FILE_AT == places[1:] >> _FILE_AT) & (places[:-1] - places[1:] > _WRAP)
            if is_anew.any():
                raise SourceError(
                    "the source's log was begun anew: changes that are new stand before what came",
                    where=where,
                    expected="one server's log, whose files are numbered on; or GTIDs that go on, in rows and statements",
                    found=f"offset {int(words[mine, 4][is_anew][0])} of file {int(words[mine, 3][is_anew][0])}",
                    next_step=NEXT_STEP,
                )

    def moment(self, words: Sequence[int], time_us: int, where: str, newest: Callable[[], Newest] | None = None) -> int:
        """That of one row, as :meth:`moments` has it of many: sooner where all statements are of one log and nothing shows another one."""
        number, log = next(iter(self._logs.items()), (0, None))
        if (
            log is not None
            and len(self._logs) == 1
            and not self._apart
            and words[0]
            and words[3] in (number, log.unnamed)
        ):
            found_us = log.moment(words, time_us)
            if found_us is not None:
                return found_us
        return int(self.moments(np.array([words], np.int64), np.array([time_us], np.int64), where, newest)[0])

    def moments(
        self,
        words: NDArray[np.int64],
        times_us: NDArray[np.int64],
        where: str,
        newest: Callable[[], Newest] | None = None,
    ) -> NDArray[np.int64]:
        """Of rows the moments, in UTC microseconds, which are their times where no place is told.

        Args:
            words: of each row, as :func:`.source_places.place_of` has them; zeros where no place is told.
            where: names the partition in errors.
            newest: tells how far the partition has come before; None: whether the log was begun anew is not asked.

        Raises:
            SourceError: a row may be on either side of a statement, whose log is another one and tells seconds alone. Or it is much later than
                a statement before which it stands, so that the log was begun anew.
        """
        found = times_us.astype(np.int64, copy=True)
        logs = self._named(np.where(words[:, 0] > 0, words[:, 3], 0))
        if self._apart:
            apart_us = np.fromiter(self._apart.values(), np.int64)
            check_seconds(times_us, seconds_of(apart_us, np.zeros(len(apart_us), np.bool_)), where)
        for number, log in self._logs.items():
            mine = np.flatnonzero(logs == number)
            moments_us, by_second = log.columns.moments_us, log.columns.by_second
            check_seconds(times_us[logs != number], log.columns.seconds, where)
            if not len(mine) or not len(moments_us):
                continue
            places, mine_us = numbers_of(words[mine, 1], words[mine, 2]), times_us[mine]
            is_same, is_another = log.compared(places, words[mine, 4], words[mine, 5])
            if is_another.any():
                check_seconds(mine_us[is_another], log.columns.seconds, where)
                check_numbers(log, words[mine[is_another]], mine_us[is_another], where)
            # Microseconds of both tell the order themselves, in whichever log they are. Of rows of a snapshot a second tells it too, but for one alone.
            is_told_alone = mine_us % _SECOND_US == 0
            goes_by_place = is_same | (is_told_alone & (words[mine, 4] != 0))
            seconds = np.where(is_told_alone, mine_us // _SECOND_US, -1)
            behind = np.searchsorted(log.columns.places, places, "right")
            before, after = np.maximum(behind - 1, 0), np.minimum(behind, len(moments_us) - 1)
            follows_before, follows_after = (
                ~is_another & (goes_by_place | by_second[at] | (moments_us[at] // _SECOND_US == seconds))
                for at in (before, after)
            )
            lowest = np.where(follows_before & (behind > 0), moments_us[before], _BOUNDS.min)
            highest = np.where(follows_after & (behind < len(moments_us)), moments_us[after] - 1, _BOUNDS.max)
            is_anew = ~is_told_alone & ~by_second[after] & (mine_us // _SECOND_US > highest // _SECOND_US + 1)
            if newest is not None and is_anew.any():
                check_not_anew(words[mine], mine_us, np.flatnonzero(is_anew), int(moments_us.max()), newest(), where)
            # Statements without edits may have the moment of the one before.
            found[mine] = np.maximum(np.minimum(mine_us, highest), lowest)
        return found

    def _named(self, logs: NDArray[np.int64]) -> NDArray[np.int64]:
        """*logs* of rows; of those that name no server the one of their files' name, where there is one."""
        named: dict[int, list[int]] = {}
        for number, log in self._logs.items():
            named.setdefault(log.unnamed, []).append(number)
        for unnamed, numbers in named.items():
            if len(numbers) == 1:
                logs[logs == unnamed] = numbers[0]
        return logs
