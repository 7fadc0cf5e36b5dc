"""The messages of a scan, kept so that nobody has to fetch them again for the rows of its plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, overload

from connectors.readers.room import ROOM, Room

if TYPE_CHECKING:
    from connectors.readers.kafka.messages.batch import Batch
    from connectors.readers.kafka.messages.partitions import Partition
    from historian.plans.plans import PartitionRange

__all__ = ["MessageCache"]


class _Kept(Sequence["Batch"]):
    """Messages for which room was taken; it is given back when nobody has them any more."""

    def __init__(self, batches: Sequence[Batch], room: Room) -> None:
        self._batches, self._room = batches, room

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Batch]: ...
    def __getitem__(self, index: int | slice) -> Batch | Sequence[Batch]:
        return self._batches[index]

    def __len__(self) -> int:
        return len(self._batches)

    def __reduce__(self) -> tuple[type[tuple[Batch, ...]], tuple[Sequence[Batch]]]:
        return tuple, (self._batches,)

    def __del__(self) -> None:
        self._room.give(_size_bytes(self._batches))


class MessageCache:
    """What one scan takes of each partition, as long as there is room; then what it has ``closed`` with."""

    def __init__(self, room: Room = ROOM) -> None:
        self._room = room
        self._taken: dict[Partition, list[Batch]] = {}
        self._taken_bytes = 0
        self._left_out: dict[Partition, int] = {}
        self._ranges: dict[tuple[Partition, int, int], _Kept] = {}

    def add(self, partition: Partition, batch: Batch) -> None:
        """Takes the messages behind those before."""
        if partition in self._left_out or not self._room.take(batch.size_bytes):
            self._left_out.setdefault(partition, int(batch.offsets[0]))
            return
        self._taken_bytes += batch.size_bytes
        self._taken.setdefault(partition, []).append(batch)

    def close(self, ranges: Iterable[PartitionRange]) -> None:
        """Keeps the messages of *ranges*, which are all that was scanned, where all of a range are here."""
        taken = self._taken
        self._leave()
        for each in ranges:
            partition = (each.topic, each.partition)
            if each.end > self._left_out.get(partition, each.end):
                continue
            parts = (batch.before(each.end).behind(each.start) for batch in taken.get(partition, ()))
            found = [part for part in parts if len(part)]
            if self._room.take(_size_bytes(found)):
                self._ranges[_key(each)] = _Kept(found, self._room)

    def cached(self, planned: PartitionRange) -> Sequence[Batch] | None:
        """The messages of such a range, once; None where they are not here."""
        return self._ranges.pop(_key(planned), None)

    def _leave(self) -> None:
        self._room.give(self._taken_bytes)
        self._taken, self._taken_bytes = {}, 0

    def __del__(self) -> None:
        self._leave()


def _size_bytes(batches: Iterable[Batch]) -> int:
    return sum(batch.size_bytes for batch in batches)


def _key(planned: PartitionRange) -> tuple[Partition, int, int]:
    return (planned.topic, planned.partition), planned.start, planned.end
