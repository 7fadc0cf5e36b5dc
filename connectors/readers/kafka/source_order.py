"""The order of statements and rows in their source's log, where messages tell files and positions.

Topics share no order, and times of the source may be told by the second. Within one server's log a file's number and a position are a total
order. So each statement has a moment that is later than those of all before it, about when it was executed. A row has its own time, moved to the
side of each statement on which its place is. Whoever compares these moments sees the log's order.

A log is known by the server that executed a change, and by the name of its files. Yet a replica's log has changes of its source, under the same
name, at other places. So that both places are of one log is shown by numbers of GTIDs, or by a partition that goes on. Of what is shown to be of
another log, times decide, or the run ends where these are told by the second and may be of either side.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from connectors.readers.kafka.messages.source_places import SourcePlace, numbers_of
from historian.errors import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.repeats import Newest

__all__ = ["SourceOrder"]

_SECOND_US = 1_000_000
_ANOTHER = "leave source.schema_topic out, or start another connector with a store and targets of its own"
_FILE_AT = 32
_WRAP = 1 << 31
"""Offsets of a file are told in 32 bits: one that falls by so much has begun anew."""
_BOUNDS = np.iinfo(np.int64)


class _Seconds(NamedTuple):
    """Seconds of statements, once each and ascending: of all, and of those whose time was told so."""

    all: NDArray[np.int64]
    told: NDArray[np.int64]


class _OfServer(NamedTuple):
    """Of statements with GTIDs of one server the places; between which numbers of GTIDs each number of places before is, at least and at most."""

    places: NDArray[np.int64]
    least: NDArray[np.int64]
    most: NDArray[np.int64]


class _Columns(NamedTuple):
    """Statements of a log, a row each, and what is looked up of them."""

    places: NDArray[np.int64]
    moments_us: NDArray[np.int64]
    by_second: NDArray[np.bool_]
    seconds: _Seconds
    of_servers: dict[int, _OfServer]


@dataclass(slots=True)
class _Log:
    """Statements of one log, in its order.

    Attributes:
        server, base: as of :class:`.SourcePlace`; ``unnamed``: as :attr:`.SourcePlace.unnamed_log`.
        places: of each the place as a number; ``moments_us``; ``by_second``: whether its time was told so.
        servers, numbers: of their transactions; 0 of a statement without GTID.
    """

    server: str
    base: str
    unnamed: int
    places: list[int] = field(default_factory=list)
    moments_us: list[int] = field(default_factory=list)
    by_second: list[bool] = field(default_factory=list)
    servers: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    _columns: _Columns | None = field(default=None)

    @property
    def columns(self) -> _Columns:
        """The lists as arrays."""
        if self._columns is None:
            places, moments_us = np.array(self.places, np.int64), np.array(self.moments_us, np.int64)
            by_second = np.array(self.by_second, np.bool_)
            servers, numbers = np.array(self.servers, np.int64), np.array(self.numbers, np.int64)
            of_servers = {}
            for server in set(self.servers) - {0}:
                stated = servers == server
                of_servers[server] = _OfServer(
                    places=places[stated],
                    least=np.concatenate(([_BOUNDS.min], np.maximum.accumulate(numbers[stated]))),
                    most=np.concatenate((np.minimum.accumulate(numbers[stated][::-1])[::-1], [_BOUNDS.max])),
                )
            self._columns = _Columns(places, moments_us, by_second, _seconds(moments_us, by_second), of_servers)
        return self._columns

    def add(self, place: SourcePlace, moment_us: int, *, by_second: bool) -> None:
        """Adds a statement, unless one stands at its place: one statement about several tables is several ones."""
        at = bisect_left(self.places, place.at)
        if at == len(self.places) or self.places[at] != place.at:
            server, number = place.transaction if place.gtid else (0, 0)
            self._columns = None
            self.places.insert(at, place.at)
            self.moments_us.insert(at, moment_us)
            self.by_second.insert(at, by_second)
            self.servers.insert(at, server)
            self.numbers.insert(at, number)

    def is_newer(self, at: int, place: SourcePlace, time_us: int, *, by_second: bool) -> bool:
        """Whether a statement was executed behind that of the number *at*, at whose place or before which it stands."""
        if not (by_second or self.by_second[at]):
            return time_us > self.moments_us[at]
        server, number = place.transaction
        if place.gtid and self.servers[at] == server:
            return number > self.numbers[at]
        return time_us // _SECOND_US > self.moments_us[at] // _SECOND_US

    def moment(self, words: Sequence[int], time_us: int) -> int | None:
        """As :meth:`SourceOrder.moments` of one row of this log; None where its GTID or its time may show another one."""
        place = (words[1] << _FILE_AT) + min(words[2], (1 << _FILE_AT) - 1)
        stated = self.columns.of_servers.get(words[4])
        if stated is not None:
            at = int(np.searchsorted(stated.places, place, "right"))
            if not stated.least[at] <= words[5] <= stated.most[at]:
                return None
        is_told_alone, second = time_us % _SECOND_US == 0, time_us // _SECOND_US
        goes_by_place = stated is not None or (is_told_alone and words[4] != 0)

        def follows(at: int) -> bool:
            is_of_second = is_told_alone and self.moments_us[at] // _SECOND_US == second
            return goes_by_place or self.by_second[at] or is_of_second

        behind, count = bisect_right(self.places, place), len(self.places)
        found_us = time_us
        if behind < count and follows(behind):
            highest = self.moments_us[behind] - 1
            if not (is_told_alone or self.by_second[behind]) and second > highest // _SECOND_US + 1:
                return None
            found_us = min(time_us, highest)
        return max(found_us, self.moments_us[behind - 1]) if behind and follows(behind - 1) else found_us

    def came_before(self, place: SourcePlace, time_us: int, *, by_second: bool, but: Collection[int]) -> bool:
        """Whether a statement has a lower number of a GTID than another one of its server, and is no later: that came behind it.

        *but*: moments of those that say nothing.
        """
        server, number = place._replace(base=self.base).transaction if place.gtid else (0, 0)
        for theirs, their_number, moment_us, told in zip(
            self.servers, self.numbers, self.moments_us, self.by_second, strict=True
        ):
            unit_us = _SECOND_US if by_second or told else 1
            is_behind = server == theirs and number < their_number and time_us // unit_us <= moment_us // unit_us
            if server and is_behind and moment_us not in but:
                return True
        return False

    def counts_anew(self, at: int, place: SourcePlace) -> bool:
        """Whether a statement that is newer than those from the number *at* on has no greater number of a GTID than one of them."""
        server, number = place.transaction if place.gtid else (0, 0)
        behind = zip(self.servers[at:], self.numbers[at:], strict=True)
        return any(server and server == theirs and number <= at_number for theirs, at_number in behind)


class SourceOrder:
    """Moments of statements and of rows.

    Args:
        stated: of the statements that were executed before, the moment and the place as text; "" where none was told.
        goes_on: what is read now comes behind all of them in its partition; else it is read once more.
    """

    def __init__(self, stated: Iterable[tuple[int, str]] = (), *, goes_on: bool = True) -> None:
        self._goes_on = goes_on
        self._logs: dict[int, _Log] = {}
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

    def _log_of(self, place: SourcePlace) -> _Log:
        return self._logs.setdefault(place.log, _Log(place.server, place.base, place.unnamed_log))

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
                raise _begun_anew(place, where)
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
                raise _begun_anew(place, where)

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
                    next_step=_ANOTHER,
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
            _check_seconds(times_us, _seconds(apart_us, np.zeros(len(apart_us), np.bool_)), where)
        for number, log in self._logs.items():
            mine = np.flatnonzero(logs == number)
            moments_us, by_second = log.columns.moments_us, log.columns.by_second
            _check_seconds(times_us[logs != number], log.columns.seconds, where)
            if not len(mine) or not len(moments_us):
                continue
            places, mine_us = numbers_of(words[mine, 1], words[mine, 2]), times_us[mine]
            is_same, is_another = _compared(log, places, words[mine, 4], words[mine, 5])
            if is_another.any():
                _check_seconds(mine_us[is_another], log.columns.seconds, where)
                _check_numbers(log, words[mine[is_another]], mine_us[is_another], where)
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
                _check_not_anew(words[mine], mine_us, np.flatnonzero(is_anew), int(moments_us.max()), newest(), where)
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


def _begun_anew(place: SourcePlace, where: str) -> SourceError:
    return SourceError(
        "the source's log was begun anew: a statement stands before one that was executed earlier",
        where=where,
        expected="one log, whose files are numbered on",
        found=str(place),
        next_step=_ANOTHER,
    )


def _compared(
    log: _Log, places: NDArray[np.int64], servers: NDArray[np.int64], numbers: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of which rows numbers of GTIDs have the order among statements that their places have, and of which another one; neither where none tell."""
    is_same, is_another = np.zeros(len(places), np.bool_), np.zeros(len(places), np.bool_)
    for server in set(np.unique(servers).tolist()):
        stated = log.columns.of_servers.get(server)
        if stated is None:
            continue
        mine = servers == server
        behind = np.searchsorted(stated.places, places[mine], "right")
        is_another[mine] = (numbers[mine] < stated.least[behind]) | (numbers[mine] > stated.most[behind])
        is_same[mine] = ~is_another[mine]
    return is_same, is_another


def _seconds(moments_us: NDArray[np.int64], by_second: NDArray[np.bool_]) -> _Seconds:
    return _Seconds(*(np.unique(each // _SECOND_US) for each in (moments_us, moments_us[by_second])))


def _any_in(values: NDArray[np.int64], found: NDArray[np.int64]) -> bool:
    """Whether one of *values* is among *found*, which ascend."""
    if not len(values) or not len(found):
        return False
    at = np.minimum(np.searchsorted(found, values), len(found) - 1)
    return bool((found[at] == values).any())


def _check_seconds(times_us: NDArray[np.int64], stated: _Seconds, where: str) -> None:
    """Refuses rows of another log that are of a statement's second, where either tells no more."""
    seconds = times_us // _SECOND_US
    if _any_in(seconds, stated.told) or _any_in(seconds[times_us % _SECOND_US == 0], stated.all):
        raise SourceError(
            "a row and a statement of one second stand in logs of different servers, or one tells no place: the row may be on either side",
            where=where,
            expected="places in one server's log, or microseconds, as MySQL 8 with GTIDs tells them",
            next_step=_ANOTHER,
        )


def _check_not_anew(
    words: NDArray[np.int64],
    times_us: NDArray[np.int64],
    doubtful: NDArray[np.intp],
    last_us: int,
    newest: Newest,
    where: str,
) -> None:
    """Refuses rows that are much later than a statement before which they stand, where both tell microseconds, unless their partition goes on with them.

    Then the server's clock was set. Rows of *doubtful* numbers are so late; *last_us* is of the last statement.
    """
    for row in doubtful.tolist():
        server, number = words[row, 4:6].tolist()
        before = words[:row, 5][words[:row, 4] == server].tolist()
        before += [newest.number] if newest.server == server else []
        if number < max(before) if before else times_us[row] > last_us:
            raise SourceError(
                "the source's log was begun anew: a row stands before a statement that was executed earlier",
                where=where,
                expected="one log, whose files and transactions are numbered on",
                found=f"transaction {number} of {int(times_us[row])} µs",
                next_step=_ANOTHER,
            )


def _check_numbers(log: _Log, words: NDArray[np.int64], times_us: NDArray[np.int64], where: str) -> None:
    """Refuses rows of another log whose seconds have another order among statements than numbers of their GTIDs have."""
    for moment_us, by_second, server, number in zip(
        log.moments_us, log.by_second, log.servers, log.numbers, strict=True
    ):
        theirs = (words[:, 4] == server) & (by_second | (times_us % _SECOND_US == 0))
        if ((words[theirs, 5] > number) != (times_us[theirs] > moment_us)).any():
            raise SourceError(
                "a row stands in another log than a statement, and its time and its GTID disagree on which side of it the row is",
                where=where,
                expected="places in one server's log, or microseconds, as MySQL 8 with GTIDs tells them",
                next_step=_ANOTHER,
            )
