"""Checks of topics: whether brokers answer and have them, and whether their first messages are in the configured format."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from connectors.check.result import CheckResult, failed, ok, warning
from connectors.config import KafkaSource, PipelineConfig
from connectors.readers.kafka.administration import Administration
from connectors.readers.kafka.avro.writers import Writers
from connectors.readers.kafka.client import Client
from connectors.readers.kafka.debezium.replaced_nulls import check_defaults
from connectors.readers.kafka.decoders import decoder_for, writers_of
from connectors.readers.kafka.keyed.deletes import DeletesElsewhere
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.messages.partitions import Partition
from connectors.readers.kafka.messages.sniffing import is_envelope, likely_formats
from connectors.readers.kafka.registry.client import RegistryDown
from connectors.tracking.recorded import reached_plan, recorded_store
from connectors.tracking.sources import kafka_settings
from historian.errors import HistorianError, SourceError, UnsupportedEvent
from historian.values.policies import DEAD_LETTER

if TYPE_CHECKING:
    from connectors.readers.base import Reader

__all__ = ["retention_checks", "topic_checks"]

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
        administration = Administration(client)
        refused = administration.unreadable_topics()
        if refused:
            yield failed(
                "rights",
                f"{', '.join(refused)} cannot be read",
                "the operation READ on every topic",
                "kafka-acls --add --allow-principal ... --operation READ --topic ...",
            )
            return
        if source.tombstones == "ignore" and (compacted := administration.compacted()):
            yield warning(
                "tombstones",
                f"{', '.join(compacted)}: compaction may leave of a delete the message without a value alone, which is ignored",
                "deletes that compaction keeps, or topics that are not compacted",
                "set delete.tombstone.handling.mode=rewrite of the transform, which writes no messages without a value, or cleanup.policy=delete of the topics",
            )
        writers = writers_of(source.registry)
        try:
            yield from _registry(writers)
            yield from _format(source, _looked(source, client, partitions, writers))
        except RegistryDown as error:
            yield failed("registry", str(error), "a schema registry that answers", error.next_step)
        except HistorianError as error:
            mend = error.next_step or "correct source.client"
            yield failed("format", str(error), f"messages of the format {source.format}", mend)


def retention_checks(config: PipelineConfig, reader: Reader) -> Iterator[CheckResult]:
    """Whether what a run has still to read may be gone before: how old the first such message is, against how long topics keep theirs."""
    store = recorded_store(config)
    if store is None:
        return
    with closing(store):
        plan = reached_plan(store)
    source = config.source
    if plan is None or not isinstance(source, KafkaSource):
        return
    with closing(Client(kafka_settings(source))) as client:
        kept = Administration(client).kept()
    now_us = time.time_ns() // 1000
    late = [
        (lag.partition, (now_us - lag.since_us) / 3_600_000_000, kept[topic])
        for lag in reader.partition_lags(plan.end)
        if lag.since_us is not None and (topic := lag.partition.rpartition(":")[0]) in kept
    ]
    near = [each for each in late if each[1] > each[2].hours / 2]
    if near:
        partition, age_h, limit = max(near, key=lambda each: each[1] / each[2].hours)
        yield warning(
            "retention",
            f"the first message of {partition} that was not read is {age_h:.1f} hours old, and {limit.what} are kept for {limit.hours:.1f} hours",
            f"{limit.what} that are read before they are gone",
            f"run the connector, or raise {limit.setting} of the topic",
        )
    elif kept:
        least = min(kept.values(), key=lambda each: each.hours)
        yield ok("retention", f"{least.what} are kept for {least.hours:.1f} hours or longer")


def _registry(writers: Writers | None) -> Iterator[CheckResult]:
    if writers is not None:
        languages = writers.registry.languages()
        yield ok("registry", f"{writers.registry.settings.url} has schemas of {', '.join(languages)}")


@dataclass(slots=True)
class _Looked:
    """What first messages of topics are: all of them by key and value, those with rows, the tables of these, and why others cannot be read."""

    seen: list[tuple[bytes | None, bytes | None]] = field(default_factory=list)
    rows: list[tuple[bytes | None, bytes | None]] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    unread: list[UnsupportedEvent] = field(default_factory=list)
    elsewhere: list[DeletesElsewhere] = field(default_factory=list)
    has_envelopes: bool = False
    may_lack_nulls: bool = False


def _looked(source: KafkaSource, client: Client, partitions: tuple[Partition, ...], writers: Writers | None) -> _Looked:
    looked = _Looked()
    for partition in islice(partitions, _PARTITIONS):
        decoder = decoder_for(client.settings, partition[0], writers)
        low, high = client.bounds(partition)
        for message in client.first_messages({partition: (low, high)}, _SNIFFED):
            where = f"{partition[0]}:{partition[1]}:{message.offset()}"
            looked.seen.append((message.key(), message.value()))
            try:
                found = decoder.events(message.key(), message.value(), where)
                changes = [event for event in found if isinstance(event, Event)]
                for event in changes:
                    if source.tables(event.table):
                        check_defaults(event, where)
            except UnsupportedEvent as error:
                looked.unread.append(error)
                continue
            except DeletesElsewhere as error:
                looked.elsewhere.append(error)
                continue
            looked.tables.update(str(event.table) for event in changes)
            if changes:
                looked.rows.append(looked.seen[-1])
                looked.may_lack_nulls |= any(event.may_lack_nulls and event.written is not None for event in changes)
                looked.has_envelopes |= any(is_envelope(event.after or {}) for event in changes)
    return looked


def _format(source: KafkaSource, looked: _Looked) -> Iterator[CheckResult]:
    seen, tables, unread = looked.seen, looked.tables, looked.unread
    if not seen:
        yield warning(
            "format", "no messages yet", f"messages of the format {source.format}", "nothing, if they come later"
        )
        return
    if looked.elsewhere:
        # A run may begin behind such rows, where others are no such ones.
        tell, error = warning if looked.rows else failed, looked.elsewhere[0]
        yield tell("tombstones", str(error), "rows whose deletes are where source.tombstones says", error.next_step)
    other = "" if source.format in (likely := likely_formats(seen)) or not likely else ", ".join(likely)
    if unread:
        keeps = source.unreadable == DEAD_LETTER
        tell = warning if keeps and len(unread) < len(seen) else failed
        become = ", and would be dead letters" if keeps else ""
        yield tell(
            "format",
            f"{len(unread)} of the first {len(seen)} messages cannot be read{become}: {unread[0]}",
            f"messages of the format {source.format}",
            f"they look like {other}: correct source.format"
            if other
            else unread[0].next_step or "correct source.format",
        )
        return
    if other and not tables:
        yield warning(
            "format",
            f"none of the first {len(seen)} messages is a row of the format {source.format}; they look like {other}",
            f"messages of the format {source.format}",
            "correct source.format",
        )
        return
    names = ", ".join(sorted(tables)[:5])
    likely = ("debezium_avro",) if looked.has_envelopes else likely_formats(looked.rows)
    if likely and source.format not in likely:
        yield warning(
            "format",
            f"{source.format} reads messages as rows of {names}, and they look like {', '.join(likely)}",
            f"messages of the format {source.format}",
            "correct source.format, if they are no rows of that table",
        )
        return
    if looked.may_lack_nulls:
        yield warning(
            "format",
            f"{source.format}: the converter writes defaults of columns in the place of NULLs, and nothing tells where",
            "messages with NULLs (source.snapshot of changes is null then)",
            "set value.converter.replace.null.with.default=false at the connector; or source.debezium.nulls_as_defaults: accept, where columns with a default have no NULLs",
        )
        return
    yield ok("format", f"{source.format}: {len(seen)} messages of {names or 'no table'}")
