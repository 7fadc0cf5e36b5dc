"""A plan's log cut into ranges that executors read side by side."""

from __future__ import annotations

from collections.abc import Sequence

from historian.plans import LogRange
from historian.positions import LogPosition

__all__ = ["cut_ranges"]


def cut_ranges(start: LogPosition, bounds: Sequence[LogPosition], range_bytes: int) -> tuple[LogRange, ...]:
    """The log from *start* to the last of *bounds*, cut at bounds into ranges of at least *range_bytes*.

    A range stays within one file; where the file changes, the bound before is the last one of its file, so nothing with rows
    stands between it and the file's end.

    >>> at = lambda file, offset: LogPosition(flavor="mysql", gtids="", file=file, offset=offset)
    >>> [(r.file, r.start, r.end) for r in cut_ranges(at("b.1", 4), [at("b.1", 90), at("b.2", 50), at("b.2", 70)], 1000)]
    [('b.1', 4, 90), ('b.2', 4, 70)]
    """
    ranges: list[LogRange] = []
    after, previous = start, start
    for bound in bounds:
        if bound.file != after.file:
            _add(ranges, after, previous)
            after = LogPosition(
                flavor=bound.flavor, gtids=previous.gtids, file=bound.file, offset=_FIRST_EVENT, server=bound.server
            )
        elif previous.offset - after.offset >= range_bytes:
            _add(ranges, after, previous)
            after = previous
        previous = bound
    _add(ranges, after, previous)
    return tuple(ranges)


_FIRST_EVENT = 4


def _add(ranges: list[LogRange], after: LogPosition, upto: LogPosition) -> None:
    if after.file and upto.offset > after.offset:
        ranges.append(
            LogRange(
                file=after.file,
                start=after.offset,
                end=upto.offset,
                server=upto.server,
                after=after.gtids,
                upto=upto.gtids,
            )
        )
