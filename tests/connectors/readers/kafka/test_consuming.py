"""What a client takes of what its consumer has: one loop, of messages as objects as of such in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pytest
from confluent_kafka import KafkaError

from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.consuming import PARTITION_END, Fetched
from connectors.readers.kafka.messages.batch import Batch
from connectors.readers.kafka.messages.partitions import Partition
from historian.errors import SourceError

ZERO, ONE = ("t", 0), ("t", 1)


class Consumer:
    """Gives what a test says, one answer after the other, and notes what it is told."""

    def __init__(self, answers: Iterable[Fetched[Batch]]) -> None:
        self.answers, self.said = iter(answers), list[tuple[str, list[Partition]]]()

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        self.said.append(("assign", list(offsets)))

    def unassign(self, partitions: Iterable[Partition]) -> None:
        self.said.append(("unassign", list(partitions)))

    def fetch(self, timeout_s: float) -> Fetched[Batch]:  # noqa: ARG002 it has what comes
        return next(self.answers)


def batch(*offsets: int) -> Batch:
    return Batch.of([None] * len(offsets), [b"{}"] * len(offsets), np.array(offsets, np.int64))


def taken(consumer: Consumer, most: int | None = None) -> list[tuple[Partition, list[int]]]:
    client = Client(KafkaSettings(brokers="b:1", topics=("t",)))
    found = client._taken(consumer, {ZERO: (3, 9), ONE: (0, 4)}, most)
    return [(partition, each.offsets.tolist()) for partition, each in found]


def test_a_range_ends_before_its_end_and_at_the_partitions_own_one() -> None:
    consumer = Consumer(
        [
            Fetched([(ZERO, batch(3, 4)), (ONE, batch(0))], []),
            Fetched([(ZERO, batch(7, 8, 9, 10))], []),
            Fetched([(ZERO, batch(11))], [(ONE, PARTITION_END, "", 4)]),
        ]
    )

    assert [(ZERO, [3, 4]), (ONE, [0]), (ZERO, [7, 8])] == taken(consumer)
    assert [("assign", [ZERO, ONE]), ("unassign", [ZERO]), ("unassign", [ONE]), ("assign", [])] == consumer.said


def test_the_first_messages_of_each_range_are_as_many_as_are_wanted() -> None:
    answers = [Fetched([(ZERO, batch(3)), (ZERO, batch(4, 5)), (ONE, batch(0))], []), Fetched([(ONE, batch(1, 2))], [])]

    assert [(ZERO, [3]), (ZERO, [4]), (ONE, [0]), (ONE, [1])] == taken(Consumer(answers), most=2)


def test_what_brokers_refuse_ends_the_reading() -> None:
    told = [(ONE, KafkaError.TOPIC_AUTHORIZATION_FAILED, "not for you", 0)]

    with pytest.raises(SourceError, match="not for you"):
        taken(Consumer([Fetched([], told)]))
