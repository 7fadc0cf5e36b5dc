"""What a broker is asked: which partitions there are, where each begins and ends, and its messages by offset."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes
from connectors.readers.kafka.partitions import Partition
from connectors.readers.kafka.registry.client import RegistrySettings
from historian.errors import LogPurged, SourceError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka import Consumer, Message
    from confluent_kafka.admin import AdminClient

    from connectors.readers.kafka.librdkafka import Fetcher
    from connectors.readers.kafka.messages.batch import Batch
    from historian.names import TableName

__all__ = ["BrokerDown", "Client", "KafkaSettings", "purged"]

T = TypeVar("T")

_ASK_S = 30.0
_SILENCE_S = 60.0
_POLL_S = 0.5
_FETCH_S = 0.02
_NO_LEADER_S = 10.0
_BATCH = 10_000
_PACE = {
    "isolation.level": "read_committed",
    "log_level": "0",
    # A consumer whose queue is full waits so long before it fetches on: a second by default, which is most of the time of a quick reader.
    "fetch.queue.backoff.ms": "5",
}
"""What librdkafka is set to where the settings say nothing else."""
_OFFSETS = {
    "group.id": "pyspark-historian",  # librdkafka wants one; nothing is committed to it
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
}
"""Offsets are ours, whatever the settings say."""
_PURGED_NEXT_STEP = (
    "start another connector with a store and targets of its own, or have the topic's messages written again"
)


class BrokerDown(SourceError):
    """No broker answers, or one breaks off."""

    retryable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Which topics of which brokers.

    Attributes:
        brokers: ``host:port``, comma separated.
        topics: names and globs.
        client: further settings of librdkafka, by its names, secrets among them.
        format: how messages are written; ``zone``: of TIMESTAMPs that they have without one.
        registry: that has the schemas of such a format.
        modes: of a connector of Debezium's that writes no schema.
        message_schema: of a format with a schema that neither its messages have nor a registry, as text.
        keeps_unread: messages that cannot be read are dead letters; else the first one is an error.
        schema_topic: a topic with changes of schemas in the place of rows; "": there is none.
        normalized: of which tables rows may lack those that they take back, which a state has; None: of none.
    """

    brokers: str
    topics: tuple[str, ...]
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    format: str = "debezium_json"
    zone: str = "UTC"
    registry: RegistrySettings | None = None
    modes: DebeziumModes = DEFAULT_MODES
    message_schema: str = ""
    schema_topic: str = ""
    keeps_unread: bool = False
    normalized: Callable[[TableName], bool] | None = None


class Client:
    """A consumer of some topics, which connects when it is first asked. Offsets are ours: no group is joined."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self._made: Consumer | None = None
        self._fetches: Fetcher | None = None

    def _settings_of_consumer(self) -> dict[str, str]:
        return _PACE | dict(self.settings.client) | {"bootstrap.servers": self.settings.brokers} | _OFFSETS

    def _consumer(self) -> Consumer:
        if self._made is None:
            from confluent_kafka import Consumer, KafkaException

            settings: dict[str, Any] = dict(self._settings_of_consumer())
            try:
                self._made = Consumer(settings)
            except KafkaException as error:
                raise SourceError(
                    "the client's settings are not taken", where="source.client", found=error.args[0].str()
                ) from None
        return self._made

    def _asked(self, what: str, ask: Callable[[Consumer], T]) -> T:
        """What *ask* gives; again for a while where a partition has no leader, as when it was just made."""
        from confluent_kafka import KafkaError, KafkaException

        passing = (
            KafkaError.NOT_LEADER_FOR_PARTITION,
            KafkaError.LEADER_NOT_AVAILABLE,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
        )
        until_s = time.monotonic() + _NO_LEADER_S
        while True:
            try:
                return ask(self._consumer())
            except KafkaException as error:
                if error.args[0].code() not in passing or time.monotonic() > until_s:
                    raise self._down(what, error.args[0].str()) from None
                time.sleep(_POLL_S / 5)

    def _down(self, what: str, found: str) -> BrokerDown:
        return BrokerDown(
            f"the brokers do not answer: {what}",
            where=self.settings.brokers,
            found=found,
            next_step="check source.brokers, and in source.client what the brokers want of security",
        )

    def partitions(self) -> tuple[Partition, ...]:
        """All partitions of the topics that the settings name; globs take in those that are there by now. Retryable.

        Raises:
            SourceError: a topic of that name is not there.
        """
        held = self._asked("topics", lambda consumer: consumer.list_topics(timeout=_ASK_S)).topics
        found: set[Partition] = set()
        for wanted in self.settings.topics:
            is_pattern = any(sign in wanted for sign in "*?[")
            names = [name for name in held if not name.startswith("__") and fnmatch.fnmatchcase(name, wanted)]
            if not names and not is_pattern:
                raise SourceError(
                    "the brokers have no such topic",
                    where=wanted,
                    expected="a topic of source.topics",
                    found=f"{len(held)} topics, none of that name",
                    next_step="correct source.topics, or write a first message to the topic",
                )
            found |= {(name, number) for name in names for number in held[name].partitions}
        return tuple(sorted(found))

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """The first offset that a partition still has, and the next one at its end; open transactions lie behind the end. Retryable."""
        from confluent_kafka import TopicPartition

        at = TopicPartition(*partition)
        found = self._asked(
            f"{partition[0]}:{partition[1]}", lambda consumer: consumer.get_watermark_offsets(at, timeout=_ASK_S)
        )
        if found is None:
            raise self._down(f"{partition[0]}:{partition[1]}", f"nothing within {_ASK_S:g} s")
        low, high = found
        return max(0, low), max(0, high)

    def _told(self, ask: Callable[[AdminClient, list[str]], Mapping[Any, Future[Any]]]) -> Mapping[Any, Future[Any]]:
        """What *ask* gives for all topics of the settings; nothing where there is none yet."""
        from concurrent.futures import wait

        from confluent_kafka.admin import AdminClient

        topics = sorted({topic for topic, _ in self.partitions()})
        if not topics:
            return {}
        settings: dict[str, Any] = {"log_level": 0, **self.settings.client, "bootstrap.servers": self.settings.brokers}
        admin = AdminClient(settings)
        told = ask(admin, topics)
        wait(told.values())  # answers come as long as the client is there
        return told

    def topic_ids(self) -> dict[str, str]:
        """By topic, the id that a broker gives it when it is made; none of brokers that give none. Retryable."""
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        untold = (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 librdkafka's name
        )
        described = self._told(
            lambda admin, topics: admin.describe_topics(TopicCollection(topics), request_timeout=_ASK_S)
        )
        ids: dict[str, str] = {}
        for topic, future in described.items():
            try:
                found = str(future.result().topic_id)
            except KafkaException as error:
                if error.args[0].code() not in untold:
                    raise self._down(topic, error.args[0].str()) from None
                continue  # describing may be forbidden where reading is not
            if found.strip("A"):  # zero: such a broker has none
                ids[topic] = found
        return ids

    def unreadable_topics(self) -> tuple[str, ...]:
        """Topics that the brokers do not let be read, as far as they tell. Retryable."""
        from confluent_kafka import KafkaException, TopicCollection
        from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # it stands in no list

        described = self._told(
            lambda admin, topics: admin.describe_topics(
                TopicCollection(topics), include_authorized_operations=True, request_timeout=_ASK_S
            )
        )
        refused = []
        for topic, future in described.items():
            try:
                allowed = future.result().authorized_operations
            except KafkaException:
                continue  # describing may be forbidden where reading is not
            if allowed and AclOperation.READ not in allowed:
                refused.append(topic)
        return tuple(refused)

    def retention_ms(self) -> dict[str, int]:
        """By topic how long its messages are kept; none of topics that keep them, or of which the brokers do not tell. Retryable."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]  # as above

        asked = self._told(
            lambda admin, topics: admin.describe_configs(
                [ConfigResource(ResourceType.TOPIC, topic) for topic in topics], request_timeout=_ASK_S
            )
        )
        found: dict[str, int] = {}
        for resource, future in asked.items():
            try:
                told = future.result()
            except KafkaException:
                continue  # describing may be forbidden where reading is not
            kept_ms = int(told["retention.ms"].value or -1)
            if kept_ms > 0 and "delete" in str(told["cleanup.policy"].value):
                found[resource.name] = kept_ms
        return found

    def batches(self, ranges: Mapping[Partition, tuple[int, int]]) -> Generator[tuple[Partition, Batch], None, None]:
        """The messages of *ranges* (first offset, and the one behind the last), each partition's in order.

        Offsets may be empty: of compacted topics, and where a transaction's end is marked.

        Raises:
            LogPurged: an offset is gone.
            BrokerDown: the brokers are silent.
        """
        from confluent_kafka import KafkaError

        left = {partition: end for partition, (start, end) in ranges.items() if end > start}
        if not left:
            return
        fetcher = self._fetcher()
        fetcher.assign({partition: ranges[partition][0] for partition in left})
        try:
            heard_s = time.monotonic()
            while left:
                fetched = fetcher.fetch(_FETCH_S)
                reached = dict[Partition, int]()
                for partition, batch in fetched.batches:
                    reached[partition] = int(batch.offsets[-1]) + 1
                    wanted = batch.before(left.get(partition, 0))
                    if len(wanted):
                        yield partition, wanted
                for partition, code, text, offset in fetched.told:
                    if code == KafkaError._PARTITION_EOF:  # noqa: SLF001 librdkafka's name
                        reached[partition] = max(reached.get(partition, 0), offset)
                    else:
                        self._check(KafkaError(code, text), partition)
                done = [partition for partition, offset in reached.items() if offset >= left.get(partition, offset + 1)]
                for partition in done:
                    del left[partition]
                if done:
                    fetcher.unassign(done)
                if reached:
                    heard_s = time.monotonic()  # whoever takes them may be slow
                elif time.monotonic() - heard_s > _SILENCE_S:
                    raise self._silent(left)
        finally:
            fetcher.assign({})

    def _fetcher(self) -> Fetcher:
        if self._fetches is None:
            from connectors.readers.kafka.librdkafka import Fetcher

            self._fetches = Fetcher(self._settings_of_consumer(), _BATCH)
        return self._fetches

    def first_messages(self, ranges: Mapping[Partition, tuple[int, int]], count: int = 1) -> Iterator[Message]:
        """The first *count* messages of each of *ranges*, see :meth:`batches`. It loads no kernels."""
        from confluent_kafka import KafkaError, TopicPartition

        left = {partition: end for partition, (start, end) in ranges.items() if end > start}
        if not left:
            return
        taken = dict.fromkeys(left, 0)
        consumer = self._consumer()
        consumer.assign([TopicPartition(*partition, ranges[partition][0]) for partition in left])
        try:
            heard_s = time.monotonic()
            while left:
                for message in consumer.consume(count * len(left), timeout=_FETCH_S):
                    partition = (str(message.topic()), int(message.partition() or 0))
                    error, offset = message.error(), message.offset()
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 librdkafka's name
                        self._check(error, partition)
                        continue
                    heard_s = time.monotonic()
                    end = left.get(partition)
                    if end is None or offset is None:
                        continue
                    if error is None and offset < end:
                        yield message
                        heard_s = time.monotonic()  # whoever takes them may be slow
                        taken[partition] += 1
                    if offset + (error is None) >= end or taken[partition] == count:
                        del left[partition]
                        consumer.incremental_unassign([TopicPartition(*partition)])
                if time.monotonic() - heard_s > _SILENCE_S:
                    raise self._silent(left)
        finally:
            consumer.unassign()

    def _silent(self, left: Iterable[Partition]) -> BrokerDown:
        names = ", ".join(f"{topic}:{number}" for topic, number in sorted(left))
        return self._down(names, f"nothing for {_SILENCE_S:g} s")

    def offsets_at(self, moment_us: int) -> dict[Partition, int]:
        """Of each partition the offset of its first message dated at *moment_us* (UTC microseconds) or later, else its end. Retryable."""
        from confluent_kafka import KafkaException, TopicPartition

        time_ms = -(-moment_us // 1000)
        # Ends come first: what arrives between both answers may be dated at the moment, and lies behind them.
        ends = {partition: self.bounds(partition)[1] for partition in self.partitions()}
        if not ends:
            return {}

        def ask(consumer: Consumer) -> list[TopicPartition]:
            asked = [TopicPartition(*partition, time_ms) for partition in ends]
            found = consumer.offsets_for_times(asked, timeout=_ASK_S)
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)
            return found

        found = {(each.topic, each.partition): each.offset for each in self._asked("offsets by time", ask)}
        return {partition: end if found[partition] < 0 else found[partition] for partition, end in ends.items()}

    def first_times_us(self, ranges: Mapping[Partition, tuple[int, int]]) -> dict[Partition, int]:
        """When the first message of each of *ranges* is dated, UTC microseconds; none where a range has no message, or it no date. Retryable."""
        found: dict[Partition, int] = {}
        for message in self.first_messages(ranges):
            kind, time_ms = message.timestamp()
            if kind:  # 0: the broker has none
                found[str(message.topic()), int(message.partition() or 0)] = time_ms * 1000
        return found

    def _check(self, error: Any, partition: Partition) -> None:
        from confluent_kafka import KafkaError

        lost = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001 librdkafka's name
        if error.code() in lost:
            low, high = self.bounds(partition)
            raise purged(partition, error.str(), low, high)
        refused = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION, KafkaError.UNKNOWN_TOPIC_OR_PART)  # noqa: SLF001
        if error.fatal() or error.code() in (*refused, KafkaError._FATAL):  # noqa: SLF001
            raise SourceError(
                "the brokers refuse to be read", where=f"{partition[0]}:{partition[1]}", found=error.str()
            )

    def wait(self, reached: Mapping[Partition, int], timeout_s: float) -> bool:
        """Whether one of the partitions goes on behind where it was *reached*; returns then, after *timeout_s* at the latest."""
        until_s = time.monotonic() + timeout_s
        while (left_s := until_s - time.monotonic()) > 0:
            bounds = {partition: self.bounds(partition) for partition in self.partitions()}
            if any(high > max(low, reached.get(partition, 0)) for partition, (low, high) in bounds.items()):
                return True
            time.sleep(min(left_s, _POLL_S))
        return False

    def close(self) -> None:
        """Closes connections; the client can be used again."""
        made, self._made = self._made, None
        if made is not None:
            made.close()
        fetches, self._fetches = self._fetches, None
        if fetches is not None:
            fetches.close()


def purged(partition: Partition, wanted: object, low: int, high: int) -> LogPurged:
    """The error of an offset that a partition has no more."""
    return LogPurged(
        "the topic does not hold the offset",
        where=f"{partition[0]}:{partition[1]}:{wanted}",
        expected=f"an offset from {low} to {high}, which the partition has",
        found=wanted,
        next_step=_PURGED_NEXT_STEP,
    )
