"""What a consumer gives that has its partitions by offset, whether messages come as objects or behind each other in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from connectors.readers.kafka.messages.partitions import Partition

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message
    from typing_extensions import Self

__all__ = ["PARTITION_END", "Fetched", "Fetches", "Messages", "PlainFetcher", "Some"]

PARTITION_END = -191
"""librdkafka's code of what is no error: a partition has no more messages now."""


class Some(Protocol):
    """Messages of one partition that follow each other."""

    def __len__(self) -> int:
        """How many."""

    @property
    def end(self) -> int:
        """The offset behind the last one."""

    def before(self, offset: int) -> Self:
        """Those before *offset*."""

    def part(self, begin: int, end: int) -> Self:
        """Those from number *begin* to *end*."""


S = TypeVar("S", bound=Some)


@dataclass(frozen=True, slots=True)
class Fetched(Generic[S]):
    """What a consumer has had.

    Attributes:
        batches: messages that follow each other, with their partition.
        told: what was no message, each with its partition, the error's code and text, and the offset at which it stands.
    """

    batches: list[tuple[Partition, S]]
    told: list[tuple[Partition, int, str, int]]


class Fetches(Protocol[S]):
    """A consumer that is given its partitions by offset."""

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        """Takes messages of these partitions from now on, from these offsets, and of no other; what was fetched before is left."""

    def unassign(self, partitions: Iterable[Partition]) -> None:
        """Takes no more messages of these."""

    def fetch(self, timeout_s: float) -> Fetched[S]:
        """The next messages: as many as come at once, or within *timeout_s*."""


class Messages:
    """Messages as objects, ``held`` in order."""

    def __init__(self, held: Sequence[Message]) -> None:
        self.held = held

    def __len__(self) -> int:
        return len(self.held)

    @property
    def end(self) -> int:
        """See :class:`Some`."""
        return (self.held[-1].offset() or 0) + 1

    def before(self, offset: int) -> Messages:
        """See :class:`Some`."""
        return Messages([message for message in self.held if (message.offset() or 0) < offset])

    def part(self, begin: int, end: int) -> Messages:
        """See :class:`Some`."""
        return Messages(self.held[begin:end])


class PlainFetcher:
    """Messages as objects of *consumer*, which stays open; *most* at once."""

    def __init__(self, consumer: Consumer, most: int) -> None:
        self._consumer, self._most = consumer, most

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        """See :class:`Fetches`."""
        from confluent_kafka import TopicPartition

        if offsets:
            self._consumer.assign([TopicPartition(*partition, offset) for partition, offset in offsets.items()])
        else:
            self._consumer.unassign()

    def unassign(self, partitions: Iterable[Partition]) -> None:
        """See :class:`Fetches`."""
        from confluent_kafka import TopicPartition

        self._consumer.incremental_unassign([TopicPartition(*partition) for partition in partitions])

    def fetch(self, timeout_s: float) -> Fetched[Messages]:
        """See :class:`Fetches`."""
        found: dict[Partition, list[Message]] = {}
        told = list[tuple[Partition, int, str, int]]()
        for message in self._consumer.consume(self._most, timeout=timeout_s):
            partition = (str(message.topic()), int(message.partition() or 0))
            error = message.error()
            if error is None:
                found.setdefault(partition, []).append(message)
            else:
                told.append((partition, error.code(), error.str(), message.offset() or 0))
        return Fetched([(partition, Messages(held)) for partition, held in found.items()], told)
