"""Which of many entries a log prefix holds, found by their GTIDs' numbers without asking each entry."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from functools import lru_cache

from historian.positions import GtidSet, LogPosition, MariadbGtids
from historian.positions.log import parse_gtids
from historian.prefix import Prefix
from historian.timeline import TimelineEntry

__all__ = ["Order"]


class Order:
    """Entries in timeline order, by source: a server's (with tag), or a domain of MariaDB."""

    __slots__ = ("_captures", "_count", "_indices", "_numbers", "_ordinals", "_scattered")

    def __init__(self, entries: Iterable[TimelineEntry]) -> None:
        self._count = 0
        self._numbers: dict[str, list[int]] = {}
        self._ordinals: dict[str, list[int]] = {}
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
            # A replica that commits in parallel may log transactions of one source in another order than their numbers'.
            self._scattered |= bool(numbers) and (numbers[-1], ordinals[-1]) > (number, entry.place.ordinal)
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
        spans = _spans(prefix.position.gtids, prefix.position.flavor)
        own_source, own_number = _parts(prefix.gtid) if prefix.gtid else ("", 0)
        held, last = 0, -1
        for source, numbers in self._numbers.items():
            span = spans.get(source, (1, 0))
            if span is None or (span[1] and numbers[0] < span[0]):
                return None
            count = bisect_right(numbers, span[1])
            if source == own_source:
                begin, end = bisect_left(numbers, own_number), bisect_right(numbers, own_number)
                if (
                    begin < end and begin != count
                ):  # held by position, where the ordinal decides; or with others between
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
    """A GTID's source and number: ``uuid[:tag]:number``, or ``domain-server-number``."""
    if ":" in gtid:
        source, _, number = gtid.rpartition(":")
        return source.lower(), int(number)
    domain, _, rest = gtid.partition("-")
    return domain, int(rest.rpartition("-")[2])


@lru_cache(maxsize=256)
def _spans(gtids: str, flavor: str) -> Mapping[str, tuple[int, int] | None]:
    """First and last number of each source in a position; None where numbers between them are missing."""
    position = parse_gtids(gtids, flavor)
    if isinstance(position, MariadbGtids):
        return {str(domain): (0, number) for domain, _, number in position.last}
    assert isinstance(position, GtidSet)  # noqa: S101 for mypy
    return {source: spans[0] if len(spans) == 1 else None for source, spans in position}
