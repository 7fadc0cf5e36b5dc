"""Events as chunks: rows of one table under one version, as Arrow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.readers.kafka.debezium.replaced_nulls import check_defaults
from connectors.readers.kafka.located.batches import LocatedRows, interleaved, never
from connectors.readers.kafka.messages.events import Conventions, Event, RowSchema
from connectors.readers.kafka.messages.whole_rows import check_whole, decompressed, is_lone, lacks_values
from connectors.readers.kafka.parts import ColumnRows, EventRows, moved
from historian.changelog.chunks import Chunk, unread_chunk
from historian.changelog.missing_columns import ABSENT, MOVED, pack
from historian.changelog.operations import CHUNK_COLUMNS, Op, physical_name
from historian.errors import SourceError, TableStopped, ValueUnrepresentable
from historian.names import TableName
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.plans.quadrants import following
from historian.schema.snapshots import Snapshot

__all__ = ["ChunkMaker"]

_CHUNK_ROWS = 65_536
_UNREAD, _UNREAD_BYTES = 256, 8 << 20


@dataclass(slots=True, kw_only=True)
class _Rows:
    """Rows that are not a chunk yet, in parts."""

    schema: RowSchema
    written: Snapshot
    version: PlannedVersion
    conventions: Conventions | None
    parts: list[EventRows | ColumnRows] = field(default_factory=list)
    count: int = 0

    def is_under(self, schema: RowSchema, written: Snapshot, version: PlannedVersion) -> bool:
        """Whether there is room for another row, and these count under the same."""
        is_same = self.schema is schema and self.version is version and self.written is written
        return is_same and self.count < _CHUNK_ROWS

    def add(self, op: Op, event: Event, offset: int, row: dict[str, Any]) -> None:
        """Adds a row of an event."""
        last = self.parts[-1] if self.parts else None
        if not isinstance(last, EventRows):
            last = EventRows()
            self.parts.append(last)
        last.add(op, event, offset, row)
        self.count += 1


class ChunkMaker:
    """Makes chunks of the events of one range.

    Args:
        planned: the range; *tables*: of the plan.
        sequence: number of the first chunk.
        as_text: temporal columns are the server's own text.
        stops: a value that cannot be represented ends its table's rows, and a chunk says so.
        normalized: of which tables rows may lack those that they take back: an update is +C alone then, and a delete a -R of the key.
    """

    def __init__(
        self,
        planned: PartitionRange,
        tables: Sequence[PlannedTable],
        *,
        sequence: int,
        as_text: bool,
        stops: bool,
        normalized: Callable[[TableName], bool] = never,
    ) -> None:
        self._planned = planned
        self._tables = {table.table_id: table for table in tables}
        self._names = {version.snapshot.name for table in tables for version in table.versions if version.snapshot}
        self._passages: dict[int, list[Passage]] = {}
        self._named_at: dict[TableName, list[tuple[int, PlannedTable | None]]] = {}
        for passage in planned.passages:
            if passage.is_read:
                self._passages.setdefault(passage.table_id, []).append(passage)
            planned_table = self._tables.get(passage.table_id) if passage.is_read else None
            written = _written_under(passage, planned_table)
            if written is not None:
                self._named_at.setdefault(written.name, []).append((passage.offset, planned_table))
        self._is_whole = all(passage.snapshot or passage.table_id in self._tables for passage in planned.passages)
        self._sequence = sequence
        self._as_text, self._stops = as_text, stops
        self._normalized = normalized
        stops_here = [
            table.quarantine.place.offset
            for table in tables
            if table.quarantine is not None and table.quarantine.place.file == planned.file
        ]
        self._turns = sorted({*(passage.offset for passage in planned.passages), *stops_here})
        """Offsets at which what a name stands for may change."""
        self._open: dict[int, _Rows] = {}
        self._stopped: set[int] = set()
        self._unread: list[tuple[str, int, bytes, str]] = []
        self._read: set[TableName] = set()
        self._renamed: dict[TableName, tuple[TableName, int]] = {}
        """Names of tables in the range that are not read, by what an earlier release called them, with an offset."""

    def take(self, offset: int, event: Event) -> Iterator[Chunk]:
        """Takes the next event; gives chunks that are full by then."""
        table = self._named(event.table, offset)
        self._note_name(table, event.table, event.former_name, offset)
        if table is None or table.table_id in self._stopped or self._is_behind_stop(table, offset):
            return
        written, version = self._under(table, offset)
        if event.written is not None and event.written.compressed:
            # Without a state a row that lacks columns stops its table, whatever it tells of its key.
            event = decompressed(event, written) if self._normalized(event.table) else replace(event, keyed=False)
        operations = self._operations(event, offset, written)
        rows = self._open.get(table.table_id)
        if rows is None or not rows.is_under(event.schema, written, version):
            yield from self._ended(table)
            if table.table_id in self._stopped:
                return
            rows = self._open[table.table_id] = _Rows(
                schema=event.schema, written=written, version=version, conventions=event.written
            )
        for op, row in operations:
            rows.add(op, event, offset, row)

    def _note_name(self, table: PlannedTable | None, name: TableName, former: TableName | None, offset: int) -> None:
        if table is not None:
            self._read.add(name)
        elif former is not None:
            self._renamed.setdefault(former, (name, offset))

    def take_located(self, found: Sequence[LocatedRows]) -> list[Chunk]:
        """Takes the next rows, as :meth:`take` takes the events that they are of; gives the same chunks under the same numbers.

        Args:
            found: rows of messages between which no other one stands, each element in order.
        """
        by_table: dict[int, list[LocatedRows]] = {}
        for rows in found:
            places = [0, *np.searchsorted(rows.offsets, self._turns).tolist(), len(rows)]
            for begin, end in itertools.pairwise(places):
                if begin < end:
                    offset = int(rows.offsets[begin])
                    table = self._named(rows.known.table, offset)
                    self._note_name(table, rows.known.table, rows.known.former_name, offset)
                    if table is not None and not self._is_behind_stop(table, offset):
                        by_table.setdefault(table.table_id, []).append(rows.part(begin, end))
        first, ended = self._sequence, list[tuple[int, Chunk]]()
        for table_id, parts in by_table.items():
            table = self._tables[table_id]
            for part in interleaved(parts):
                if table_id not in self._stopped:
                    ended += self._take_part(table, part, *self._under(table, int(part.offsets[0])))
        # Chunks are numbered as the rows come that end them, however messages were put together here.
        ended.sort(key=lambda each: each[0])
        return [replace(chunk, sequence=number) for number, (_, chunk) in enumerate(ended, first)]

    def _take_part(
        self, table: PlannedTable, found: LocatedRows, written: Snapshot, version: PlannedVersion
    ) -> Iterator[tuple[int, Chunk]]:
        """Takes rows between two places at which versions begin; gives chunks that end, each with the offset of the row behind it."""
        known = found.known
        # -C and +C belong to one event, which no chunk takes apart.
        is_second = found.ops == Op.CORRECT_TO
        keys = [column.name for column in written.columns if column.id in written.primary_key]
        ops = moved(found, keys)
        begin = 0
        while begin < len(found):
            rows = self._open.get(table.table_id)
            if rows is None or not rows.is_under(known.schema, written, version):
                for chunk in self._ended(table):
                    yield int(found.offsets[begin]), chunk
                if table.table_id in self._stopped:
                    return
                rows = self._open[table.table_id] = _Rows(
                    schema=known.schema, written=written, version=version, conventions=known.written
                )
            end = min(len(found), begin + _CHUNK_ROWS - rows.count)
            end += int(end < len(found) and bool(is_second[end]))
            part = ColumnRows.of(found.part(begin, end), ops[begin:end], written, known)
            rows.parts.append(part)
            rows.count += end - begin
            begin = end

    def take_unread(self, place: str, time_us: int, raw: bytes, why: str) -> Iterator[Chunk]:
        """Takes the next message, which cannot be read, see :func:`historian.changelog.chunks.unread_chunk`; gives chunks that are full by then."""
        self._unread.append((place, time_us, raw, why))
        if len(self._unread) >= _UNREAD or sum(len(each[2]) for each in self._unread) >= _UNREAD_BYTES:
            yield self._unread_ended()

    def rest(self) -> Iterator[Chunk]:
        """The chunks of what is left.

        Raises:
            SourceError: an earlier release planned rows of a table under another name than it has by now, and they would be left out.
        """
        for name in sorted(self._named_at.keys() & self._renamed.keys() - self._read):
            now, offset = self._renamed[name]
            raise SourceError(
                "a plan of an earlier release calls a table by another name: its rows would be left out",
                where=f"{now} at {self._planned.file}:{offset}",
                expected=str(name),
                next_step="end that plan with the release that made it (historian run --once), or start another connector",
            )
        for table_id, _ in sorted(self._open.items(), key=lambda each: _bounds(each[1])[0]):
            yield from self._ended(self._tables[table_id])
        if self._unread:
            yield self._unread_ended()

    def _unread_ended(self) -> Chunk:
        found, self._unread = self._unread, []
        self._sequence += 1
        return unread_chunk(found, sequence=self._sequence - 1, file=self._planned.file)

    def _operations(self, event: Event, offset: int, written: Snapshot) -> Iterable[tuple[Op, dict[str, Any]]]:
        place = f"{self._planned.file}:{offset}"
        check_defaults(event, place)
        before, after = event.before, event.after
        is_normalized = self._normalized(event.table)
        if is_normalized:
            if after is not None and (is_lone(event) or lacks_values(event)):
                return ((Op.APPEND if event.op == "c" else Op.CORRECT_TO, after),)
            if event.keyed and before is not None:
                return ((Op.RETRACT, {column.name: before.get(column.name) for column in written.columns}),)
        columns = [column.name for column in written.columns]
        check_whole(event, place, columns, normalized=is_normalized)
        if event.op == "u" and _moves(before or {}, after or {}, written):
            return ((Op.RETRACT, before or {}), (Op.APPEND, after or {}))
        if event.op == "u":
            return ((Op.CORRECT_FROM, before or {}), (Op.CORRECT_TO, after or {}))
        return ((Op.RETRACT, before or {}),) if event.op == "d" else ((Op.APPEND, after or {}),)

    def _named(self, name: TableName, offset: int) -> PlannedTable | None:
        """The table that has the name at *offset*: of two that had it one after the other, that which the partition met last.

        None where rows of that name are of no table that is read, or are passed over.
        """
        met = [(at, table) for at, table in self._named_at.get(name, ()) if at <= offset]
        if met:
            return max(met, key=lambda each: each[0])[1]
        if name in self._names and self._is_whole:
            raise SourceError(
                "rows of a table that the plan's range does not know",
                where=f"{name} at {self._planned.file}:{offset}",
                next_step="the topic's messages changed after they were read: start another connector",
            )
        return None

    def _is_behind_stop(self, table: PlannedTable, offset: int) -> bool:
        stop = table.quarantine
        if stop is None:
            return False
        if stop.place.file == self._planned.file:
            return offset >= stop.place.offset
        # It stopped by another partition, and this one may have come to no version of it.
        return not self._passed(table, offset)

    def _passed(self, table: PlannedTable, offset: int) -> list[Passage]:
        return [passage for passage in self._passages.get(table.table_id, ()) if passage.offset <= offset]

    def _under(self, table: PlannedTable, offset: int) -> tuple[Snapshot, PlannedVersion]:
        """The schema that the row at *offset* was written under, and the version that it is brought to."""
        passage = self._passed(table, offset)[-1]
        if passage.snapshot is not None:
            return passage.snapshot, table.versions[0]
        version = _version(table, passage.version)
        assert version.snapshot is not None  # noqa: S101 rows pass to versions that have one
        return version.snapshot, version

    def _ended(self, table: PlannedTable) -> Iterator[Chunk]:
        """The chunk of the table's rows that are none yet."""
        rows = self._open.pop(table.table_id, None)
        if rows is None:
            return
        first, last = (f"{self._planned.file}:{offset}" for offset in _bounds(rows))
        stopped = ""
        try:
            batch = self._batch(rows)
        except (TableStopped, ValueUnrepresentable) as error:
            if not self._stops:
                raise
            self._stopped.add(table.table_id)
            stopped, batch = (
                str(error),
                pa.RecordBatch.from_arrays(
                    [pa.array([], each.type) for each in CHUNK_COLUMNS], schema=pa.schema(CHUNK_COLUMNS)
                ),
            )
        yield Chunk(
            table_id=table.table_id,
            version=rows.version.version,
            segment=rows.version.segment,
            sequence=self._sequence,
            file=self._planned.file,
            first_position=first,
            last_position=last,
            sources=(),
            rows=batch,
            stopped=stopped,
        )
        self._sequence += 1

    def _batch(self, rows: _Rows) -> pa.RecordBatch:
        taken = [part.columns(rows.written, rows.schema, rows.conventions) for part in rows.parts]
        # As if all rows were made column by column: the first column that fails is told, by its first row that does.
        failed = min(
            (each.failed for each in taken if each.failed is not None), key=lambda each: each.column, default=None
        )
        if failed is not None:
            column, (first, last) = rows.written.columns[failed.column], _bounds(rows)
            raise ValueUnrepresentable(
                "a value of a message is none of its column's type",
                where=f"{rows.written.name}.{column.name} at {self._planned.file}, offsets {first} to {last}",
                expected=column.type,
                found="a row without it" if isinstance(failed.error, KeyError) else failed.error,
            )
        arrays = [_joined([part.arrays[at] for part in taken]) for at in range(len(taken[0].arrays))]
        fields = [
            *CHUNK_COLUMNS,
            *(
                pa.field(physical_name(column.id), array.type)
                for column, array in zip(rows.written.columns, arrays[len(CHUNK_COLUMNS) :], strict=True)
            ),
        ]
        absent = [part.absent(rows.written) for part in rows.parts]
        if any(each is not None for each in absent):
            none = [np.zeros((len(each.arrays[0]), len(rows.written.columns)), np.bool_) for each in taken]
            arrays.append(pack(np.concatenate([n if a is None else a for n, a in zip(none, absent, strict=True)])))
            fields.append(pa.field(ABSENT, pa.binary()))
        batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
        target = rows.version.snapshot
        if target is not None and rows.written is not target:
            batch = following(batch, rows.written, target)
        # Whoever makes rows whole puts two of them together; others have no use for it.
        if self._stops and not self._as_text and self._normalized(rows.written.name):
            moves = [text for part in rows.parts for text in part.moves()]
            if any(moves):
                batch = batch.append_column(MOVED, pa.array(moves, pa.string()))
        return self._printed(batch, target or rows.written) if self._as_text else batch

    def _printed(self, batch: pa.RecordBatch, snapshot: Snapshot) -> pa.RecordBatch:
        """*batch* with temporal columns as the server prints them, TIMESTAMP in UTC."""
        arrays = list(batch.columns)
        for column in snapshot.columns:
            at = batch.schema.get_field_index(physical_name(column.id))
            if column.type.name == "date":
                arrays[at] = pc.strftime(arrays[at], format="%Y-%m-%d")
            elif column.type.name in ("datetime", "timestamp"):
                unit = {0: "s", 3: "ms"}.get(column.type.fraction, "us")
                zone = None if column.type.name == "datetime" else "UTC"
                arrays[at] = pc.strftime(arrays[at].cast(pa.timestamp(unit, zone)), format="%Y-%m-%d %H:%M:%S")
            elif column.type.name == "time":
                arrays[at] = pa.array(
                    [None if us is None else _time_text(us, column.type.fraction) for us in arrays[at].to_pylist()],
                    pa.string(),
                )
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _version(table: PlannedTable, number: int) -> PlannedVersion:
    return next(each for each in table.versions if each.version == number)


def _written_under(passage: Passage, table: PlannedTable | None) -> Snapshot | None:
    """The schema of the passage; None where the table is none of those that are read."""
    return passage.snapshot or (_version(table, passage.version).snapshot if table else None)


def _moves(before: Mapping[str, Any], after: Mapping[str, Any], snapshot: Snapshot) -> bool:
    """Whether an update gives the row another key: the one row goes then, and another one comes."""
    keys = snapshot.primary_key
    return bool(keys) and any(
        before.get(column.name) != after.get(column.name) for column in snapshot.columns if column.id in keys
    )


def _bounds(rows: _Rows) -> tuple[int, int]:
    """The offsets of the first row and the last one."""
    return rows.parts[0].first_offset, rows.parts[-1].last_offset


def _joined(arrays: list[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _time_text(us: int, digits: int) -> str:
    seconds, fraction = divmod(abs(us), 1_000_000)
    text = f"{'-' if us < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}"[: len(text) + 1 + digits] if digits else text
