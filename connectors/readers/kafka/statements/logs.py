"""Statements of one log of a source, in its order, and where rows stand among them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.messages.source_places import SourcePlace

__all__ = ["Seconds", "StatedLog", "seconds_of"]

_SECOND_US = 1_000_000
_FILE_AT = 32
_BOUNDS = np.iinfo(np.int64)


class Seconds(NamedTuple):
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
    seconds: Seconds
    of_servers: dict[int, _OfServer]


@dataclass(slots=True)
class StatedLog:
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
            self._columns = _Columns(places, moments_us, by_second, seconds_of(moments_us, by_second), of_servers)
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

    def compared(
        self, places: NDArray[np.int64], servers: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of which rows numbers of GTIDs have the order among statements that their places have, and of which another one; neither where none tell."""
        is_same, is_another = np.zeros(len(places), np.bool_), np.zeros(len(places), np.bool_)
        for server in set(np.unique(servers).tolist()):
            stated = self.columns.of_servers.get(server)
            if stated is None:
                continue
            mine = servers == server
            behind = np.searchsorted(stated.places, places[mine], "right")
            is_another[mine] = (numbers[mine] < stated.least[behind]) | (numbers[mine] > stated.most[behind])
            is_same[mine] = ~is_another[mine]
        return is_same, is_another


def seconds_of(moments_us: NDArray[np.int64], by_second: NDArray[np.bool_]) -> Seconds:
    """Those of statements' moments."""
    return Seconds(*(np.unique(each // _SECOND_US) for each in (moments_us, moments_us[by_second])))
