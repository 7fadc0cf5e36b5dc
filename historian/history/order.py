"""Which of many entries a log prefix holds, found by their GTIDs' numbers without asking each entry."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from historian.history.prefix import Prefix
from historian.history.timeline import TimelineEntry
from historian.positions import LogPosition, MariadbGtids, TopicOffsets, WhatWasRead

__all__ = ["Order"]


class Order:
    """Entries in timeline order, by source: a server's (with tag), a domain of MariaDB, or a topic's partition."""

    __slots__ = ("_captures", "_count", "_gtids", "_indices", "_numbers", "_ordinals", "_scattered")

    def __init__(self, entries: Iterable[TimelineEntry]) -> None:
        self._count = 0
        self._numbers: dict[str, list[int]] = {}
        self._ordinals: dict[str, list[int]] = {}
        self._gtids: dict[str, list[str]] = {}
        self._indices: dict[str, list[int]] = {}
        self._captures: list[tuple[int, TimelineEntry]] = []
        self._scattered = False
        for entry in entries:
            self.append(entry)

    def append(self, entry: TimelineEntry) -> None:
        """Adds the next entry."""
        if entry.place is None:
            self._captures.append((self._count, entry))
        elif entry.place.gtid:
            source, number = _parts(entry.place.gtid)
            numbers, ordinals = self._numbers.setdefault(source, []), self._ordinals.setdefault(source, [])
            gtids = self._gtids.setdefault(source, [])
            # A replica that commits in parallel may log transactions of one source in another order than their numbers'.
            self._scattered |= bool(numbers) and (numbers[-1], ordinals[-1]) > (number, entry.place.ordinal)
            # Servers of MariaDB that went apart give a domain's number twice.
            self._scattered |= bool(numbers) and numbers[-1] == number and gtids[-1] != entry.place.gtid
            gtids.append(entry.place.gtid)
            numbers.append(number)
            ordinals.append(entry.place.ordinal)
            self._indices.setdefault(source, []).append(self._count)
        else:
            self._scattered = True
        self._count += 1

    def cut(self, prefix: Prefix, origin: LogPosition) -> int | None:
        """How many entries *prefix* holds, where these are the first ones; None where they are not, or are not known to be.

        Args:
            prefix: covers *origin*.
            origin: where the history begins; a capture there is held by every prefix.
        """
        if self._scattered or not prefix.position.gtids:
            return None
        position = prefix.position.read
        own_source, own_number = _parts(prefix.gtid) if prefix.gtid else ("", 0)
        held, last = 0, -1
        for source, numbers in self._numbers.items():
            intervals = _held(position, source)
            if len(intervals) > 1 or (intervals and numbers[0] < intervals[0][0]):
                return None
            count = bisect_right(numbers, intervals[0][1]) if intervals else 0
            if source == own_source:
                begin, end = bisect_left(numbers, own_number), bisect_right(numbers, own_number)
                # Held by position, where the ordinal decides; or with others between; or another server's number.
                if begin < end and (begin != count or self._gtids[source][begin].lower() != str(prefix.gtid).lower()):
                    return None
                if begin < end:
                    ordinals = self._ordinals[source]
                    count = end if prefix.ordinal is None else bisect_left(ordinals, prefix.ordinal, begin, end)
            if count:
                held += count
                last = max(last, self._indices[source][count - 1])
        for index, entry in self._captures:
            if entry.position is origin or prefix.holds(entry):
                held += 1
                last = max(last, index)
        return held if last < held else None


def _parts(gtid: str) -> tuple[str, int]:
    """A GTID's source and number: ``uuid[:tag]:number``, or ``domain-server-number``; a message's partition and offset."""
    if ":" in gtid:
        source, _, number = gtid.rpartition(":")
        return (source if source.rpartition(":")[2].isdigit() else source.lower()), int(number)  # topics have case
    domain, _, rest = gtid.partition("-")
    return domain, int(rest.rpartition("-")[2])


def _held(position: WhatWasRead, source: str) -> tuple[tuple[int, int], ...]:
    """Intervals of numbers of *source* that a position holds."""
    if isinstance(position, MariadbGtids):
        return ((0, position.sequence(int(source))),)
    if isinstance(position, TopicOffsets):
        topic, _, partition = source.rpartition(":")
        return ((0, (position.offset(topic, int(partition)) or 0) - 1),)
    return position.intervals(source)
