"""The messages of a scan, kept so that nobody has to fetch them again for the rows of its plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectors.readers.kafka.messages.batch import Batch
    from connectors.readers.kafka.partitions import Partition
    from historian.plans.plans import PartitionRange

__all__ = ["MAX_KEPT_BYTES", "MessageCache"]

MAX_KEPT_BYTES = 320 << 20
"""Of a scan's messages no more than this is kept: a plan of the size that is set by default, and the batch with which it ends."""


class MessageCache:
    """What one scan takes of each partition, up to *most_bytes* of all; then what it has ``closed`` with."""

    def __init__(self, most_bytes: int = MAX_KEPT_BYTES) -> None:
        self._left_bytes = most_bytes
        self._batches: dict[Partition, list[Batch]] = {}
        self._left_out: dict[Partition, int] = {}
        self._ranges: dict[tuple[Partition, int, int], tuple[Batch, ...]] = {}

    def add(self, partition: Partition, batch: Batch) -> None:
        """Takes the messages behind those before."""
        self._left_bytes -= batch.size_bytes
        if self._left_bytes < 0:
            self._left_out.setdefault(partition, int(batch.offsets[0]))
        if partition not in self._left_out:
            self._batches.setdefault(partition, []).append(batch)

    def close(self, ranges: Iterable[PartitionRange]) -> None:
        """Keeps the messages of *ranges*, which are all that was scanned, where all of a range are here."""
        for each in ranges:
            partition = (each.topic, each.partition)
            if each.end <= self._left_out.get(partition, each.end):
                parts = (held.before(each.end).behind(each.start) for held in self._batches.get(partition, ()))
                self._ranges[_key(each)] = tuple(part for part in parts if len(part))
        self._batches.clear()

    def cached(self, planned: PartitionRange) -> tuple[Batch, ...] | None:
        """The messages of such a range; None where they are not here."""
        return self._ranges.get(_key(planned))


def _key(planned: PartitionRange) -> tuple[Partition, int, int]:
    return (planned.topic, planned.partition), planned.start, planned.end
