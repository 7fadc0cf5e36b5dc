"""A plan's log cut into ranges that executors read side by side."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.readers.base import Bound
from historian.plans.plans import LogRange
from historian.positions import LogPosition

__all__ = ["SEQUENCE_BITS", "cut_ranges", "range_bytes_between"]

SEQUENCE_BITS = 32
"""Chunks of a plan's n-th range, from 0, are numbered from n << SEQUENCE_BITS."""

_RANGES, _LEAST_BYTES = 2, 8 << 20
"""More ranges are more chunks of each table, where a plan has many."""


def range_bytes_between(start: LogPosition, end: LogPosition, most_bytes: int) -> int:
    """Of how much log a plan's ranges are: so much that a plan within one file has a few to share, up to *most_bytes*."""
    if start.file != end.file:
        return most_bytes
    return min(most_bytes, max(_LEAST_BYTES, (end.offset - start.offset) // _RANGES))


def cut_ranges(start: LogPosition, bounds: Sequence[Bound], range_bytes: int) -> tuple[LogRange, ...]:
    """The log from *start* to the last of *bounds*, cut there into ranges of at least *range_bytes*.

    A range stays within one file: where the file changes, the bound before is the last one of its file. It spans
    nothing that the scan skipped.

    >>> at = lambda file, offset: LogPosition(flavor="mysql", gtids="", file=file, offset=offset)
    >>> bounds = [Bound(position=at(*place), event_time_us=0) for place in (("b.1", 90), ("b.2", 50), ("b.2", 70))]
    >>> [(r.file, r.start, r.end) for r in cut_ranges(at("b.1", 4), bounds, 1000)]
    [('b.1', 4, 90), ('b.2', 4, 70)]
    """
    ranges: list[LogRange] = []
    after = previous = start
    for bound in bounds:
        position = bound.position
        if bound.skipped:
            _add(ranges, after, previous)
            after = position
        elif position.file != after.file:
            _add(ranges, after, previous)
            after = LogPosition(
                flavor=position.flavor,
                gtids=previous.gtids,
                file=position.file,
                offset=_FIRST_EVENT,
                server=position.server,
            )
        elif previous.offset - after.offset >= range_bytes:
            _add(ranges, after, previous)
            after = previous
        previous = position
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
