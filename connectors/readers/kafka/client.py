"""What a broker is asked by who reads: which partitions there are, where each begins and ends, and its messages by offset."""

from __future__ import annotations

import fnmatch
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from connectors.readers.kafka.consuming import PARTITION_END, Fetched, Fetches, PlainFetcher, Some
from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes
from connectors.readers.kafka.messages.partitions import Partition
from connectors.readers.kafka.registry.client import RegistrySettings
from historian.errors import LogPurged, SourceError, SourceNotLetIn

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

    from connectors.readers.base import Wake
    from connectors.readers.kafka.librdkafka import Fetcher
    from connectors.readers.kafka.messages.batch import Batch
    from historian.names import TableName

__all__ = ["BrokerDown", "Client", "KafkaSettings", "purged"]

T = TypeVar("T")
B = TypeVar("B", bound=Some)

_ASK_S = 30.0
_FIRST_S = (1.0, 2.0, 4.0, 8.0, 15.0)
_TOLD = 8
_SILENCE_S = 60.0
_POLL_S = 0.5
_FETCH_S = 0.02
_NO_LEADER_S = 10.0
_BATCH = 10_000
_NOT_ASKED = ("Failed to acquire SASL", "Failed to initialize SASL authentication")
"""Words of librdkafka where a service of tokens or tickets did not answer, so that no broker was asked to let anybody in."""
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
        tombstones: what messages without a value do, "delete", "ignore" or "refuse", in formats where they may be deletes.
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
    tombstones: str = "delete"


class Client:
    """A consumer of some topics, which connects when it is first asked. Offsets are ours: no group is joined."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self._made: Consumer | None = None
        self._fetches: Fetcher | None = None
        self._is_let_in = False
        self._beside: deque[KafkaError] = deque(maxlen=_TOLD)

    def _settings_of_consumer(self) -> dict[str, str]:
        return _PACE | dict(self.settings.client) | {"bootstrap.servers": self.settings.brokers} | _OFFSETS

    def _consumer(self) -> Consumer:
        if self._made is None:
            from confluent_kafka import Consumer, KafkaException

            # It holds the deque alone: a consumer that held the client would be closed when memory is tidied.
            settings: dict[str, Any] = {**self._settings_of_consumer(), "error_cb": self._beside.append}
            try:
                self._made = Consumer(settings)
            except KafkaException as error:
                raise SourceError(
                    "the client's settings are not taken", where="source.client", found=error.args[0].str()
                ) from None
        return self._made

    def _asked(self, what: str, ask: Callable[[Consumer, float], T]) -> T:
        """What *ask* gives within so many seconds; again for a while where a partition has no leader, as when it was just made.

        Raises:
            SourceNotLetIn: the brokers refuse the password.
            BrokerDown: they do not answer. Retryable.
        """
        from confluent_kafka import KafkaError, KafkaException

        passing = (
            KafkaError.NOT_LEADER_FOR_PARTITION,
            KafkaError.LEADER_NOT_AVAILABLE,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
        )
        silent = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)  # noqa: SLF001 librdkafka's name
        until_s = time.monotonic() + _NO_LEADER_S
        # Why there is no connection is told beside, while an answer waits for one as long as it may: so first ones wait shortly.
        waits_s = [] if self._is_let_in else list(_FIRST_S)
        while True:
            try:
                found = ask(self._consumer(), waits_s.pop(0) if waits_s else _ASK_S)
            except KafkaException as error:
                code = error.args[0].code()
                if not self._is_let_in:
                    self._check_let_in(what)
                if code in passing and time.monotonic() <= until_s:
                    time.sleep(_POLL_S / 5)
                elif code not in silent or not waits_s:
                    self._is_let_in = False
                    raise self.down(what, error.args[0].str()) from None
            else:
                self._is_let_in = True
                return found

    def _check_let_in(self, what: str) -> None:
        """Raises what librdkafka told of a connection that TLS or a password did not let be."""
        from confluent_kafka import KafkaError

        self._consumer().poll(0)  # gives what is told beside
        told = {error.code(): error.str() for error in self._beside}
        self._beside.clear()
        refused = told.get(KafkaError._AUTHENTICATION)  # noqa: SLF001 librdkafka's name
        if refused is not None and any(words in refused for words in _NOT_ASKED):
            raise self.down(what, refused)
        if refused is not None:
            raise SourceNotLetIn(
                "the brokers let nobody in by this name and password",
                where=self.settings.brokers,
                found=refused,
                next_step="correct in source.client what the brokers want of SASL",
            )
        unsafe = told.get(KafkaError._SSL)  # noqa: SLF001 as above
        if unsafe is not None:
            raise self.down(what, unsafe)

    def down(self, what: str, found: str) -> BrokerDown:
        """The error of brokers that do not answer *what*."""
        return BrokerDown(
            f"the brokers do not answer: {what}",
            where=self.settings.brokers,
            found=found,
            next_step="check source.brokers, and in source.client what the brokers want of security",
        )

    def partitions(self) -> tuple[Partition, ...]:
        """All partitions of the topics that the settings name; globs take in those that are there by now. Retryable.

        Topics of Kafka's own and of Debezium's heartbeats begin with ``__``: a glob takes them in that begins so itself.

        Raises:
            SourceError: a topic of that name is not there.
        """
        held = self._asked("topics", lambda consumer, wait_s: consumer.list_topics(timeout=wait_s)).topics
        found: set[Partition] = set()
        for wanted in self.settings.topics:
            is_pattern = any(sign in wanted for sign in "*?[")
            hidden = "__" if is_pattern and not wanted.startswith("__") else " "
            names = [name for name in held if fnmatch.fnmatchcase(name, wanted) and not name.startswith(hidden)]
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
            f"{partition[0]}:{partition[1]}",
            lambda consumer, wait_s: consumer.get_watermark_offsets(at, timeout=wait_s),
        )
        if found is None:
            raise self.down(f"{partition[0]}:{partition[1]}", f"nothing within {_ASK_S:g} s")
        low, high = found
        return max(0, low), max(0, high)

    def batches(self, ranges: Mapping[Partition, tuple[int, int]]) -> Generator[tuple[Partition, Batch], None, None]:
        """The messages of *ranges* (first offset, and the one behind the last), each partition's in order.

        Offsets may be empty: of compacted topics, and where a transaction's end is marked.

        Raises:
            LogPurged: an offset is gone.
            BrokerDown: the brokers are silent.
        """
        return self._taken(self._fetcher(), ranges)

    def _fetcher(self) -> Fetcher:
        if self._fetches is None:
            from connectors.readers.kafka.librdkafka import Fetcher

            self._fetches = Fetcher(self._settings_of_consumer(), _BATCH)
        return self._fetches

    def first_messages(self, ranges: Mapping[Partition, tuple[int, int]], count: int = 1) -> Iterator[Message]:
        """The first *count* messages of each of *ranges*, see :meth:`batches`. It loads no kernels."""
        for _, messages in self._taken(PlainFetcher(self._consumer(), count * len(ranges)), ranges, count):
            yield from messages.held

    def _taken(
        self, fetcher: Fetches[B], ranges: Mapping[Partition, tuple[int, int]], most: int | None = None
    ) -> Generator[tuple[Partition, B], None, None]:
        """What *fetcher* gives of *ranges*, at most *most* messages of each."""
        left = {partition: end for partition, (start, end) in ranges.items() if end > start}
        taken = dict.fromkeys(left, 0)
        if not left:
            return
        fetcher.assign({partition: ranges[partition][0] for partition in left})
        try:
            heard_s = time.monotonic()
            while left:
                fetched = fetcher.fetch(_FETCH_S)
                reached = dict[Partition, int]()
                for partition, batch in fetched.batches:
                    reached[partition] = batch.end
                    wanted = batch.before(left.get(partition, 0))
                    if most is not None:
                        wanted = wanted.part(0, min(len(wanted), most - taken[partition]))
                    if len(wanted):
                        taken[partition] += len(wanted)
                        yield partition, wanted
                for partition, offset in self._ends(fetched):
                    reached[partition] = max(reached.get(partition, 0), offset)
                done = [
                    partition
                    for partition, offset in reached.items()
                    if partition in left and (offset >= left[partition] or taken[partition] == most)
                ]
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

    def _ends(self, fetched: Fetched[B]) -> Iterator[tuple[Partition, int]]:
        """Partitions that have no more messages now, and where they end; what else was told is looked at."""
        for partition, code, text, offset in fetched.told:
            if code == PARTITION_END:
                yield partition, offset
            else:
                self._check(code, text, partition)

    def _silent(self, left: Iterable[Partition]) -> BrokerDown:
        names = ", ".join(f"{topic}:{number}" for topic, number in sorted(left))
        return self.down(names, f"nothing for {_SILENCE_S:g} s")

    def offsets_at(self, moment_us: int) -> dict[Partition, int]:
        """Of each partition the offset of its first message dated at *moment_us* (UTC microseconds) or later, else its end. Retryable."""
        from confluent_kafka import KafkaException, TopicPartition

        time_ms = -(-moment_us // 1000)
        # Ends come first: what arrives between both answers may be dated at the moment, and lies behind them.
        ends = {partition: self.bounds(partition)[1] for partition in self.partitions()}
        if not ends:
            return {}

        def ask(consumer: Consumer, wait_s: float) -> list[TopicPartition]:
            asked = [TopicPartition(*partition, time_ms) for partition in ends]
            found = consumer.offsets_for_times(asked, timeout=wait_s)
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

    def _check(self, code: int, text: str, partition: Partition) -> None:
        from confluent_kafka import KafkaError

        lost = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001 librdkafka's name
        if code in lost:
            low, high = self.bounds(partition)
            raise purged(partition, text, low, high)
        refused = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION, KafkaError.UNKNOWN_TOPIC_OR_PART)  # noqa: SLF001
        if code in (*refused, KafkaError._FATAL):  # noqa: SLF001
            kind = SourceNotLetIn if code == KafkaError._AUTHENTICATION else SourceError  # noqa: SLF001 as above
            raise kind("the brokers refuse to be read", where=f"{partition[0]}:{partition[1]}", found=text)

    def wait(self, reached: Mapping[Partition, int], timeout_s: float, wake: Wake | None = None) -> bool:
        """Whether one of the partitions goes on behind where it was *reached*; returns then, when *wake* is set, after *timeout_s* at the latest."""
        until_s = time.monotonic() + timeout_s
        while (left_s := until_s - time.monotonic()) > 0:
            bounds = {partition: self.bounds(partition) for partition in self.partitions()}
            if any(high > max(low, reached.get(partition, 0)) for partition, (low, high) in bounds.items()):
                return True
            if wake is None:
                time.sleep(min(left_s, _POLL_S))
            elif wake.wait(min(left_s, _POLL_S)):
                break
        return False

    def close(self) -> None:
        """Closes connections; the client can be used again."""
        made, self._made = self._made, None
        self._is_let_in = False
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
