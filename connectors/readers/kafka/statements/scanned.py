"""Statements and schemas that a scan of topics meets: each with its moment, and what they mean for rows of other partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from connectors.readers.base import SchemaMet, Statement
from connectors.readers.kafka.located.source_words import row_words
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.messages.partitions import partition_of
from connectors.readers.kafka.messages.source_places import NO_PLACE, SourcePlace, place_in, place_of
from connectors.readers.kafka.statements.ahead import TableColumns, first_ahead, first_untold, in_order, told_by
from connectors.readers.kafka.statements.late import with_passed
from connectors.readers.kafka.statements.row_times import RowTimes
from connectors.readers.kafka.statements.told_again import changed_in, first_behind, transaction_at
from historian.ddl import StatementContext
from historian.plans.source_marks import TableMark, stated_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.located.batches import LocatedRows
    from connectors.readers.kafka.messages.events import RowSchema, SqlEvent
    from connectors.readers.kafka.messages.partitions import Partition
    from connectors.readers.kafka.messages.source_places import Newest
    from connectors.readers.kafka.statements.source_order import SourceOrder
    from historian.names import TableName
    from historian.plans.source_marks import SourceMarks
    from historian.positions.places import Place

__all__ = ["ScannedStatements"]

_SQL_VERSION = 80_400
"""Of the server whose statements come in messages, which do not tell it: they are read as the present one reads them."""


class ScannedStatements:
    """What a scan has met.

    Args:
        order: of statements that were executed before, and of those that are met.
        schema_topic: has statements in the place of rows; "": none has, so that moments are times.
        payload_of: gives what a message holds, as :func:`.source_places.place_of` wants it.
        moves: messages may be statements, so that rows of other partitions are looked for behind each.
        advice: what to do where messages tell too little of a table.
        in_each: each partition has each statement.
        stated: by partition, of former plans, as :attr:`.SchemaMet.stated`.
        is_told: whether rows of earlier plans, or statements, have told this, where statements stand among rows; None: they do not.

    Attributes:
        found: schemas and statements, each with its moment in the source.
    """

    def __init__(
        self,
        order: SourceOrder,
        *,
        schema_topic: str,
        payload_of: Callable[[bytes], Any],
        moves: bool,
        advice: str,
        in_each: bool = False,
        stated: Mapping[Partition, frozenset[str]] | None = None,
        is_told: Callable[[TableColumns], bool] | None = None,
    ) -> None:
        self._order, self._schema_topic, self._payload_of = order, schema_topic, payload_of
        self._moves, self._advice, self._is_told = moves, advice, is_told
        self._in_each, self._stated = in_each, stated or {}
        self._taken: set[tuple[int | None, str, str, str]] = set()
        self._stated_us: dict[Partition, int] = {}
        self._read_us: dict[Partition, int] = {}
        self._partial: set[tuple[Partition, TableName]] = set()
        self._row_times: dict[tuple[Partition, TableName], RowTimes] = {}
        # By server's hash the numbers of transactions.
        self._row_numbers: dict[tuple[Partition, TableName], dict[int, RowTimes]] = {}
        self.found: list[tuple[int, SchemaMet | Statement]] = []

    @property
    def are_placed(self) -> bool:
        """Whether statements stand at places among which rows have an order."""
        return bool(self._schema_topic) and not self._order.is_empty

    # ---- rows ------------------------------------------------------------------------------------------------------
    def note_rows(
        self, partition: Partition, rows: LocatedRows, newest: Callable[[], Newest], *, has_places: bool
    ) -> None:
        """Notes the moments of located rows of one table, and where *has_places* their places in the source's log.

        *newest* tells how far the partition has come before them.
        """
        moments_us = rows.times
        if self.are_placed:
            words, where = row_words(rows, self._payload_of), f"{partition[0]}:{partition[1]}"
            moments_us = self._order.moments(words, rows.times, where, newest)
        self.note_read(partition, int(moments_us.max()))
        if self._moves:
            self._note_certainty(partition, rows.known.table, rows.known.schema)
            self._note_times(partition, rows, moments_us)
            if has_places:
                self._note_numbers(partition, rows)

    def _note_certainty(self, partition: Partition, table: TableName, schema: RowSchema) -> None:
        if schema.certainty == "names":
            self._partial.add((partition, table))

    def _note_times(self, partition: Partition, rows: LocatedRows, moments_us: NDArray[np.int64]) -> None:
        times_us = moments_us.clip(min=self._stated_us.get(partition, 0))
        self._times_of(partition, rows.known.table).note_all(times_us, rows.offsets)

    def _note_numbers(self, partition: Partition, rows: LocatedRows) -> None:
        places = rows.places()
        is_told = places[:, 0] > 0
        for server in np.unique(places[is_told, 1]).tolist():
            mine = is_told & (places[:, 1] == server)
            self._numbers_of(partition, rows.known.table, server).note_all(places[mine, 2], rows.offsets[mine])

    def note_event(self, event: Event, value: bytes, place: Place, newest: Callable[[], Newest]) -> int:
        """The moment of a change, which is noted."""
        partition, moment_us = partition_of(place), self._moment_us(event, value, place, newest)
        self.note_read(partition, moment_us)
        if self._moves:
            self._note_certainty(partition, event.table, event.schema)
            self._times_of(partition, event.table).note(self._behind_stated(partition, moment_us), place.offset)
            if (transaction := _transaction_of(event)) is not None:
                self._numbers_of(partition, event.table, transaction[0]).note(transaction[1], place.offset)
        return moment_us

    def _moment_us(self, event: Event | SqlEvent, value: bytes, place: Place, newest: Callable[[], Newest]) -> int:
        """The moment among statements of a change, or of a statement that stands among rows."""
        if not self.are_placed:
            return event.event_time_us
        if isinstance(event, Event) and event.source is not None:
            words = place_in(event.source, event.op)
        else:
            words = place_of(value, self._payload_of)
        return self._order.moment(words or NO_PLACE, event.event_time_us, place.gtid, newest)

    def note_read(self, partition: Partition, moment_us: int) -> None:
        """Notes up to which moment a partition has been read."""
        self._read_us[partition] = max(self._read_us.get(partition, 0), moment_us)

    def _behind_stated(self, partition: Partition, moment_us: int) -> int:
        return max(self._stated_us.get(partition, 0), moment_us)

    def _times_of(self, partition: Partition, table: TableName) -> RowTimes:
        return self._row_times.setdefault((partition, table), RowTimes())

    def _numbers_of(self, partition: Partition, table: TableName, server: int) -> RowTimes:
        return self._row_numbers.setdefault((partition, table), {}).setdefault(server, RowTimes())

    # ---- statements ------------------------------------------------------------------------------------------------
    def is_told_apart(self, partition: Partition, value: bytes) -> bool:
        """Whether a statement among rows is one that the topic of statements has: it would be executed twice."""
        if not self._schema_topic or partition[0] == self._schema_topic:
            return False
        words = place_of(value, self._payload_of)
        return words is not None and self._order.has(words)

    def take_statement(
        self, event: SqlEvent, value: bytes, place: Place, among: SourcePlace | None, newest: Callable[[], Newest]
    ) -> bool:
        """Takes a statement; False: it is one that came before.

        Args:
            among: where it stands in the source's log, if it stands among rows and tells it.

        Raises:
            SourceError: places of the log have no order any more.
        """
        partition = partition_of(place)
        is_apart = partition[0] == self._schema_topic
        moment_us = event.event_time_us if is_apart else self._moment_us(event, value, place, newest)
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
                return False
            self._taken.add(taken)
            moment_us = stated_us
        self.note_read(partition, moment_us)
        time_us = self._stated_us[partition] = self._behind_stated(partition, moment_us)
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
            has_place=bool(self._schema_topic) and not is_apart and event.sql.endswith("*/"),
        )
        self.found.append((time_us, statement))
        return True

    def take_schema(self, event: Event, place: Place, moment_us: int) -> None:
        """Takes the schema that a change tells, from its message on."""
        time_us = self._behind_stated(partition_of(place), moment_us)
        is_exact = event.schema.certainty == "exact"
        met = SchemaMet(
            place=place,
            table=event.table,
            columns=tuple(each.column for each in event.schema.fields),
            key=event.schema.key,
            event_time_us=time_us,
            # Statements tell types as the source has them, where rows tell what their producer makes of them.
            certainty="columns" if self._schema_topic and is_exact else event.schema.certainty,
            advice=self._advice,
            has_statements=self._in_each,
            is_of_its_time=is_exact and event.source is not None and event.op != "r",
            transaction=_transaction_of(event),
            stated=self._stated.get(partition_of(place), frozenset()),
        )
        self.found.append((time_us, met))

    # ---- what they mean for rows of other partitions ---------------------------------------------------------------
    def waiting_ends(
        self, reached: Mapping[Partition, int], unread: Collection[Partition]
    ) -> dict[Partition, int] | None:
        """Where partitions end before the first statement that is later than rows which are not read yet; None: there is none.

        Where statements stand among rows, before the first schema that is so, and new: what is not read may have its statement.

        Args:
            reached: of each partition the offset behind what was read.
            unread: partitions with such rows.

        Raises:
            SourceError: there is one, and it has no place in the source's log that says which rows are before it.
        """
        statements = (item for _, item in self.found if isinstance(item, Statement))
        read_us = {at: self._read_us.get(at, 0) for at in unread}
        first = first_ahead(statements, read_us)
        if self._is_told is not None:
            first = first_untold(self.found, read_us, self._is_told)
        if first is None:
            return None
        ends = {}
        for at, reached_offset in reached.items():
            stated = (
                item.place.offset
                for moment_us, item in self.found
                if isinstance(item, Statement) and partition_of(item.place) == at and moment_us >= first
            )
            begins = (times.first_from(first) for (where, _), times in self._row_times.items() if where == at)
            ends[at] = min((*stated, *(offset for offset in begins if offset is not None), reached_offset))
        return ends

    def wait_no_more(self) -> bool:
        """Has rows wait no more for statements that may stand among rows of other partitions; False: they did not."""
        did, self._is_told = self._is_told is not None, None
        return did

    def table_marks(self, ends: Mapping[Partition, int]) -> dict[Partition, dict[TableName, TableMark]]:
        """By partition and table when the source changed a row last; *ends*: of each partition the first offset that is left out."""
        found: dict[Partition, dict[TableName, TableMark]] = {}
        # Where each partition has each statement, none comes behind rows that are later.
        for (partition, table), times in () if self._in_each else self._row_times.items():
            last_us = times.last_before(ends[partition])
            if last_us is not None:
                tells_all = (partition, table) not in self._partial
                mark = TableMark(table=table, time_us=last_us, tells_all=tells_all)
                found.setdefault(partition, {})[table] = mark
        return found

    def last_stated(self, ends: Mapping[Partition, int]) -> dict[Partition, tuple[int, set[str]]]:
        """By partition, where each has each statement, the moment of the last ones, and by what a mark knows them. *ends*: as of :meth:`table_marks`."""
        found: dict[Partition, tuple[int, set[str]]] = {}
        for _, item in self.found if self._in_each else ():
            partition = partition_of(item.place)
            if not isinstance(item, Statement) or item.place.offset >= ends[partition]:
                continue
            latest_us, ids = found.get(partition, (0, set()))
            if item.event_time_us >= latest_us:
                ids = ids if item.event_time_us == latest_us else set()
                found[partition] = item.event_time_us, {*ids, stated_id(item.sql, item.event_time_us)}
        return found

    def last_told(self) -> dict[tuple[str, TableName], TableColumns]:
        """By partition and table what its rows have told last."""
        return {(met.place.file, met.table): told_by(met) for _, met in self.found if isinstance(met, SchemaMet)}

    def note_passed(self, marks: SourceMarks) -> None:
        """Notes at each statement the partitions of which a former plan has rows from behind it. *marks*: how far they had come by the scan's start."""
        self.found = with_passed(self.found, marks)

    def tell_again(self, stated_us: Iterable[int], reached: Mapping[Partition, int]) -> None:
        """Tells the schemas in force again from the moments of statements on, *stated_us* and those that were met.

        What a statement changes may show in no message, and another partition may have brought it. So it is behind rows that tell another
        schema of their table. *reached*: as of :meth:`waiting_ends`.
        """
        met: dict[tuple[Partition, TableName], list[SchemaMet]] = {}
        for _, item in self.found:
            if isinstance(item, SchemaMet):
                met.setdefault((partition_of(item.place), item.table), []).append(item)
        times_us = {*stated_us, *(item.event_time_us for _, item in self.found if isinstance(item, Statement))}
        changed = changed_in(item for items in met.values() for item in items)
        for key, row_times in self._row_times.items():
            told = {item.place.offset for item in met.get(key, ())}
            numbers = self._row_numbers.get(key, {})
            again = {first for each in times_us if (first := row_times.first_at(each))}
            for offset, time_us in sorted(again | first_behind(changed.get(key[1], ()), row_times, numbers)):
                if offset not in told and told and min(told) < offset < reached[key[0]]:
                    last = max(
                        (each for each in met[key] if each.place.offset < offset), key=lambda each: each.place.offset
                    )
                    place = replace(last.place, gtid=f"{last.place.file}:{offset}", offset=offset)
                    transaction = transaction_at(offset, numbers)
                    told_so = replace(last, place=place, event_time_us=time_us, transaction=transaction)
                    self.found.append((time_us, told_so))

    def keep_before(self, ends: Mapping[str, int]) -> None:
        """Forgets what was met behind offsets; *ends*: by the partition's name the first one that is left out."""
        self.found = [
            each for each in self.found if each[1].place.offset < ends.get(each[1].place.file, each[1].place.offset + 1)
        ]

    def in_order(self) -> Iterator[SchemaMet | Statement]:
        """What was met, as :func:`.ahead.in_order` has it."""
        return in_order(self.found, self._schema_topic, in_each=self._in_each)


def _transaction_of(event: Event) -> tuple[int, int] | None:
    """As :attr:`connectors.readers.base.SchemaMet.transaction`."""
    place = None if event.source is None or event.op == "r" else SourcePlace.of(event.source)
    return None if place is None else place.transaction
