"""What a client makes of brokers' answers that a real one hardly gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from connectors.readers.kafka.client import BrokerDown, Client, KafkaSettings

Answer = Callable[[str, int], tuple[int, KafkaError | None]]


@dataclass
class Broker:
    """Two partitions. A message arrives in each behind an answer about times."""

    answer: Answer
    ends: list[int] = field(default_factory=lambda: [5, 7])
    asked: int = 0

    def list_topics(self, **_: float) -> Any:
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions={0: None, 1: None})})

    def get_watermark_offsets(self, at: Any, **_: float) -> tuple[int, int]:
        return 0, self.ends[at.partition]

    def offsets_for_times(self, asked: list[Any], **_: float) -> list[Any]:
        self.asked += 1
        found = []
        for each in asked:
            offset, error = self.answer(each.topic, each.partition)
            found.append(SimpleNamespace(topic=each.topic, partition=each.partition, offset=offset, error=error))
        self.ends = [end + 1 for end in self.ends]
        return found


def client_of(broker: Broker) -> Client:
    client = Client(KafkaSettings(brokers="b:1", topics=("t",)))
    client._made = broker  # type: ignore[assignment]
    return client


def test_a_message_that_arrives_while_offsets_are_asked_for_lies_behind_them() -> None:
    broker = Broker(lambda _, partition: (3, None) if partition == 0 else (-1, None))

    assert client_of(broker).offsets_at(1_000_000) == {("t", 0): 3, ("t", 1): 7}
    assert broker.ends == [6, 8]


def test_a_partition_that_does_not_tell_its_offset_is_an_error() -> None:
    refused = KafkaError(KafkaError._TIMED_OUT, "too late")
    broker = Broker(lambda _, partition: (3, None) if partition == 0 else (-1001, refused))

    with pytest.raises(BrokerDown, match="too late"):
        client_of(broker).offsets_at(1_000_000)


def test_a_partition_without_a_leader_is_asked_again() -> None:
    moving = KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION, "moved")
    answers = iter([(-1001, moving), (2, None)])
    broker = Broker(lambda _, partition: next(answers) if partition == 1 else (3, None))

    assert client_of(broker).offsets_at(1_000_000) == {("t", 0): 3, ("t", 1): 2}
    assert broker.asked == 2
