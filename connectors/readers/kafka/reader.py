"""Topics of change events as a log: scanned and read by offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, NoReturn

from connectors.readers.base import (
    Bound,
    LogBytes,
    LogMark,
    PartitionLag,
    Scanned,
    SchemaMet,
    Statement,
    TableMapped,
)
from connectors.readers.kafka.client import Client, KafkaSettings, Partition, purged
from connectors.readers.kafka.decoders import advice_of, decoder_of
from connectors.readers.kafka.messages.events import Decoder, Event, RowSchema, SqlEvent
from connectors.readers.kafka.rows import ChunkMaker
from historian.changelog.chunks import Chunk
from historian.ddl import StatementContext
from historian.errors import LogPurged, LogReplaced, SourceError, UnsupportedEvent
from historian.names import TableName
from historian.plans.plans import UNREADABLE, PartitionRange, PlannedRange, PlannedTable
from historian.positions import KAFKA, LogPosition, PreparedXa, TopicOffsets
from historian.positions.places import Place

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["KafkaReader"]

_SQL_VERSION = 80_400
"""Of the server whose statements come in messages, which do not tell it: they are read as the present one reads them."""


class KafkaReader:
    """Topics of change events; implements :class:`connectors.readers.base.Reader`.

    It connects when it is first used, and it pickles: without connections.
    """

    flavor = KAFKA

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._client = Client(settings)
        self._message_bytes = 0.0
        self.on_bound: Callable[[LogPosition], None] | None = None

    def __getstate__(self) -> KafkaSettings:
        return self._settings

    def __setstate__(self, settings: KafkaSettings) -> None:
        KafkaReader.__init__(self, settings)

    def server(self) -> str:
        """Topics are of no server: offsets stand for the same messages on all brokers."""
        return ""

    # ---- positions -------------------------------------------------------------------------------------------------
    def start(self) -> LogPosition:
        """The earliest offsets that can be read from. Retryable."""
        return _at({partition: self._client.bounds(partition)[0] for partition in self._client.partitions()})

    def end(self) -> LogPosition:
        """The topics' ends now, see :class:`connectors.readers.base.Reader`; before transactions that are open. Retryable."""
        return _at({partition: self._client.bounds(partition)[1] for partition in self._client.partitions()})

    def near_end(self) -> LogPosition:
        """The topics' ends, see :class:`connectors.readers.base.Reader`. Retryable."""
        return self.end()

    def mark(self, file: str) -> LogMark | None:  # noqa: ARG002 topics have no files
        """The ids of the topics, by which one that was made again is known."""
        ids = self._client.topic_ids()
        return LogMark(server="", version="", file="", made_s=0, topics=ids) if ids else None

    def locate(self, position: LogPosition) -> LogPosition:
        """The same place with an offset of each partition; those that it does not name begin where they do.

        Raises:
            LogPurged: an offset is not in its partition, or a partition is gone.
        """
        if position.flavor != KAFKA:
            raise SourceError("a position of a binlog", where=str(position), expected="TOPIC:PARTITION:OFFSET")
        held = self._client.partitions()
        found: dict[Partition, int] = {}
        for partition in held:
            low, high = self._client.bounds(partition)
            found[partition] = self._checked(partition, position.offsets.offset(*partition), low, high)
        for (topic, number), _ in position.offsets:
            if (topic, number) not in found:
                numbers = sorted(n for name, n in held if name == topic)
                raise LogPurged(
                    "a partition that was read is gone",
                    where=f"{topic}:{number}",
                    expected=f"partition {number} of {topic}",
                    found=f"partitions {numbers}" if numbers else "no such topic",
                    next_step="the topic was made anew or left source.topics: start another connector with a store and targets of its own",
                )
        return _at(found)

    def _checked(self, partition: Partition, wanted: int | None, low: int, high: int) -> int:
        if wanted is None:
            return low
        if wanted < low:
            raise purged(partition, wanted, low, high)
        if wanted > high:
            raise LogReplaced(
                "a partition ends before what was read of it: the topic was made anew, or lost messages",
                where=f"{partition[0]}:{partition[1]}",
                expected=f"an end at {wanted} or behind",
                found=f"offsets {low} to {high}",
                next_step="start another connector with a store and targets of its own",
            )
        return wanted

    # ---- reading ---------------------------------------------------------------------------------------------------
    def scan(
        self, start: LogPosition, *, limit_bytes: int | None = None, until: LogPosition | None = None
    ) -> Iterator[Scanned]:
        """What schemas the messages behind *start* have, and one bound behind them, see :class:`connectors.readers.base.Reader`.

        Each table with rows is told once a partition, and again where its schema changes there; in the order of the source's
        time, since partitions share none.
        """
        begin = self.locate(start)
        ends = dict(self.end().offsets)
        if until is not None:
            ends = {partition: min(end, until.offsets.offset(*partition) or 0) for partition, end in ends.items()}
        ranges = {partition: (at, max(at, ends.get(partition, at))) for partition, at in begin.offsets}
        scan = _Scan(ranges, self._settings)
        with closing(self._client.messages(ranges)) as batches:
            for message in chain.from_iterable(batches):
                scan.take(message)
                if limit_bytes is not None and scan.size_bytes >= limit_bytes:
                    break
            else:
                scan.complete()
        parts = scan.ranges()
        if not parts:
            return
        yield from (item for _, item in sorted(scan.found, key=lambda found: found[0]))
        if scan.message_count:
            self._message_bytes = scan.size_bytes / scan.message_count
        reached = begin.offsets.union(TopicOffsets.of({(part.topic, part.partition): part.end for part in parts}))
        if self.on_bound is not None:
            self.on_bound(_position(reached))
        yield Bound(position=_position(reached), event_time_us=scan.event_time_us, partitions=parts)

    def read(
        self,
        planned: PlannedRange,
        tables: Sequence[PlannedTable],
        *,
        sequence: int = 0,
        as_text: bool = False,
        stops: bool = False,
        log: tuple[LogBytes, ...] | None = None,
        begun: dict[str, int] | None = None,
    ) -> Iterator[Chunk]:
        """Rows of *tables* in *planned*, see :class:`connectors.readers.base.Reader`."""
        del log, begun  # nothing is kept of a scan, and messages are named by their offsets
        if not isinstance(planned, PartitionRange):
            raise SourceError("a range of a binlog, and a reader of topics", where=str(planned))
        decoder, maker = (
            _decoder(self._settings, tells=False),
            ChunkMaker(planned, tables, sequence=sequence, as_text=as_text, stops=stops),
        )
        partition = (planned.topic, planned.partition)
        # A plan that was made with dead letters has them whatever the configuration says by now.
        keeps_unread = self._settings.keeps_unread or planned.unread > 0
        self._checked(partition, planned.start, *self._client.bounds(partition))
        with closing(self._client.messages({partition: (planned.start, planned.end)})) as batches:
            for batch in batches:
                unread = list[tuple[str, int, bytes, str]]()
                for message in batch:
                    offset = int(message.offset() or 0)
                    chunks = list[Chunk]()
                    try:
                        for event in decoder.events(message.key(), message.value(), f"{planned.file}:{offset}"):
                            if isinstance(event, Event):
                                chunks += maker.take(offset, event)
                    except UnsupportedEvent as error:
                        if not keeps_unread:
                            raise
                        unread.append(_unread(f"{planned.file}:{offset}", message, error))
                    yield from chunks
                if unread:
                    yield maker.unread(unread)
        yield from maker.rest()

    def cached(self, planned: PlannedRange) -> tuple[LogBytes, ...] | None:  # noqa: ARG002 as other readers
        """Nothing is kept of a scan."""
        return None

    def waiting_bytes(self, position: LogPosition) -> int:
        """How much stands behind *position*, about: brokers tell messages, and the last scan how long one is. 0 before a scan."""
        if not self._message_bytes:
            return 0
        return round(self._message_bytes * self.end().offsets.since(position.offsets))

    def partition_lags(self, position: LogPosition) -> tuple[PartitionLag, ...]:
        """What each partition holds behind *position*, see :class:`connectors.readers.base.Reader`."""
        read = position.offsets
        bounds = {partition: self._client.bounds(partition) for partition in self._client.partitions()}
        begins = {partition: max(low, read.offset(*partition) or 0) for partition, (low, _) in bounds.items()}
        waiting = {partition: at for partition, at in begins.items() if at < bounds[partition][1]}
        since_us = self._client.first_times_us({at: (begin, bounds[at][1]) for at, begin in waiting.items()})
        return tuple(
            PartitionLag(
                partition=f"{partition[0]}:{partition[1]}",
                messages=max(0, high - begins[partition]),
                since_us=since_us.get(partition),
            )
            for partition, (_, high) in bounds.items()
        )

    def wait(self, position: LogPosition, timeout_s: float) -> None:
        """Returns when a partition goes on behind *position*, after *timeout_s* at the latest."""
        self._client.wait(dict(position.offsets), timeout_s)

    def take_over(self, connector: str) -> None:
        """Earlier runs leave nothing at brokers, see :class:`connectors.readers.base.Reader`."""

    def look_back(self, xid: str, before: Place) -> tuple[PreparedXa, tuple[TableMapped, ...]]:
        """Never asked: topics have no XA transactions."""
        return _no_xa(xid, before)

    def close(self) -> None:
        """Closes connections; the reader can be used again."""
        self._client.close()


class _Scan:
    """What was met behind a start, partition by partition.

    Attributes:
        found: schemas and statements, each with its time in the source, which never goes back within a partition.
    """

    def __init__(self, ranges: Mapping[Partition, tuple[int, int]], settings: KafkaSettings) -> None:
        self._ranges = ranges
        self._reached = {partition: start for partition, (start, _) in ranges.items()}
        self._bytes = dict.fromkeys(ranges, 0)
        self._schemas: dict[tuple[Partition, TableName], RowSchema] = {}
        self._stated_us: dict[Partition, int] = {}
        # What one partition tells bit by bit says nothing of another one, which may be further.
        self._decoders = {partition: _decoder(settings, tells=True) for partition in ranges}
        self._advice = advice_of(settings.format)
        self._keeps_unread = settings.keeps_unread
        self._passed_over: dict[Partition, Counter[str]] = {partition: Counter() for partition in ranges}
        self.found: list[tuple[int, SchemaMet | Statement]] = []
        self.event_time_us = 0
        self.size_bytes = self.message_count = 0

    def take(self, message: object) -> None:
        """Takes the next message of a partition."""
        topic, number, offset = message.topic(), message.partition(), message.offset()  # type: ignore[attr-defined]
        key, value = message.key(), message.value()  # type: ignore[attr-defined]
        partition, size = (topic, number), len(key or b"") + len(value or b"")
        self._reached[partition] = offset + 1
        self._bytes[partition] += size
        self.size_bytes += size
        self.message_count += 1
        file = f"{topic}:{number}"
        place = Place(gtid=f"{file}:{offset}", file=file, offset=offset, ordinal=0)
        try:
            events = self._decoders[partition].events(key, value, place.gtid)
        except UnsupportedEvent:
            if not self._keeps_unread:
                raise
            self._passed_over[partition][UNREADABLE] += 1
            return
        if not events:
            self._passed_over[partition]["tombstone" if value is None else "no_row"] += 1
        for event in events:
            self.event_time_us = max(self.event_time_us, event.event_time_us)
            if isinstance(event, SqlEvent):
                self._take_statement(event, partition, place)
            elif self._schemas.get((partition, event.table)) is not event.schema:
                self._take_schema(event, partition, place)

    def _take_statement(self, event: SqlEvent, partition: Partition, place: Place) -> None:
        time_us = self._stated_us[partition] = max(self._stated_us.get(partition, 0), event.event_time_us)
        # What it changes may show in no message: the next row of each table is told again.
        self._schemas.clear()
        context = StatementContext(
            database=event.database,
            version=_SQL_VERSION,
            charset="utf8mb4",
            collation="utf8mb4_bin",
            time_us=event.event_time_us,
        )
        statement = Statement(place=place, event_time_us=event.event_time_us, sql=event.sql, context=context)
        self.found.append((time_us, statement))

    def _take_schema(self, event: Event, partition: Partition, place: Place) -> None:
        self._schemas[partition, event.table] = event.schema
        time_us = max(self._stated_us.get(partition, 0), event.event_time_us)
        met = SchemaMet(
            place=place,
            table=event.table,
            columns=tuple(each.column for each in event.schema.fields),
            key=event.schema.key,
            event_time_us=time_us,
            certainty=event.schema.certainty,
            advice=self._advice,
        )
        self.found.append((time_us, met))

    def complete(self) -> None:
        """All messages have come; offsets up to the ends without one are read too."""
        self._reached = {partition: end for partition, (_, end) in self._ranges.items()}

    def ranges(self) -> tuple[PartitionRange, ...]:
        """What was read, by partition."""
        return tuple(
            PartitionRange(
                topic=topic,
                partition=number,
                start=start,
                end=self._reached[topic, number],
                bytes_read=self._bytes[topic, number],
                passed_over=tuple(sorted(self._passed_over[topic, number].items())),
            )
            for (topic, number), (start, _) in sorted(self._ranges.items())
            if self._reached[topic, number] > start
        )


def _decoder(settings: KafkaSettings, *, tells: bool) -> Decoder:
    return decoder_of(settings.format, zone=settings.zone, tells=tells)


def _unread(place: str, message: Message, error: UnsupportedEvent) -> tuple[str, int, bytes, str]:
    kind, time_ms = message.timestamp()
    return place, time_ms * 1000 if kind else 0, bytes(message.value() or b""), str(error)


def _no_xa(xid: str, before: Place) -> NoReturn:
    raise SourceError("topics have no XA transactions", where=f"{xid} before {before}")


def _at(offsets: Mapping[Partition, int]) -> LogPosition:
    return _position(TopicOffsets.of(offsets))


def _position(offsets: TopicOffsets) -> LogPosition:
    return LogPosition(flavor=KAFKA, gtids=str(offsets), file="", offset=0)
