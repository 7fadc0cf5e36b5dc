"""Debezium's messages as Avro by compiled code: which are located by which program, and how each type is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from connectors.readers.kafka.avro.instructions import Unwalkable
from connectors.readers.kafka.avro.programs import AvroProgram
from connectors.readers.kafka.debezium import columnar as debezium
from connectors.readers.kafka.debezium.replaced_nulls import MARK, has_nullable_defaults
from connectors.readers.kafka.kernels import avro_values
from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.located import columns
from connectors.readers.kafka.located.batches import Locator, Lone, never
from connectors.readers.kafka.located.programs import Known
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.messages.whole_rows import is_plain_change
from connectors.readers.kafka.registry.wire import HEADER_BYTES
from historian.errors import UnsupportedEvent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.avro.events import AvroEvents
    from connectors.readers.kafka.messages.batch import Batch, Texts
    from connectors.readers.kafka.messages.events import Field
    from historian.schema.snapshots import ColumnType

__all__ = ["AvroLocator", "reading_of"]

_MOST_LEARNED = 32
_MOST_PROGRAMS = 256
_NONE, _NO_HEADER = -1, -2


class AvroLocator(Locator):
    """Finds the rows of batches that *reader* reads one by one; *lone* as of :class:`Locator`. Not for several threads at once."""

    def __init__(self, reader: AvroEvents, lone: Lone = never) -> None:
        self._reader, self._lone = reader, lone
        self.tombstones = True
        self._by_schemas: dict[tuple[int, int], list[AvroProgram]] = {}

    def _located(
        self, batch: Batch, texts: Texts, status: NDArray[np.uint8], times: NDArray[np.int64]
    ) -> list[AvroProgram]:
        """The programs that have rows of the batch; *status* says which messages are located."""
        ids, keys = _schema_ids(texts), _schema_ids(batch.keys)
        status[ids == _NONE] = at.LOCATED
        status[(ids == _NO_HEADER) | (keys == _NO_HEADER)] = at.SLOW
        used = list[AvroProgram]()
        if sum(map(len, self._by_schemas.values())) > _MOST_PROGRAMS:
            self._by_schemas.clear()
        for pair in dict.fromkeys(zip(ids.tolist(), keys.tolist(), strict=True)):
            if _NO_HEADER in pair or pair[0] == _NONE:
                continue
            is_of_pair = (ids == pair[0]) & (keys == pair[1])
            programs = self._by_schemas.setdefault(pair, [])
            number = tried = 0
            while len(todo := np.flatnonzero(is_of_pair & (status == at.OPEN))):
                if number == len(programs):
                    tried += 1
                    if tried > _MOST_LEARNED:
                        status[todo] = at.SLOW
                        break
                    learned = self._learned(batch, int(todo[0]))
                    if learned is None:
                        status[todo[0]] = at.SLOW
                        continue
                    programs.append(learned)
                program = programs[number]
                program.locate(texts, todo, status, times)
                used += [program] if program.rows else []
                number += 1
        return used

    def _learned(self, batch: Batch, number: int) -> AvroProgram | None:
        """A program for messages such as that one; None where there is none."""
        key, value = batch.keys[number], batch.values[number] or b""
        try:
            events = self._reader.events(key, value, "a message")
            event = events[0] if events else None
            if not isinstance(event, Event) or not is_plain_change(event) or not self._reader.is_plain(value):
                return None
            may_lack_nulls = has_nullable_defaults(event.schema) and not self._reader.modes.accepts_defaults
            known = Known(
                table=event.table,
                names=tuple(field.column.name for field in event.schema.fields),
                schema=event.schema,
                written=None,
                prefix=value[:HEADER_BYTES],
            )
            mark = MARK if may_lack_nulls else ""
            return AvroProgram(self._reader.schema(value), known, lone_updates=self._lone(known.table), mark=mark)
        except (UnsupportedEvent, Unwalkable):
            return None


def _schema_ids(texts: Texts) -> NDArray[np.int64]:
    """Of each message the id of its schema, _NONE where there is no message, and _NO_HEADER."""
    starts, body = texts.starts[:-1], texts.body
    found = np.zeros(len(texts), np.int64)
    for place in range(1, HEADER_BYTES):
        found = found << 8 | body[starts + place]
    found[(texts.sizes < HEADER_BYTES) | (body[starts] != 0) | (found == 0)] = _NO_HEADER
    found[texts.absent] = _NONE
    return found


def reading_of(field: Field, kind: ColumnType) -> columns.Reading | None:
    """How values of a field are read as a column of *kind*; None: by no compiled code."""
    allowed = field.parameters.get("allowed", "")
    # A comma of a label stands behind a backslash. Without the labels any text may have one.
    if "\\" in allowed or (field.name == "io.debezium.data.Enum" and not allowed):
        return None
    return debezium.reading_of(field, kind, READINGS)


def _integers(
    kind: pa.DataType, *, multiplier: int = 1, divisor: int = 1, truths: bool = False, wraps: bool = False
) -> columns.Reading:
    width, low, high = columns.bounds_of(kind)
    more = (width, low, high, multiplier, divisor, int(truths), int(wraps))
    return lambda cells: columns.fixed(cells, kind, width, avro_values.avro_integers, *more)


def _doubles(kind: pa.DataType) -> columns.Reading:
    width = kind.bit_width // 8
    return lambda cells: columns.fixed(cells, kind, width, avro_values.avro_floats, width)


def _bodies() -> columns.Reading:
    return lambda cells: columns.varying(cells, pa.binary(), avro_values.avro_bodies)


def _decimals(kind: pa.DataType) -> columns.Reading:
    return lambda cells: columns.fixed(cells, kind, 16, avro_values.avro_decimals, kind.precision)


READINGS = debezium.Readings(
    integers=_integers,
    doubles=_doubles,
    bodies=_bodies,
    decimals=_decimals,
)
"""How values of Avro become columns, where they are not as in JSON."""
