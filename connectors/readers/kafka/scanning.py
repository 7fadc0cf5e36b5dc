"""A scan of topics: which schemas and statements their messages bring, and how far it has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.base import SchemaMet, Statement
from connectors.readers.kafka.avro.sent import AvroSent
from connectors.readers.kafka.crossings import Crossings
from connectors.readers.kafka.debezium.envelope import SERVER
from connectors.readers.kafka.decoders import (
    advice_of,
    decoder_for,
    has_source_order,
    has_source_places,
    has_statements,
)
from connectors.readers.kafka.formats.decoder import FlatDecoder
from connectors.readers.kafka.keyed.rows import KeyedRows
from connectors.readers.kafka.located.batches import LocatedRows, interleaved, never, runs_of
from connectors.readers.kafka.located.source_words import row_words
from connectors.readers.kafka.locators import scanning_locator_of
from connectors.readers.kafka.messages.events import Event, RowSchema, SqlEvent, Watermark
from connectors.readers.kafka.messages.source_places import NO_PLACE, SourcePlace, place_of
from connectors.readers.kafka.partitions import partition_of
from connectors.readers.kafka.repeats import Newest, Places, Repeats, hash_of
from connectors.readers.kafka.row_times import RowTimes
from connectors.readers.kafka.source_order import SourceOrder
from connectors.readers.kafka.statements_ahead import first_ahead, in_order
from historian.changelog.operations import Op
from historian.ddl import StatementContext
from historian.errors import UnsupportedEvent
from historian.plans.plans import DOUBTFUL, LATE, LEAST_MESSAGE_BYTES, REPEATED, UNREADABLE, PartitionRange
from historian.positions.places import Place

if TYPE_CHECKING:
    from connectors.readers.kafka.avro.writers import Writers
    from connectors.readers.kafka.client import KafkaSettings
    from connectors.readers.kafka.messages.batch import Batch
    from connectors.readers.kafka.partitions import Partition
    from historian.names import TableName
    from historian.plans.source_marks import SourceMarks

__all__ = ["TopicScan"]

_RANGE_BYTES = 16 << 20
"""So much of a partition is a range of its own, at least."""

_SQL_VERSION = 80_400
"""Of the server whose statements come in messages, which do not tell it: they are read as the present one reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closed:
    """How far a partition was read with a watermark: up to the offset behind it, with so many ranges before the last one, which has all this."""

    offset: int
    ranges: int
    begun: int
    size_bytes: int
    passed_over: Counter[str]


class TopicScan:
    """What is met behind a start, partition by partition.

    Args:
        ranges: of each partition the first offset, and the one behind the last.
        writers: see :func:`connectors.readers.kafka.decoders.writers_of`.
        marks: how far partitions have come in the source's log before.
        order: of statements that were executed before; None: none was.

    Attributes:
        found: schemas and statements, each with its time in the source.
    """

    def __init__(
        self,
        ranges: Mapping[Partition, tuple[int, int]],
        settings: KafkaSettings,
        writers: Writers | None = None,
        marks: SourceMarks | None = None,
        order: SourceOrder | None = None,
    ) -> None:
        self._ranges = ranges
        self._parts: dict[Partition, list[PartitionRange]] = {partition: [] for partition in ranges}
        self._begun = {partition: start for partition, (start, _) in ranges.items()}
        self._reached = {partition: start for partition, (start, _) in ranges.items()}
        self._bytes = dict.fromkeys(ranges, 0)
        self._schemas: dict[tuple[Partition, TableName], RowSchema] = {}
        self._stated_us: dict[Partition, int] = {}
        self._read_us: dict[Partition, int] = {}
        self._promised_us: dict[Partition, int] = {}
        self._closed: dict[Partition, _Closed] = {}
        self._row_times: dict[tuple[Partition, TableName], RowTimes] = {}
        self._sent = AvroSent(writers) if writers is not None and settings.format == "debezium_avro" else None
        hashed: Callable[[bytes, int], int] = hash_of if self._sent is None else self._sent.hash_of
        self._repeats = {
            partition: Repeats((marks or {}).get(f"{partition[0]}:{partition[1]}"), hashed)
            for partition in (ranges if has_source_places(settings.format) else ())
        }
        self._repeated: dict[Partition, list[tuple[int, int]]] = {partition: [] for partition in ranges}
        self._has_statements = has_statements(settings.format)
        # What one partition tells bit by bit says nothing of another one, which may be further.
        self.decoders = {partition: decoder_for(settings, partition[0], writers) for partition in ranges}
        self._locators = {
            partition: scanning_locator_of(decoder, settings.normalized or never)
            for partition, decoder in self.decoders.items()
        }
        # Statements tell types as the source has them, where rows tell what their producer makes of them.
        self._schema_topic = settings.schema_topic
        self._order = SourceOrder() if order is None else order
        self._crossings = {at: Crossings(self._order, f"{at[0]}:{at[1]}") for at in ranges}
        self._taken: set[tuple[int | None, str, str, str]] = set()
        self._is_ordered = bool(settings.schema_topic) and has_source_order(settings.format)
        self._advice = advice_of(settings.format)
        self._keeps_unread = settings.keeps_unread
        self._passed_over: dict[Partition, Counter[str]] = {partition: Counter() for partition in ranges}
        self.found: list[tuple[int, SchemaMet | Statement]] = []
        self.event_time_us = 0
        self.size_bytes = self.message_count = 0

    def fill(self, partition: Partition, batch: Batch, limit_bytes: int) -> bool:
        """Takes the next messages of a partition, about until *limit_bytes* are read of all; True: a plan has enough.

        Where nothing stands before a statement that waits, rows of other partitions have to come to it first: then more is read.
        """
        taken, most = 0, limit_bytes
        while taken < len(batch):
            if self._is_full(most):
                most = max(self.size_bytes, self.message_count * LEAST_MESSAGE_BYTES) + limit_bytes
            # What a row takes does not shrink with its message, so that a plan ends by messages too.
            left = max(1, most // LEAST_MESSAGE_BYTES - self.message_count)
            taken += self.take(partition, batch.part(taken, min(len(batch), taken + left)), most)
            if self._is_full(most):
                ends = self.waiting_ends()
                if ends is None or any(end > self._ranges[at][0] for at, end in ends.items()):
                    return True
        return False

    def _is_full(self, most_bytes: int) -> bool:
        return self.size_bytes >= most_bytes or self.message_count >= most_bytes // LEAST_MESSAGE_BYTES

    def take(self, partition: Partition, batch: Batch, limit_bytes: int | None = None) -> int:
        """Takes the next messages of a partition, until *limit_bytes* are read of all; gives how many."""
        sizes = np.cumsum(batch.sizes)
        if limit_bytes is not None:
            read = int(np.searchsorted(self.size_bytes + sizes, limit_bytes)) + 1
            batch, sizes = batch.part(0, min(read, len(batch))), sizes[:read]
        self.size_bytes += int(sizes[-1])
        self.message_count += len(batch)
        self._bytes[partition] += int(sizes[-1])
        for part in self._parts_between_statements(partition, batch):
            self._take_batch(partition, part)
        self._reached[partition] = int(batch.offsets[-1]) + 1
        if self._bytes[partition] >= _RANGE_BYTES:
            self._parts[partition].append(self._part(partition))
            self._begun[partition] = self._reached[partition]
            self._bytes[partition] = 0
            self._passed_over[partition] = Counter()
            self._repeated[partition] = []
        return len(batch)

    def _parts_between_statements(self, partition: Partition, batch: Batch) -> Iterator[Batch]:
        """*batch* as it is, or in parts where what a decoder has learned of columns counts no more."""
        decoder, begin = self.decoders[partition], 0
        if self._is_ordered and isinstance(decoder, FlatDecoder):
            for end in self._crossings[partition].of(batch):
                if end > begin:
                    yield batch.part(begin, end)
                decoder.forget()
                begin = end
        yield batch.part(begin, len(batch))

    def look_back(self, partition: Partition, batch: Batch) -> None:
        """Looks at messages before the scan's start: a watermark holds for those behind it, and a decoder knows of the last one."""
        for key, value, offset in zip(batch.keys, batch.values, batch.offsets.tolist(), strict=True):
            if value is None:
                continue  # what its table is, the one before it told
            try:
                events = self.decoders[partition].events(key, value, f"{partition[0]}:{partition[1]}:{offset}")
            except UnsupportedEvent:
                continue  # the plan before has told, or left it to the dead letters
            for event in events:
                if isinstance(event, Watermark):
                    self._promised_us[partition] = event.time_us

    def _take_batch(self, partition: Partition, batch: Batch) -> None:
        """Takes the next messages of a partition: where compiled code finds no other schema than the last one, it does no more."""
        self._places = Places(len(batch), None if self._sent is None else self._sent.payload)
        self._offsets = batch.offsets
        self._take_messages(partition, batch)
        if partition in self._repeats:
            if self._is_ordered and not self._order.is_empty:
                words, times_us, newest = self._places.words, self._places.times_us, self._repeats[partition].newest
                self._order.check_goes_on(words, times_us, newest, f"{partition[0]}:{partition[1]}")
            told = self._repeats[partition].take(self._places, batch.values)
            for number in np.flatnonzero(told.repeats).tolist():
                self._pass_over_repeat(partition, int(batch.offsets[number]))
            if told.doubtful.any():
                self._passed_over[partition][DOUBTFUL] += int(told.doubtful.sum())

    def _pass_over_repeat(self, partition: Partition, offset: int) -> None:
        self._passed_over[partition][REPEATED] += 1
        found = self._repeated[partition]
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))

    def _take_messages(self, partition: Partition, batch: Batch) -> None:
        locator = self._locators[partition]
        if locator is None:
            self._look_at(partition, batch, range(len(batch)), range(len(batch)))
            return
        tombstones = int(batch.values.absent.sum()) if locator.tombstones else 0
        if tombstones:
            self._passed_over[partition]["tombstone"] += tombstones
        met: dict[TableName, RowSchema] = {}
        first: list[int] = []
        for run in runs_of(locator, batch):
            if isinstance(run, int):
                if not tombstones or not batch.values.absent[run]:
                    first.append(run)
                self._look_at(partition, batch, first, (run,))
                met, first = {}, []
                continue
            by_table: dict[TableName, list[LocatedRows]] = {}
            for found in run:
                if partition in self._repeats:
                    numbers = np.searchsorted(batch.offsets, found.offsets)
                    self._places.words[numbers] = found.places()
                    self._places.ends[numbers] = found.ends()
                    self._places.times_us[numbers] = found.times
                self.event_time_us = max(self.event_time_us, int(found.times.max()))
                by_table.setdefault(found.known.table, []).append(found)
            for table, of_table in by_table.items():
                for rows in interleaved(of_table):
                    self._note_times(partition, rows)
                    schema = rows.known.schema
                    if met.get(table, self._schemas.get((partition, table))) is schema:
                        continue
                    first.append(int(np.searchsorted(batch.offsets, rows.offsets[0])))
                    telling = np.flatnonzero(rows.ops != Op.RETRACT) if schema.is_of_key_alone else (0,)
                    if len(telling):
                        met[table] = schema
                        first.append(int(np.searchsorted(batch.offsets, rows.offsets[telling[0]])))
        self._look_at(partition, batch, first)

    def _note_read(self, partition: Partition, moment_us: int) -> None:
        self._read_us[partition] = max(self._read_us.get(partition, 0), moment_us)

    def waiting_ends(self) -> dict[Partition, int] | None:
        """Where partitions end before the first statement that is later than rows which are not read yet; None: there is none.

        Raises:
            SourceError: there is one, and it has no place in the source's log that says which rows are before it.
        """
        unread = [
            at for at, (_, end) in self._ranges.items() if self._reached[at] < end and at[0] != self._schema_topic
        ]
        statements = (item for _, item in self.found if isinstance(item, Statement))
        first = first_ahead(statements, {at: self._read_us.get(at, 0) for at in unread})
        if first is None:
            return None
        ends = {}
        for at in self._ranges:
            stated = (
                item.place.offset
                for moment_us, item in self.found
                if isinstance(item, Statement) and partition_of(item.place) == at and moment_us >= first
            )
            begins = (times.first_from(first) for (where, _), times in self._row_times.items() if where == at)
            ends[at] = min((*stated, *(offset for offset in begins if offset is not None), self._reached[at]))
        return ends

    def _note_times(self, partition: Partition, rows: LocatedRows) -> None:
        moments_us = rows.times
        if self._is_ordered and not self._order.is_empty:
            newest = partial(self._newest_before, partition, int(rows.offsets[0]))
            where = f"{partition[0]}:{partition[1]}"
            moments_us = self._order.moments(row_words(rows, SERVER), rows.times, where, newest)
        self._note_read(partition, int(moments_us.max()))
        if promised_us := self._promised_us.get(partition, 0):
            late = rows.offsets[rows.times < promised_us]
            if len(late):
                self._passed_over[partition][LATE] += len(np.unique(late))
        if self._has_statements:
            times_us = np.maximum(moments_us, self._stated_us.get(partition, 0))
            self._times_of(partition, rows.known.table).note_all(times_us, rows.offsets)

    def _look_at(self, partition: Partition, batch: Batch, numbers: Iterable[int], alone: Collection[int] = ()) -> None:
        """Reads messages in their order; others than *alone* are located."""
        for number in sorted({*numbers}):
            self._look(partition, batch, number, located=number not in alone)

    def _look(self, partition: Partition, batch: Batch, number: int, *, located: bool) -> None:
        """Reads a message; of one that is *located* the schema alone."""
        key, value, offset = batch.keys[number], batch.values[number], int(batch.offsets[number])
        file = f"{partition[0]}:{partition[1]}"
        place = Place(gtid=f"{file}:{offset}", file=file, offset=offset, ordinal=0)
        try:
            events = self.decoders[partition].events(key, value, place.gtid, batch.time_us(number))
        except UnsupportedEvent:
            if not self._keeps_unread:
                raise
            self._passed_over[partition][UNREADABLE] += 1
            return
        if not events:
            self._pass_over(partition, value, offset)
        for event in events:
            if isinstance(event, Watermark):
                self._passed_over[partition]["watermark"] += 1
                self._promised_us[partition] = max(self._promised_us.get(partition, 0), event.time_us)
                self._closed[partition] = _Closed(
                    offset=offset + 1,
                    ranges=len(self._parts[partition]),
                    begun=self._begun[partition],
                    size_bytes=self._bytes[partition],
                    passed_over=self._passed_over[partition].copy(),
                )
                continue
            self.event_time_us = max(self.event_time_us, event.event_time_us)
            if isinstance(event, SqlEvent):
                if self._is_told_apart(partition, value or b""):
                    self._passed_over[partition]["no_row"] += 1
                    continue
                self._take_statement(event, value or b"", partition, place)
                continue
            moment_us = self._moment_us(event, value or b"", place)
            self._note_read(partition, moment_us)
            if not located and value is not None and partition in self._repeats:
                self._places.note(number, value, event.event_time_us)
            if not located and event.event_time_us < self._promised_us.get(partition, event.event_time_us):
                self._passed_over[partition][LATE] += 1
            if self._has_statements:
                time_us = max(self._stated_us.get(partition, 0), moment_us)
                self._times_of(partition, event.table).note(time_us, offset)
            held = self._schemas.get((partition, event.table))
            if held is not event.schema and not (event.keyed and event.schema.tells_no_more_than(held)):
                told = self._crossings[partition].alone(event, moment_us, self.decoders[partition], key, value)
                self._take_schema(told, partition, place, moment_us)

    def _pass_over(self, partition: Partition, value: bytes | None, offset: int) -> None:
        self._passed_over[partition]["tombstone" if value is None else "no_row"] += 1
        if isinstance(self.decoders[partition], KeyedRows):
            # What it is was told by the message before it, which a range may lack that begins with it.
            self._repeated[partition].append((offset, offset + 1))

    def _is_told_apart(self, partition: Partition, value: bytes) -> bool:
        """Whether a statement among rows is one that the topic of statements has: it would be executed twice."""
        if not self._is_ordered or partition[0] == self._schema_topic:
            return False
        words = place_of(value)
        return words is not None and self._order.has(words)

    def _moment_us(self, event: Event | SqlEvent, value: bytes, place: Place) -> int:
        """The moment among statements of a change, or of a statement that stands among rows."""
        if not self._is_ordered or self._order.is_empty:
            return event.event_time_us
        words = np.array([place_of(value) or NO_PLACE], np.int64)
        newest = partial(self._newest_before, partition_of(place), place.offset)
        return int(self._order.moments(words, np.array([event.event_time_us], np.int64), place.gtid, newest)[0])

    def _newest_before(self, partition: Partition, offset: int) -> Newest:
        """How far a partition has come before the message at *offset*."""
        return self._places.newest(int(np.searchsorted(self._offsets, offset))) or self._repeats[partition].newest

    def _times_of(self, partition: Partition, table: TableName) -> RowTimes:
        return self._row_times.setdefault((partition, table), RowTimes())

    def _take_statement(self, event: SqlEvent, value: bytes, partition: Partition, place: Place) -> None:
        is_apart = partition[0] == self._schema_topic
        moment_us = event.event_time_us if is_apart else self._moment_us(event, value, place)
        if event.snapshot_source:
            self._order.check_snapshot(SourcePlace.parsed(event.snapshot_source), moment_us, place.gtid)
            # Its time is of Debezium's own clock. What it makes is there behind the statement before.
            moment_us = self._stated_us.get(partition, 0)
        if event.source:
            stated_at = SourcePlace.parsed(event.source)
            stated_us = self._order.state(stated_at, moment_us, place.gtid)
            # One statement about several tables is told as several ones.
            taken = stated_us, stated_at.gtid or event.source, event.database, event.sql
            if stated_us is None or taken in self._taken:
                self._passed_over[partition][REPEATED] += 1
                return
            self._taken.add(taken)
            moment_us = stated_us
        self._note_read(partition, moment_us)
        time_us = self._stated_us[partition] = max(self._stated_us.get(partition, 0), moment_us)
        # What it changes may show in no message: the next row of each table is told again.
        self._schemas.clear()
        among = None if is_apart or partition not in self._repeats else self._places.of_statement(value)
        context = StatementContext(
            database=event.database,
            version=_SQL_VERSION,
            charset="utf8mb4",
            collation="utf8mb4_bin",
            time_us=event.event_time_us,
        )
        statement = Statement(
            place=place,
            event_time_us=moment_us,
            sql=event.sql,
            context=context,
            apart=is_apart and not event.source,
            source=event.source,
            among="" if among is None else str(among._replace(by_second=event.event_time_us % 1_000_000 == 0)),
            has_place=self._is_ordered and not is_apart and event.sql.endswith("*/"),
        )
        self.found.append((time_us, statement))

    def _take_schema(self, event: Event, partition: Partition, place: Place, moment_us: int) -> None:
        self._schemas[partition, event.table] = event.schema
        time_us = max(self._stated_us.get(partition, 0), moment_us)
        met = SchemaMet(
            place=place,
            table=event.table,
            columns=tuple(each.column for each in event.schema.fields),
            key=event.schema.key,
            event_time_us=time_us,
            certainty="columns" if self._schema_topic and event.schema.certainty == "exact" else event.schema.certainty,
            advice=self._advice,
        )
        self.found.append((time_us, met))

    def tell_again(self, stated_us: Iterable[int]) -> None:
        """Tells the schemas in force again from the moments of statements on, *stated_us* and those that were met.

        What a statement changes may show in no message, and another partition may have brought it.
        """
        met: dict[tuple[Partition, TableName], list[SchemaMet]] = {}
        for _, item in self.found:
            if isinstance(item, SchemaMet):
                met.setdefault((partition_of(item.place), item.table), []).append(item)
        times_us = {*stated_us, *(item.event_time_us for _, item in self.found if isinstance(item, Statement))}
        for key, row_times in self._row_times.items():
            told = {item.place.offset for item in met.get(key, ())}
            for offset, time_us in sorted({first for each in times_us if (first := row_times.first_at(each))}):
                if offset not in told and told and offset < self._reached[key[0]]:
                    last = max(
                        (each for each in met[key] if each.place.offset < offset), key=lambda each: each.place.offset
                    )
                    place = replace(last.place, gtid=f"{last.place.file}:{offset}", offset=offset)
                    self.found.append((time_us, replace(last, place=place, event_time_us=time_us)))

    def in_order(self) -> Iterator[SchemaMet | Statement]:
        """What was met, as :func:`.statements_ahead.in_order` has it."""
        return in_order(self.found, self._schema_topic)

    def complete(self) -> None:
        """All messages have come; offsets up to the ends without one are read too."""
        self._reached = {partition: end for partition, (_, end) in self._ranges.items()}

    def close(self) -> None:
        """Ends each partition behind the last watermark that was met in it, if any: a plan then ends where its source's times do."""
        for partition, closed in self._closed.items():
            self._parts[partition] = self._parts[partition][: closed.ranges]
            self._begun[partition], self._reached[partition] = closed.begun, closed.offset
            self._bytes[partition], self._passed_over[partition] = closed.size_bytes, closed.passed_over
        ends = {f"{topic}:{number}": closed.offset for (topic, number), closed in self._closed.items()}
        self.found = [
            each for each in self.found if each[1].place.offset < ends.get(each[1].place.file, each[1].place.offset + 1)
        ]

    def ranges(self) -> tuple[PartitionRange, ...]:
        """What was read, by partition; a long part of one is several ranges, which are read side by side."""
        found = list[PartitionRange]()
        for partition in sorted(self._ranges):
            found += self._parts[partition]
            if self._reached[partition] > self._begun[partition]:
                found.append(self._part(partition))
        return tuple(found)

    def _part(self, partition: Partition) -> PartitionRange:
        topic, number = partition
        return PartitionRange(
            topic=topic,
            partition=number,
            start=self._begun[partition],
            end=self._reached[partition],
            bytes_read=self._bytes[partition],
            passed_over=tuple(sorted(self._passed_over[partition].items())),
            repeated=tuple(self._repeated[partition]),
        )

    def marks(self) -> SourceMarks:
        """How far the partitions that have messages have come in the source's log."""
        marks = {
            f"{topic}:{number}": repeats.mark
            for (topic, number), repeats in self._repeats.items()
            if self._reached[topic, number] > self._ranges[topic, number][0]
        }
        return {partition: mark for partition, mark in marks.items() if mark is not None}
