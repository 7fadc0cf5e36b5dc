"""Topics of change events as a log: scanned and read by offset."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from connectors.readers.base import (
    Bound,
    CachedLog,
    LogMark,
    PartitionLag,
    Scanned,
    Statement,
    TableMapped,
)
from connectors.readers.kafka.administration import Administration
from connectors.readers.kafka.client import Client, KafkaSettings, purged
from connectors.readers.kafka.decoders import decoder_for, has_statements, looks_back, writers_of
from connectors.readers.kafka.message_cache import MessageCache
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.messages.partitions import Partition
from connectors.readers.room import NO_ROOM, ROOM
from historian.changelog.chunks import Chunk
from historian.errors import LogPurged, LogReplaced, SourceError, UnsupportedEvent
from historian.plans.plans import PartitionRange, PlannedRange, PlannedTable
from historian.positions import KAFKA, LogPosition, PreparedXa, TopicOffsets
from historian.positions.places import Place

if TYPE_CHECKING:
    from connectors.readers.base import Wake
    from connectors.readers.kafka.messages.batch import Batch
    from connectors.readers.kafka.scanning import TopicScan
    from connectors.readers.kafka.statements.ahead import TableColumns
    from historian.names import TableName
    from historian.plans.source_marks import SourceMarks

# Kernels are imported where messages are read: to know where a topic ends, as the status asks, takes none.
__all__ = ["KafkaReader"]


class KafkaReader:
    """Topics of change events; implements :class:`connectors.readers.base.Reader`.

    It connects when it is first used, and it pickles: without connections.
    """

    flavor = KAFKA

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._client = Client(settings)
        self._administration = Administration(self._client)
        self._writers = writers_of(settings.registry)
        self._message_bytes = 0.0
        self._cache: MessageCache | None = None
        self._told: dict[tuple[str, TableName], TableColumns] = {}
        self.on_bound: Callable[[LogPosition], None] | None = None
        self.stated: Callable[[], Iterable[tuple[int, str]]] | None = None
        self.marks: Callable[[Collection[str]], SourceMarks] | None = None
        self.holds: Callable[[TableName, Collection[str]], bool] | None = None
        self.keeps_scans = False

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
        return _at({partition: low for partition, (low, _) in self._bounds().items()})

    def end(self) -> LogPosition:
        """The topics' ends now, see :class:`connectors.readers.base.Reader`; before transactions that are open. Retryable."""
        return _at({partition: high for partition, (_, high) in self._bounds().items()})

    def near_end(self) -> LogPosition:
        """The topics' ends, see :class:`connectors.readers.base.Reader`. Retryable."""
        return self.end()

    def mark(self, file: str) -> LogMark | None:  # noqa: ARG002 topics have no files
        """The ids of the topics, by which one that was made again is known."""
        ids = self._administration.topic_ids()
        return LogMark(server="", version="", file="", made_s=0, topics=ids) if ids else None

    def locate(self, position: LogPosition) -> LogPosition:
        """The same place with an offset of each partition; those that it does not name begin where they do.

        Raises:
            LogPurged: an offset is not in its partition, or a partition is gone.
        """
        return _at(self._begins(position, self._bounds()))

    def at_time(self, moment_us: int) -> LogPosition:
        """See :class:`connectors.readers.base.TimedLog`. Messages are dated by their producer, or by the broker, as the topic is set."""
        return _at(self._client.offsets_at(moment_us))

    def _bounds(self) -> dict[Partition, tuple[int, int]]:
        """The first offset of each partition, and the next one at its end."""
        # Statements are sent before the rows that follow them, so their end is asked for last: none of a row before it lacks.
        partitions = sorted(self._client.partitions(), key=self._has_statements_alone)
        return {partition: self._client.bounds(partition) for partition in partitions}

    def _has_statements_alone(self, partition: Partition) -> bool:
        return partition[0] == self._settings.schema_topic

    def _begins(self, position: LogPosition, bounds: Mapping[Partition, tuple[int, int]]) -> dict[Partition, int]:
        if position.flavor != KAFKA:
            raise SourceError("a position of a binlog", where=str(position), expected="TOPIC:PARTITION:OFFSET")
        found = {
            partition: self._checked(partition, position.offsets.offset(*partition), low, high)
            for partition, (low, high) in bounds.items()
        }
        for (topic, number), _ in position.offsets:
            if (topic, number) not in found:
                numbers = sorted(n for name, n in bounds if name == topic)
                raise LogPurged(
                    "a partition that was read is gone",
                    where=f"{topic}:{number}",
                    expected=f"partition {number} of {topic}",
                    found=f"partitions {numbers}" if numbers else "no such topic",
                    next_step="the topic was made anew or left source.topics: start another connector with a store and targets of its own",
                )
        return found

    def _checked(self, partition: Partition, wanted: int | None, low: int, high: int) -> int:
        if wanted is None:
            return low
        if wanted < low:
            raise purged(partition, wanted, low, high)
        if wanted > high:
            raise LogReplaced(
                "a partition ends before that offset: there is no message yet, or the topic was made anew, or lost messages",
                where=f"{partition[0]}:{partition[1]}",
                expected=f"an end at {wanted} or behind",
                found=f"offsets {low} to {high}",
                next_step="give an offset that it has; where the connector has read so far, start another one with a store and targets of its own",
            )
        return wanted

    # ---- reading ---------------------------------------------------------------------------------------------------
    def scan(
        self, start: LogPosition, *, limit_bytes: int | None = None, until: LogPosition | None = None
    ) -> Iterator[Scanned]:
        """What schemas the messages behind *start* have, and one bound behind them, see :class:`connectors.readers.base.Reader`.

        Each table with rows is told once a partition. It is told again where its schema changes there, or a statement was executed
        that may change it. They come in the order of the source's time, since partitions share none.
        """
        from connectors.readers.kafka.scanning import TopicScan
        from connectors.readers.kafka.statements.source_order import SourceOrder

        cache = self._cache = MessageCache(ROOM if self.keeps_scans else NO_ROOM)
        bounds = self._bounds()
        begins = self._begins(start, bounds)
        ends = {partition: high for partition, (_, high) in bounds.items()}
        if until is not None:
            ends = {partition: min(end, until.offsets.offset(*partition) or 0) for partition, end in ends.items()}
        ranges = {partition: (at, max(at, ends[partition])) for partition, at in begins.items()}
        self._check_schema_topic(start, begins)
        names = [f"{topic}:{number}" for (topic, number), (begin, end) in ranges.items() if end > begin]
        stated = list(() if self.stated is None or not has_statements(self._settings.format) else self.stated())
        marks = {} if self.marks is None else self.marks(names)
        order = SourceOrder(stated, goes_on=self.marks is not None)
        scan = TopicScan(ranges, self._settings, self._writers, marks, order, self._is_told)
        # A plan that ended with a watermark left it right before this one.
        back = int(looks_back(self._settings.format))
        wanted = {at: (max(bounds[at][0], begin - back), end) for at, (begin, end) in ranges.items() if end > begin}
        alone = {at: each for at, each in wanted.items() if self._has_statements_alone(at)}
        with closing(self._client.batches(alone)) as batches:
            for partition, batch in batches:
                cache.add(partition, batch)
                scan.take(partition, batch)
        self._fill(scan, {at: wanted[at] for at in wanted if at not in alone}, begins, limit_bytes)
        if self.marks is not None and any(isinstance(item, Statement) for _, item in scan.found):
            scan.note_passed(self.marks([f"{topic}:{number}" for topic, number in begins]))
        earlier = scan.waiting_ends()
        if earlier is not None:
            cache.close(())
            del scan
            yield from self.scan(start, until=_at(earlier))
            return
        scan.close()
        parts = scan.ranges()
        cache.close(parts)
        if not parts:
            return
        if has_statements(self._settings.format):
            scan.tell_again(moment_us for moment_us, _ in stated)
        self._told |= scan.last_told()
        yield from scan.in_order()
        if scan.message_count:
            self._message_bytes = scan.size_bytes / scan.message_count
        reached = _at(begins | {(part.topic, part.partition): part.end for part in parts})
        if self.on_bound is not None:
            self.on_bound(reached)
        yield Bound(position=reached, event_time_us=scan.event_time_us, partitions=parts, marks=scan.marks())

    def _is_told(self, told: TableColumns) -> bool:
        """Whether rows of earlier plans have told this, or a statement has."""
        return (self.holds is not None and self.holds(*told)) or told in self._told.values()

    def _fill(
        self,
        scan: TopicScan,
        wanted: Mapping[Partition, tuple[int, int]],
        begins: Mapping[Partition, int],
        limit_bytes: int | None,
    ) -> None:
        """Has *scan* take rows of *wanted*, until there is enough for a plan; before *begins* it only looks."""
        assert self._cache is not None  # noqa: S101 the scan has made it
        with closing(self._client.batches(wanted)) as batches:
            for partition, batch in batches:
                before = batch.before(begins[partition])
                if len(before):
                    scan.look_back(partition, before)
                if len(before) == len(batch):
                    continue
                rest = batch.part(len(before), len(batch))
                self._cache.add(partition, rest)
                if limit_bytes is None:
                    scan.take(partition, rest)
                elif scan.fill(partition, rest, limit_bytes):
                    return
        scan.complete()

    def _check_schema_topic(self, start: LogPosition, begins: Iterable[Partition]) -> None:
        """Refuses a topic of statements that was not read from where its rows were: what is in force by now, they would change once more."""
        read = dict(start.offsets)
        new = [at for at in begins if self._has_statements_alone(at) and at not in read]
        if read and new:
            raise SourceError(
                "a topic of statements comes to a connector that has read rows without it",
                where=self._settings.schema_topic,
                expected="source.schema_topic from the start",
                next_step="leave source.schema_topic out, or start another connector with a store and targets of its own",
            )

    def read(
        self,
        planned: PlannedRange,
        tables: Sequence[PlannedTable],
        *,
        sequence: int = 0,
        as_text: bool = False,
        stops: bool = False,
        log: Sequence[CachedLog] | None = None,
        begun: dict[str, int] | None = None,
    ) -> Iterator[Chunk]:
        """Rows of *tables* in *planned*, see :class:`connectors.readers.base.Reader`."""
        from connectors.readers.kafka.located.batches import never, runs_of
        from connectors.readers.kafka.locators import locator_of
        from connectors.readers.kafka.rows import ChunkMaker

        del begun  # messages are named by their offsets
        if not isinstance(planned, PartitionRange):
            raise SourceError("a range of a binlog, and a reader of topics", where=str(planned))
        # What was planned is the same whatever the configuration says by now: of tombstones, and of dead letters below.
        settings = replace(self._settings, tombstones="ignore" if planned.ignores_tombstones else "delete")
        decoder = decoder_for(settings, planned.topic, self._writers, tells=False)
        lone = self._settings.normalized or never
        maker = ChunkMaker(planned, tables, sequence=sequence, as_text=as_text, stops=stops, normalized=lone)
        keeps_unread = self._settings.keeps_unread or planned.unread > 0
        locator = locator_of(decoder, lone)
        with closing(self._batches(planned) if log is None else _own(log)) as batches:
            for batch in (each for taken in batches for each in taken.without(planned.repeated)):
                for run in runs_of(locator, batch):
                    if not isinstance(run, int):
                        yield from maker.take_located(run)
                        continue
                    offset, value, chunks = int(batch.offsets[run]), batch.values[run], list[Chunk]()
                    where, time_us = f"{planned.file}:{offset}", batch.time_us(run)
                    try:
                        for event in decoder.events(batch.keys[run], value, where, time_us):
                            if isinstance(event, Event):
                                chunks += maker.take(offset, event)
                    except UnsupportedEvent as error:
                        if not keeps_unread:
                            raise
                        chunks += maker.take_unread(where, time_us, value or b"", str(error))
                    yield from chunks
        yield from maker.rest()

    def _batches(self, planned: PartitionRange) -> Generator[Batch, None, None]:
        partition = (planned.topic, planned.partition)
        self._checked(partition, planned.start, *self._client.bounds(partition))
        with closing(self._client.batches({partition: (planned.start, planned.end)})) as batches:
            yield from (batch for _, batch in batches)

    def cached(self, planned: PlannedRange) -> Sequence[CachedLog] | None:
        """The range's messages, see :class:`connectors.readers.base.Reader`."""
        return None if self._cache is None or not isinstance(planned, PartitionRange) else self._cache.cached(planned)

    def forget(self) -> None:
        """Frees what the last scan kept, see :class:`connectors.readers.base.Reader`."""
        self._cache = None

    def waiting_bytes(self, position: LogPosition) -> int:
        """How much stands behind *position*, about: brokers tell messages, and the last scan how long one is. 0 before a scan."""
        if not self._message_bytes:
            return 0
        return round(self._message_bytes * sum(end - begin for begin, end in self._waiting(position).values()))

    def partition_lags(self, position: LogPosition) -> tuple[PartitionLag, ...]:
        """What each partition holds behind *position*, see :class:`connectors.readers.base.Reader`."""
        waiting = self._waiting(position)
        since_us = self._client.first_times_us({at: each for at, each in waiting.items() if each[0] < each[1]})
        return tuple(
            PartitionLag(
                partition=f"{partition[0]}:{partition[1]}", messages=end - begin, since_us=since_us.get(partition)
            )
            for partition, (begin, end) in waiting.items()
        )

    def _waiting(self, position: LogPosition) -> dict[Partition, tuple[int, int]]:
        """Of each partition the first offset behind *position* that it still has, and its end."""
        read = position.offsets
        begins = {at: (max(low, read.offset(*at) or 0), high) for at, (low, high) in self._bounds().items()}
        return {at: (begin, max(begin, high)) for at, (begin, high) in begins.items()}

    def wait(self, position: LogPosition, timeout_s: float, wake: Wake | None = None) -> bool:
        """Returns when a partition goes on behind *position*, see :class:`connectors.readers.base.Reader`."""
        return self._client.wait(dict(position.offsets), timeout_s, wake)

    def take_over(self, connector: str) -> None:  # noqa: ARG002 nothing stands there by a name
        """Asks whether brokers and registry let the run in. Earlier runs leave nothing there, see :class:`connectors.readers.base.Reader`. Retryable."""
        self._client.partitions()
        if self._writers is not None:
            self._writers.registry.languages()

    def look_back(self, xid: str, before: Place) -> tuple[PreparedXa, tuple[TableMapped, ...]]:
        """Never asked: topics have no XA transactions."""
        return _no_xa(xid, before)

    def close(self) -> None:
        """Closes connections; the reader can be used again."""
        self._cache = None
        self._client.close()
        self._administration.close()


def _own(log: Sequence[CachedLog]) -> Generator[Batch, None, None]:
    from connectors.readers.kafka.messages.batch import Batch

    for part in log:
        if not isinstance(part, Batch):
            raise TypeError(part)
        yield part


def _no_xa(xid: str, before: Place) -> NoReturn:
    raise SourceError("topics have no XA transactions", where=f"{xid} before {before}")


def _at(offsets: Mapping[Partition, int]) -> LogPosition:
    return LogPosition(flavor=KAFKA, gtids=str(TopicOffsets.of(offsets)), file="", offset=0)
