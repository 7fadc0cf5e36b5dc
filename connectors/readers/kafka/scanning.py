"""A scan of topics: which schemas and statements their messages bring, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.kafka.decoders import (
    advice_of,
    decoder_for,
    has_source_places,
    has_statements,
    has_statements_among_rows,
    has_statements_in_each,
    sent_of,
)
from connectors.readers.kafka.formats.decoder import FlatDecoder
from connectors.readers.kafka.located.batches import LocatedRows, interleaved, never, runs_of
from connectors.readers.kafka.locators import scanning_locator_of
from connectors.readers.kafka.messages.events import RowSchema, SqlEvent, Watermark
from connectors.readers.kafka.messages.partitions import partition_of
from connectors.readers.kafka.repeats import Places, Repeats
from connectors.readers.kafka.scanned_ranges import ScannedRanges
from connectors.readers.kafka.statements.crossings import Crossings
from connectors.readers.kafka.statements.scanned import ScannedStatements
from connectors.readers.kafka.statements.source_order import SourceOrder
from historian.changelog.operations import Op
from historian.errors import UnsupportedEvent
from historian.plans.plans import DOUBTFUL, LATE, LEAST_MESSAGE_BYTES, REPEATED, UNREADABLE, PartitionRange
from historian.plans.source_marks import NO_PLACES, SourceMark, latest_of
from historian.positions.places import Place

if TYPE_CHECKING:
    from connectors.readers.base import SchemaMet, Statement
    from connectors.readers.kafka.avro.writers import Writers
    from connectors.readers.kafka.client import KafkaSettings
    from connectors.readers.kafka.messages.batch import Batch
    from connectors.readers.kafka.messages.partitions import Partition
    from connectors.readers.kafka.messages.source_places import Newest
    from connectors.readers.kafka.statements.ahead import TableColumns
    from historian.names import TableName
    from historian.plans.source_marks import SourceMarks

__all__ = ["TopicScan"]

_LONGEST_WAIT = 4
"""So many times the limit is read at most to find what may explain rows: a partition may have nothing that tells a time."""


class TopicScan:
    """What is met behind a start, partition by partition.

    Args:
        ranges: of each partition the first offset, and the one behind the last.
        writers: see :func:`connectors.readers.kafka.decoders.writers_of`.
        marks: how far partitions have come in the source's log before.
        order: of statements that were executed before; None: none was.
        is_told: whether rows of earlier plans, or statements, have told what a row tells of its table.
    """

    def __init__(
        self,
        ranges: Mapping[Partition, tuple[int, int]],
        settings: KafkaSettings,
        writers: Writers | None = None,
        marks: SourceMarks | None = None,
        order: SourceOrder | None = None,
        is_told: Callable[[TableColumns], bool] = lambda _: False,
    ) -> None:
        self._ranges = ranges
        self._read = ScannedRanges(ranges, ignores_tombstones=settings.tombstones == "ignore")
        self._schemas: dict[tuple[Partition, TableName], RowSchema] = {}
        self._promised_us: dict[Partition, int] = {}
        self._sent = sent_of(settings.format, writers)
        self._marks = marks or {}
        self._repeats = {
            partition: Repeats(self._placed_mark(partition), self._sent.hash_of)
            for partition in (ranges if has_source_places(settings.format) else ())
        }
        # What one partition tells bit by bit says nothing of another one, which may be further.
        self._decoders = {partition: decoder_for(settings, partition[0], writers) for partition in ranges}
        self._locators = {
            partition: scanning_locator_of(decoder, settings.normalized or never)
            for partition, decoder in self._decoders.items()
        }
        self._schema_topic = settings.schema_topic
        self._order = SourceOrder() if order is None else order
        self._statements = ScannedStatements(
            self._order,
            schema_topic=settings.schema_topic,
            payload_of=self._sent.payload,
            moves=has_statements(settings.format),
            advice=advice_of(settings.format),
            in_each=has_statements_in_each(settings.format),
            stated={at: frozenset(self._mark(at).stated) for at in ranges},
            is_told=is_told if has_statements_among_rows(settings.format) else None,
        )
        self._crossings = {at: Crossings(self._order, f"{at[0]}:{at[1]}") for at in ranges}
        self._keeps_unread = settings.keeps_unread
        self.event_time_us = 0
        self.size_bytes = self.message_count = 0
        self._most_bytes = 0

    def _mark(self, partition: Partition) -> SourceMark:
        return self._marks.get(f"{partition[0]}:{partition[1]}", NO_PLACES)

    def _placed_mark(self, partition: Partition) -> SourceMark | None:
        mark = self._mark(partition)
        return mark if mark.passes else None

    @property
    def found(self) -> list[tuple[int, SchemaMet | Statement]]:
        """Schemas and statements, each with its time in the source."""
        return self._statements.found

    def last_told(self) -> dict[tuple[str, TableName], TableColumns]:
        """As of :meth:`.ScannedStatements.last_told`."""
        return self._statements.last_told()

    def fill(self, partition: Partition, batch: Batch, limit_bytes: int) -> bool:
        """Takes the next messages of a partition, about until *limit_bytes* are read of all; True: a plan has enough.

        Where nothing stands before a statement that waits, rows of other partitions have to come to it first: then more is read.
        """
        taken, most = 0, max(self._most_bytes, limit_bytes)
        while taken < len(batch):
            if self._is_full(most):
                most = max(self.size_bytes, self.message_count * LEAST_MESSAGE_BYTES) + limit_bytes
                self._most_bytes = most
            # What a row takes does not shrink with its message, so that a plan ends by messages too.
            left = max(1, most // LEAST_MESSAGE_BYTES - self.message_count)
            taken += self.take(partition, batch.part(taken, min(len(batch), taken + left)), most)
            if self._is_full(most):
                ends = self.waiting_ends()
                goes_on = ends is None or any(end > self._ranges[at][0] for at, end in ends.items())
                if goes_on or self._waits_no_more(limit_bytes):
                    return True
        return False

    def _waits_no_more(self, limit_bytes: int) -> bool:
        """Whether rows have waited long enough for statements that other partitions may have."""
        return self._is_full(_LONGEST_WAIT * limit_bytes) and self._statements.wait_no_more()

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
        self._read.add_bytes(partition, int(sizes[-1]))
        for part in self._parts_between_statements(partition, batch):
            self._take_batch(partition, part)
        self._read.reach(partition, int(batch.offsets[-1]) + 1)
        return len(batch)

    def _parts_between_statements(self, partition: Partition, batch: Batch) -> Iterator[Batch]:
        """*batch* as it is, or in parts where what a decoder has learned of columns counts no more."""
        decoder, begin = self._decoders[partition], 0
        if self._schema_topic and isinstance(decoder, FlatDecoder):
            for end in self._crossings[partition].of(batch):
                if end > begin:
                    yield batch.part(begin, end)
                decoder.forget()
                begin = end
        yield batch.part(begin, len(batch))

    def look_back(self, partition: Partition, batch: Batch) -> None:
        """Looks at messages before the scan's start, for a watermark, which holds for those behind it."""
        for key, value, offset in zip(batch.keys, batch.values, batch.offsets.tolist(), strict=True):
            try:
                events = self._decoders[partition].events(key, value, f"{partition[0]}:{partition[1]}:{offset}")
            except UnsupportedEvent:
                continue  # the plan before has told, or left it to the dead letters
            for event in events:
                if isinstance(event, Watermark):
                    self._promised_us[partition] = event.time_us

    def _take_batch(self, partition: Partition, batch: Batch) -> None:
        """Takes the next messages of a partition: where compiled code finds no other schema than the last one, it does no more."""
        self._places = Places(len(batch), self._sent.payload)
        self._offsets = batch.offsets
        self._take_messages(partition, batch)
        if partition in self._repeats:
            if self._statements.are_placed:
                words, times_us, newest = self._places.words, self._places.times_us, self._repeats[partition].newest
                self._order.check_goes_on(words, times_us, newest, f"{partition[0]}:{partition[1]}")
            told = self._repeats[partition].take(self._places, batch.values)
            for number in np.flatnonzero(told.repeats).tolist():
                self._read.pass_over_repeat(partition, int(batch.offsets[number]))
            if told.doubtful.any():
                self._read.pass_over(partition, DOUBTFUL, int(told.doubtful.sum()))

    def _take_messages(self, partition: Partition, batch: Batch) -> None:
        locator = self._locators[partition]
        if locator is None:
            self._look_at(partition, batch, range(len(batch)), range(len(batch)))
            return
        tombstones = int(batch.values.absent.sum()) if locator.tombstones else 0
        if tombstones:
            self._read.pass_over(partition, "tombstone", tombstones)
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

    def _note_times(self, partition: Partition, rows: LocatedRows) -> None:
        newest = partial(self._newest_before, partition, int(rows.offsets[0]))
        self._statements.note_rows(partition, rows, newest, has_places=partition in self._repeats)
        if promised_us := self._promised_us.get(partition, 0):
            late = rows.offsets[rows.times < promised_us]
            if len(late):
                self._read.pass_over(partition, LATE, len(np.unique(late)))

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
            events = self._decoders[partition].events(key, value, place.gtid, batch.time_us(number))
        except UnsupportedEvent:
            if not self._keeps_unread:
                raise
            self._read.pass_over(partition, UNREADABLE)
            return
        if not events:
            self._read.pass_over(partition, "tombstone" if value is None else "no_row")
        for event in events:
            if isinstance(event, Watermark):
                self._read.pass_over(partition, "watermark")
                self._promised_us[partition] = max(self._promised_us.get(partition, 0), event.time_us)
                self._statements.note_read(partition, event.time_us)
                self._read.mark_closed(partition, offset + 1)
                continue
            self.event_time_us = max(self.event_time_us, event.event_time_us)
            newest = partial(self._newest_before, partition, offset)
            if isinstance(event, SqlEvent):
                self._take_statement(event, value or b"", place, newest)
                continue
            moment_us = self._statements.note_event(event, value or b"", place, newest)
            if not located and value is not None and partition in self._repeats:
                self._places.note(number, value, event.event_time_us, event)
            if not located and event.event_time_us < self._promised_us.get(partition, event.event_time_us):
                self._read.pass_over(partition, LATE)
            held = self._schemas.get((partition, event.table))
            if held is not event.schema and not (event.keyed and event.schema.tells_no_more_than(held)):
                told = self._crossings[partition].alone(event, moment_us, self._decoders[partition], key, value)
                self._schemas[partition, event.table] = told.schema
                self._statements.take_schema(told, place, moment_us)

    def _take_statement(self, event: SqlEvent, value: bytes, place: Place, newest: Callable[[], Newest]) -> None:
        partition = partition_of(place)
        if self._statements.is_told_apart(partition, value):
            self._read.pass_over(partition, "no_row")
            return
        is_among = partition[0] != self._schema_topic and partition in self._repeats
        among = self._places.of_statement(value) if is_among else None
        if not self._statements.take_statement(event, value, place, among, newest):
            self._read.pass_over(partition, REPEATED)
            return
        # What it changes may show in no message: the next row of each table is told again.
        self._schemas.clear()

    def _newest_before(self, partition: Partition, offset: int) -> Newest:
        """How far a partition has come before the message at *offset*."""
        return self._places.newest(int(np.searchsorted(self._offsets, offset))) or self._repeats[partition].newest

    def waiting_ends(self) -> dict[Partition, int] | None:
        """As :meth:`.ScannedStatements.waiting_ends`, of rows which are not read yet."""
        unread = [at for at in self._read.unread() if at[0] != self._schema_topic]
        return self._statements.waiting_ends(self._read.reached, unread)

    def note_passed(self, marks: SourceMarks) -> None:
        """As :meth:`.ScannedStatements.note_passed`."""
        self._statements.note_passed(marks)

    def tell_again(self, stated_us: Iterable[int]) -> None:
        """As :meth:`.ScannedStatements.tell_again`, of rows that were read."""
        self._statements.tell_again(stated_us, self._read.reached)

    def in_order(self) -> Iterator[SchemaMet | Statement]:
        """What was met, as :func:`.statements.ahead.in_order` has it."""
        return self._statements.in_order()

    def complete(self) -> None:
        """All messages have come; offsets up to the ends without one are read too."""
        self._read.complete()

    def close(self) -> None:
        """Ends each partition behind the last watermark that was met in it, if any: a plan then ends where its source's times do."""
        self._statements.keep_before(self._read.close())

    def ranges(self) -> tuple[PartitionRange, ...]:
        """What was read, see :meth:`.ScannedRanges.parts`."""
        return self._read.parts()

    def marks(self) -> SourceMarks:
        """How far the partitions that have messages have come in the source's log."""
        # What one partition tells alone has an order.
        is_spread = len(self._ranges) > 1
        of_tables = self._statements.table_marks(self._read.reached) if is_spread else {}
        stated = self._statements.last_stated(self._read.reached) if is_spread else {}
        found: dict[str, SourceMark] = {}
        for partition in filter(self._read.has_messages, self._ranges):
            name, repeats = f"{partition[0]}:{partition[1]}", self._repeats.get(partition)
            mark, times = None if repeats is None else repeats.mark, of_tables.get(partition, {})
            held = self._mark(partition)
            if mark is None and times:
                latest = {each.table: each for each in held.tables}
                latest |= {table: latest_of(each, latest.get(table, each)) for table, each in times.items()}
                mark = replace(NO_PLACES, tables=tuple(latest[table] for table in sorted(latest)))
            stated_us, ids = stated.get(partition, (0, set()))
            if stated_us and stated_us >= held.stated_us:
                ids |= set(held.stated) if stated_us == held.stated_us else set()
                mark = replace(mark or held, stated_us=stated_us, stated=tuple(sorted(ids)))
            elif mark is not None:
                mark = replace(mark, stated_us=held.stated_us, stated=held.stated)
            if mark is not None:
                found[name] = mark
        return found
