"""A consumer group's offsets at a broker, for monitors that know no other: nobody joins the group, and nothing is read from it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.messages.partitions import Partition

if TYPE_CHECKING:
    from confluent_kafka import Consumer

__all__ = ["Group"]

_log = logging.getLogger(__name__)


class Group:
    """Notes how far one is as the offsets of group *name*. What fails is logged: plans hold the offsets that count."""

    def __init__(self, settings: KafkaSettings, name: str) -> None:
        self._settings, self.name = settings, name
        self._made: Consumer | None = None
        self._last: Mapping[Partition, int] = {}

    def note(self, offsets: Mapping[Partition, int]) -> None:
        """Notes the next offset of each partition, without waiting for the broker."""
        self._last = offsets
        self._commit(is_last=False)

    def close(self) -> None:
        """Notes the last offsets once more, waits for that, and closes connections."""
        self._commit(is_last=True)
        made, self._made = self._made, None
        if made is not None:
            made.close()

    def _commit(self, *, is_last: bool) -> None:
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        if not self._last:
            return
        if self._made is None:
            fixed = {"bootstrap.servers": self._settings.brokers, "group.id": self.name, "enable.auto.commit": False}
            settings: dict[str, Any] = {"log_level": 0, **self._settings.client}
            self._made = Consumer(settings | fixed)
        noted = [TopicPartition(*partition, offset) for partition, offset in self._last.items()]
        try:
            if is_last:
                self._made.commit(offsets=noted, asynchronous=False)
            else:
                self._made.commit(offsets=noted, asynchronous=True)
        except KafkaException as error:
            _log.warning("the offsets of group %s cannot be noted: %s", self.name, error.args[0].str())
