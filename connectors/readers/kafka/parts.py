"""Rows of one table under one schema that follow each other, as the columns of a chunk: of events, or located in messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from connectors.readers.kafka.avro import columnar as avro
from connectors.readers.kafka.avro.programs import AvroProgram
from connectors.readers.kafka.debezium import columnar as debezium
from connectors.readers.kafka.debezium.values import arrow_column
from connectors.readers.kafka.formats import columnar as flat
from connectors.readers.kafka.formats.values import json_column
from connectors.readers.kafka.kernels import changes
from connectors.readers.kafka.located.columns import Convert, array_of, values_of
from historian.changelog.operations import CHUNK_COLUMNS, Op
from historian.values.arrow_types import arrow_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.located.batches import LocatedRows
    from connectors.readers.kafka.located.programs import Known
    from connectors.readers.kafka.messages.events import Conventions, Event, Field, RowSchema
    from historian.schema.snapshots import Column, Snapshot

__all__ = ["ColumnRows", "EventRows", "Failed", "Taken", "moved"]

_ORDINAL = 1
"""Of a message's first row: what begins with the message stands before it."""

_FAILURES = (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError)


class Failed(NamedTuple):
    """The first column, by its index, that has a value which is none of its type."""

    column: int
    error: Exception


class Taken(NamedTuple):
    """Columns of a chunk: those of every chunk, then the snapshot's as far as none has failed."""

    arrays: list[pa.Array]
    failed: Failed | None


@dataclass(slots=True)
class EventRows:
    """Rows of events."""

    ops: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    unknown: dict[int, tuple[str, ...]] = field(default_factory=dict)
    moved: dict[int, str] = field(default_factory=dict)

    def add(self, op: Op, event: Event, offset: int, row: dict[str, Any]) -> None:
        """Adds one, of *event*."""
        if event.unknown:
            self.unknown[len(self.rows)] = event.unknown
        if event.moved:
            self.moved[len(self.rows)] = event.moved
        self.ops.append(op)
        self.times.append(event.event_time_us)
        self.offsets.append(offset)
        self.ordinals.append(_ORDINAL + event.number)
        self.rows.append(row)

    @property
    def first_offset(self) -> int:
        """Of the first row's message."""
        return self.offsets[0]

    @property
    def last_offset(self) -> int:
        """Of the last row's message."""
        return self.offsets[-1]

    def columns(self, written: Snapshot, schema: RowSchema, conventions: Conventions | None) -> Taken:
        """The columns of a chunk of the rows, written under *written*."""
        system = _system(self.ops, self.times, self.offsets, self.ordinals)
        fields = _by_name(schema)

        def array(column: Column) -> pa.Array:
            convert = _convert(column, fields, conventions)
            is_whole = conventions is not None and conventions.whole
            return convert([row[column.name] if is_whole else row.get(column.name) for row in self.rows])

        return _taken(system, written, array)

    def absent(self, written: Snapshot) -> NDArray[np.bool_] | None:
        """Which values are not told, rows x columns of *written*; None: all are."""
        if not self.unknown:
            return None
        places = {column.name: at for at, column in enumerate(written.columns)}
        bits = np.zeros((len(self.rows), len(places)), np.bool_)
        for number, names in self.unknown.items():
            bits[number, [places[name] for name in names if name in places]] = True
        return bits

    def moves(self) -> list[str | None]:
        """Of each row the text of :data:`historian.changelog.missing_columns.MOVED`."""
        return [self.moved.get(number) for number in range(len(self.rows))]


@dataclass(frozen=True, slots=True)
class ColumnRows:
    """Rows that are columns already, since what they were located in does not last."""

    first_offset: int
    last_offset: int
    taken: Taken

    @staticmethod
    def of(found: LocatedRows, ops: NDArray[np.uint8], written: Snapshot, known: Known) -> ColumnRows:
        """Located rows, which do *ops*, written under *written*."""
        system = _system(ops, found.times, found.offsets, found.ordinals + _ORDINAL)
        fields, conventions = _by_name(known.schema), known.written
        reading_of = avro.reading_of if isinstance(found.program, AvroProgram) else debezium.reading_of

        def array(column: Column) -> pa.Array:
            convert = _convert(column, fields, conventions)
            if conventions is None:
                field = fields.get(column.name)
                reading = None if field is None else reading_of(field, column.type)
            else:
                reading = flat.reading_of(column.type, conventions)
            is_whole = conventions is not None and conventions.whole
            return array_of(found, column.name, reading, convert, whole=is_whole)

        return ColumnRows(int(found.offsets[0]), int(found.offsets[-1]), _taken(system, written, array))

    def columns(self, written: Snapshot, schema: RowSchema, conventions: Conventions | None) -> Taken:  # noqa: ARG002 as rows of events
        """The columns of a chunk of the rows."""
        return self.taken

    def absent(self, written: Snapshot) -> NDArray[np.bool_] | None:  # noqa: ARG002 as rows of events
        """Which values are not told: none."""
        return None

    def moves(self) -> list[str | None]:
        """As of rows of events; all are told as a whole."""
        return [None] * len(self.taken.arrays[0])


def moved(found: LocatedRows, keys: Sequence[str]) -> NDArray[np.uint8]:
    """What the rows do: an update that changes one of *keys* is -R and +A."""
    ops: NDArray[np.uint8] = found.ops.copy()
    slots = found.program.slots
    columns = np.array([slots[name] for name in keys if name in slots], np.int64)
    place = (found.texts.address, found.program.images, len(slots))
    begin = 0
    while begin < len(ops) and len(columns):
        left = len(ops) - begin
        at = found.rows_address + 8 * begin, ops.ctypes.data + begin, left
        unsure = changes.moves(*place, *at, columns.ctypes.data, len(columns))
        if unsure < 0:
            break
        begin += unsure
        pair = found.part(begin, begin + 2)
        if any(before != after for before, after in (values_of(pair, name) for name in keys)):
            ops[begin : begin + 2] = Op.RETRACT, Op.APPEND
        begin += 2
    return ops


def _by_name(schema: RowSchema) -> dict[str, Field]:
    return {each.column.name: each for each in schema.fields}


def _system(ops: Any, times: Any, offsets: Any, ordinals: Any) -> list[pa.Array]:
    columns = (ops, times, np.full(len(ops), -1, np.int16), offsets, ordinals)
    return [
        pa.array(np.asarray(values, np.int64) if pa.types.is_timestamp(each.type) else np.asarray(values)).cast(
            each.type
        )
        for values, each in zip(columns, CHUNK_COLUMNS, strict=True)
    ]


def _convert(column: Column, fields: Mapping[str, Field], conventions: Conventions | None) -> Convert:
    """Makes a column of values as JSON has them."""
    if conventions is None and column.name not in fields:
        return lambda values: _nulls(values, column)
    if conventions is None:
        return lambda values: arrow_column(values, fields[column.name], column.type)
    return lambda values: json_column(values, column.type, conventions)


def _nulls(values: Sequence[Any], column: Column) -> pa.Array:
    """A column of which messages have no field: a key alone was sent."""
    if any(value is not None for value in values):
        raise KeyError(column.name)
    return pa.nulls(len(values), arrow_type(column.type))


def _taken(system: list[pa.Array], written: Snapshot, array: Callable[[Column], pa.Array]) -> Taken:
    arrays = list(system)
    for index, column in enumerate(written.columns):
        try:
            arrays.append(array(column))
        except _FAILURES as error:
            return Taken(arrays, Failed(index, error))
    return Taken(arrays, None)
