"""Checks of topics: whether brokers answer and have them, and whether their first messages are in the configured format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice

from connectors.check.result import CheckResult, failed, ok, warning
from connectors.config import KafkaSource
from connectors.readers.kafka.avro.writers import Writers
from connectors.readers.kafka.client import Client, Partition
from connectors.readers.kafka.decoders import decoder_of, writers_of
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.registry.client import RegistryDown
from connectors.tracking.sources import kafka_settings
from historian.errors import HistorianError, SourceError, UnsupportedEvent
from historian.values.policies import DEAD_LETTER

__all__ = ["topic_checks"]

_SNIFFED = 20
_PARTITIONS = 20


def topic_checks(source: KafkaSource) -> Iterator[CheckResult]:
    """Whether the topics can be read as configured; asks brokers, and reads some messages."""
    with closing(Client(kafka_settings(source))) as client:
        try:
            partitions = client.partitions()
        except SourceError as error:
            expected = "brokers that answer, and topics that are there"
            yield failed("topics", str(error), expected, error.next_step or "correct source.brokers and source.topics")
            return
        topics = sorted({topic for topic, _ in partitions})
        if not topics:
            yield warning(
                "topics", "no topic is there yet that source.topics takes in", "a topic", "wait for the first message"
            )
            return
        yield ok("topics", f"{len(topics)} topics with {len(partitions)} partitions at {source.brokers}")
        writers = writers_of(source.registry)
        try:
            yield from _registry(writers)
            yield from _format(source, client, partitions, writers)
        except RegistryDown as error:
            yield failed("registry", str(error), "a schema registry that answers", error.next_step)
        except HistorianError as error:
            mend = error.next_step or "correct source.client"
            yield failed("format", str(error), f"messages of the format {source.format}", mend)


def _registry(writers: Writers | None) -> Iterator[CheckResult]:
    if writers is not None:
        languages = writers.registry.languages()
        yield ok("registry", f"{writers.registry.settings.url} has schemas of {', '.join(languages)}")


def _format(
    source: KafkaSource, client: Client, partitions: tuple[Partition, ...], writers: Writers | None
) -> Iterator[CheckResult]:
    decoder = decoder_of(source.format, writers=writers)
    tables, looked, unread = set[str](), 0, list[UnsupportedEvent]()
    for partition in islice(partitions, _PARTITIONS):
        low, high = client.bounds(partition)
        for batch in client.messages({partition: (low, min(high, low + _SNIFFED))}):
            for message in batch:
                where = f"{partition[0]}:{partition[1]}:{message.offset()}"
                looked += 1
                try:
                    found = decoder.events(message.key(), message.value(), where)
                except UnsupportedEvent as error:
                    if source.unreadable != DEAD_LETTER:
                        raise
                    unread.append(error)
                    continue
                tables.update(str(event.table) for event in found if isinstance(event, Event))
    if not looked:
        yield warning(
            "format", "no messages yet", f"messages of the format {source.format}", "nothing, if they come later"
        )
        return
    if unread:
        tell = failed if len(unread) == looked else warning
        yield tell(
            "format",
            f"{len(unread)} of the first {looked} messages cannot be read, and would be dead letters: {unread[0]}",
            f"messages of the format {source.format}",
            unread[0].next_step or "correct source.format",
        )
        return
    names = ", ".join(sorted(tables)[:5])
    yield ok("format", f"{source.format}: {looked} messages of {names or 'no table'}")
