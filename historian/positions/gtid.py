"""MySQL GTID sets: which transactions of which servers a log prefix holds.

Text form and algebra are those of the server's ``GTID_SUBSET`` and ``GTID_SUBTRACT``
(https://dev.mysql.com/doc/refman/en/replication-gtids-concepts.html), tags of 8.3 included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from historian.errors import PositionError

__all__ = ["GtidSet"]

_Intervals = tuple[tuple[int, int], ...]

_SPACE = " \t\n\v\f\r"
_UUID = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}"
    r"|\{[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\}"
)
_TAG = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,31}")
_INTERVAL = re.compile(r"0*([0-9]{1,19})(?:[ \t\n\v\f\r]*-[ \t\n\v\f\r]*0*([0-9]{1,19}))?")
_MAX_NUMBER = 2**63 - 2


@dataclass(frozen=True, slots=True)
class GtidSet:
    """A set of GTIDs: per source (``uuid`` or ``uuid:tag``) disjoint ascending intervals, both ends included.

    Equal sets are equal values and hash alike.
    """

    sources: tuple[tuple[str, _Intervals], ...] = ()
    _by_source: Mapping[str, _Intervals] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_source", dict(self.sources))

    def __getstate__(self) -> tuple[tuple[str, _Intervals], ...]:
        return self.sources

    def __setstate__(self, state: tuple[tuple[str, _Intervals], ...]) -> None:
        object.__setattr__(self, "sources", state)
        object.__setattr__(self, "_by_source", dict(state))

    @classmethod
    def of(cls, intervals: Mapping[str, Iterable[tuple[int, int]]]) -> GtidSet:
        """The set of these intervals, in any order, overlapping or not; one that ends before it begins is empty."""
        merged = ((source, _merge(ranges)) for source, ranges in sorted(intervals.items()))
        return cls(tuple((source, ranges) for source, ranges in merged if ranges))

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """Parses what MySQL 9 takes for a set, spelled as it may be; the empty text is the empty set.

        Case does not matter, nor white space around names, numbers, hyphens, colons and commas; a UUID may stand in
        braces or without hyphens. Older servers read numbers as C does (``010`` is 8), this one as decimal.

        >>> str(GtidSet.parse("3E11FA47-71CA-11E1-9E33-C80AA9429562:3:1-2, 3e11fa47-71ca-11e1-9e33-c80aa9429562:7"))
        '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:7'

        Raises:
            PositionError: with the part of the text that cannot be read.
        """
        found: dict[str, list[tuple[int, int]]] = {}
        for part in filter(None, (part.strip(_SPACE) for part in text.split(","))):
            uuid, *pieces = (piece.strip(_SPACE) for piece in part.split(":"))
            if not _UUID.fullmatch(uuid):
                raise _bad(text, part)
            server = source = _canonical(uuid)
            for piece in pieces:
                interval = _INTERVAL.fullmatch(piece)
                if interval is not None:
                    first, last = int(interval[1]), int(interval[2] or interval[1])
                    if not 1 <= first <= _MAX_NUMBER or last > _MAX_NUMBER:
                        raise _bad(text, piece)
                    found.setdefault(source, []).append((first, last))
                elif _TAG.fullmatch(piece):
                    source = f"{server}:{piece.lower()}"
                else:
                    raise _bad(text, piece)
        return cls.of(found)

    def __str__(self) -> str:
        parts: list[str] = []
        previous = ""
        for source, intervals in self.sources:
            uuid, _, tag = source.partition(":")
            ranges = ":".join(str(a) if a == b else f"{a}-{b}" for a, b in intervals)
            if uuid == previous:
                parts[-1] += f":{tag}:{ranges}"
            else:
                parts.append(f"{source}:{ranges}")
            previous = uuid
        return ",".join(parts)

    def __bool__(self) -> bool:
        return bool(self.sources)

    def __iter__(self) -> Iterator[tuple[str, _Intervals]]:
        return iter(self.sources)

    def __len__(self) -> int:
        return sum(last - first + 1 for _, intervals in self.sources for first, last in intervals)

    def intervals(self, source: str) -> _Intervals:
        """First and last numbers of the transactions of *source* in the set, ascending."""
        return self._by_source.get(source, ())

    def contains(self, source: str, number: int) -> bool:
        """Whether the transaction *number* of *source* is in the set."""
        intervals = self._by_source.get(source, ())
        low, high = 0, len(intervals)
        while low < high:
            middle = (low + high) // 2
            if intervals[middle][1] < number:
                low = middle + 1
            else:
                high = middle
        return low < len(intervals) and intervals[low][0] <= number

    def contains_gtid(self, gtid: str) -> bool:
        """Whether the GTID of that text, ``uuid[:tag]:number``, is in the set."""
        source, _, number = gtid.rpartition(":")
        if not (number.isascii() and number.isdigit()):
            raise PositionError("not a GTID", where=gtid, expected="UUID[:TAG]:N")
        return self.contains(source.lower(), int(number))

    def covers(self, other: GtidSet) -> bool:
        """Whether every transaction of *other* is in this set."""
        return not other.subtract(self)

    def union(self, other: GtidSet) -> GtidSet:
        """The transactions of either set."""
        joined = {source: list(intervals) for source, intervals in self.sources}
        for source, intervals in other.sources:
            joined.setdefault(source, []).extend(intervals)
        return GtidSet.of(joined)

    def subtract(self, other: GtidSet) -> GtidSet:
        """The transactions of this set that are not in *other*."""
        left = ((source, _subtract(ranges, other._by_source.get(source, ()))) for source, ranges in self.sources)
        return GtidSet(tuple((source, ranges) for source, ranges in left if ranges))


def _canonical(uuid: str) -> str:
    digits = uuid.strip("{}").replace("-", "").lower()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _bad(text: str, part: str) -> PositionError:
    return PositionError(
        "not a GTID set", where=text, expected="UUID[:TAG]:N[-M][:N[-M]]..., comma separated", found=part
    )


def _merge(ranges: Iterable[tuple[int, int]]) -> _Intervals:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(pair for pair in ranges if pair[0] <= pair[1]):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def _subtract(left: _Intervals, right: _Intervals) -> _Intervals:
    result: list[tuple[int, int]] = []
    at = 0
    for first, last in left:
        begin = first
        while at < len(right) and right[at][1] < begin:
            at += 1
        index = at
        while index < len(right) and right[index][0] <= last:
            if right[index][0] > begin:
                result.append((begin, right[index][0] - 1))
            begin = right[index][1] + 1
            index += 1
        if begin <= last:
            result.append((begin, last))
    return tuple(result)
