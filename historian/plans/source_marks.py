"""How far a partition has come in the log of its source: by it messages are known that a producer sends again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["SourceMark", "SourceMarks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMark:
    """The last change of a partition that was none that came again.

    Attributes:
        highest: of each server, as a hash of what stands before the number in its GTIDs, the highest number.
        server, number: of its transaction's GTID.
        file, offset, row: where it stands in the log: the file's number, the event's offset, the row in it.
        time_us: when it was made, UTC microseconds.
        count: how many messages of its transaction the partition has.
        digests: of the first of these, of all but when they were sent; "" where that cannot be told apart.
        left: amid changes that come again, how many of its transaction are still to come again; None: none do.
    """

    highest: tuple[tuple[int, int], ...]
    server: int
    number: int
    file: int
    offset: int
    row: int
    time_us: int
    count: int
    digests: tuple[str, ...]
    left: int | None = None


SourceMarks = Mapping[str, SourceMark]
"""By partition, as ``topic:partition``."""
