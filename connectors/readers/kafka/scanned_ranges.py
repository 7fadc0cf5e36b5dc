"""How far a scan has come in each partition, and what of it is which range of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from connectors.readers.kafka.messages.partitions import Partition
from historian.plans.plans import REPEATED, PartitionRange

__all__ = ["ScannedRanges"]

_RANGE_BYTES = 16 << 20
"""So much of a partition is a range of its own, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closed:
    """How far a partition was read with a watermark: up to the offset behind it, with so many ranges before the last one, which has all this."""

    offset: int
    ranges: int
    begun: int
    size_bytes: int
    passed_over: Counter[str]


@dataclass(slots=True)
class _Open:
    """The range of a partition that is not full yet: where it begins and ends by now, its size, and what of it is no row."""

    begun: int
    reached: int
    size_bytes: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)
    repeated: list[tuple[int, int]] = field(default_factory=list)


class ScannedRanges:
    """Ranges of partitions.

    Args:
        ranges: of each partition the first offset, and the one behind the last.
        ignores_tombstones: as of :class:`historian.plans.plans.PartitionRange`.
    """

    def __init__(self, ranges: Mapping[Partition, tuple[int, int]], *, ignores_tombstones: bool = False) -> None:
        self._wanted, self._ignores_tombstones = ranges, ignores_tombstones
        self._full: dict[Partition, list[PartitionRange]] = {partition: [] for partition in ranges}
        self._open = {partition: _Open(start, start) for partition, (start, _) in ranges.items()}
        self._closed: dict[Partition, _Closed] = {}

    def add_bytes(self, partition: Partition, count: int) -> None:
        """Counts the size of messages that are taken next."""
        self._open[partition].size_bytes += count

    def pass_over(self, partition: Partition, why: str, count: int = 1) -> None:
        """Counts messages that are no rows, or rows of which something is told."""
        self._open[partition].passed_over[why] += count

    def pass_over_repeat(self, partition: Partition, offset: int) -> None:
        """Leaves out a message that came before."""
        self.pass_over(partition, REPEATED)
        found = self._open[partition].repeated
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))

    def reach(self, partition: Partition, offset: int) -> None:
        """Notes that all before *offset* is read; a range that is full ends there."""
        self._open[partition].reached = offset
        if self._open[partition].size_bytes >= _RANGE_BYTES:
            self._full[partition].append(self._part(partition))
            self._open[partition] = _Open(offset, offset)

    def mark_closed(self, partition: Partition, offset: int) -> None:
        """Notes a watermark before *offset*."""
        at = self._open[partition]
        self._closed[partition] = _Closed(
            offset=offset,
            ranges=len(self._full[partition]),
            begun=at.begun,
            size_bytes=at.size_bytes,
            passed_over=at.passed_over.copy(),
        )

    @property
    def reached(self) -> dict[Partition, int]:
        """Of each partition the offset behind what was read."""
        return {partition: at.reached for partition, at in self._open.items()}

    def has_messages(self, partition: Partition) -> bool:
        """Whether anything of it was read."""
        return self._open[partition].reached > self._wanted[partition][0]

    def unread(self) -> list[Partition]:
        """Partitions with messages that are not read yet."""
        return [at for at, (_, end) in self._wanted.items() if self._open[at].reached < end]

    def complete(self) -> None:
        """All messages have come; offsets up to the ends without one are read too."""
        for partition, (_, end) in self._wanted.items():
            self._open[partition].reached = end

    def close(self) -> dict[str, int]:
        """Ends each partition behind the last watermark that was met in it, if any; gives these ends by the partitions' names."""
        for partition, closed in self._closed.items():
            self._full[partition] = self._full[partition][: closed.ranges]
            at = self._open[partition]
            at.begun, at.reached = closed.begun, closed.offset
            at.size_bytes, at.passed_over = closed.size_bytes, closed.passed_over
        return {f"{topic}:{number}": closed.offset for (topic, number), closed in self._closed.items()}

    def parts(self) -> tuple[PartitionRange, ...]:
        """What was read, by partition; a long part of one is several ranges, which are read side by side."""
        found = list[PartitionRange]()
        for partition in sorted(self._wanted):
            found += self._full[partition]
            if self._open[partition].reached > self._open[partition].begun:
                found.append(self._part(partition))
        return tuple(found)

    def _part(self, partition: Partition) -> PartitionRange:
        (topic, number), at = partition, self._open[partition]
        return PartitionRange(
            topic=topic,
            partition=number,
            start=at.begun,
            end=at.reached,
            bytes_read=at.size_bytes,
            passed_over=tuple(sorted(at.passed_over.items())),
            repeated=tuple(at.repeated),
            ignores_tombstones=self._ignores_tombstones,
        )
