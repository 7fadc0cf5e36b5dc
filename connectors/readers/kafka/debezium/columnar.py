"""Debezium's messages with their schema inline by compiled code: what is looked for, and how each type is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from connectors.readers.kafka.debezium.envelope import MEMBERS
from connectors.readers.kafka.debezium.events import PAYLOAD, EventReader
from connectors.readers.kafka.debezium.names import is_by_schema, is_of_mysql
from connectors.readers.kafka.debezium.times import LAST_US
from connectors.readers.kafka.located import columns
from connectors.readers.kafka.located.forms import JsonForm
from connectors.readers.kafka.located.programs import Known
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.messages.whole_rows import is_plain_change
from historian.errors import UnsupportedEvent
from historian.schema.snapshots import INTEGER_TYPES
from historian.values.arrow_types import arrow_type

if TYPE_CHECKING:
    from connectors.readers.kafka.messages.events import Field
    from historian.schema.snapshots import ColumnType

__all__ = ["FORM", "Readings", "known_of", "reading_of"]

FORM = JsonForm(
    members=MEMBERS,
    op="op",
    ops={"c": "c", "r": "r", "u": "u", "d": "d"},
    database="source.db",
    schema="source.schema",
    server=("source.connector", "source.schema", "source.db"),
    mark="source.snapshot",
    table="source.table",
    time="source.ts_us",
    time_unit_us=1,
    coarse_time="source.ts_ms",
    coarse_time_unit_us=1000,
    time_bounds_us=(-LAST_US, LAST_US),
    after="after",
    before="before",
    deleted="before",
    with_arrays=False,
    names_may_lack=True,
    prefixed=True,
    tombstones=True,
    exact=True,
)

_MILLISECONDS = ("io.debezium.time.Timestamp", "org.apache.kafka.connect.data.Timestamp")
_NANOSECONDS = ("io.debezium.time.NanoTimestamp", "io.debezium.time.NanoTime")
_TIMES_MS = ("io.debezium.time.Time", "org.apache.kafka.connect.data.Time")
_TEXTS = ("", "io.debezium.data.EnumSet", "io.debezium.data.Json")


def known_of(reader: EventReader, key: bytes | None, value: bytes) -> Known | None:
    """What is known of messages such as this one; None where it is no change of a row."""
    try:
        event = reader.event(key, value, "")
    except UnsupportedEvent:
        return None
    source = reader.plain_source(value)
    if not isinstance(event, Event) or source is None or not (key is None or PAYLOAD in key):
        return None
    if not is_plain_change(event) or not (is_of_mysql(source) or is_by_schema(source)):
        return None
    return Known(
        table=event.table,
        names=tuple(field.column.name for field in event.schema.fields),
        schema=event.schema,
        written=None,
        prefix=value[: value.index(PAYLOAD) + len(PAYLOAD)],
        key=b"" if key is None else key[: key.index(PAYLOAD) + len(PAYLOAD)],
        by_schema=is_by_schema(source),
        former_name=event.former_name,
        connector=str(source.get("connector")).encode() if is_by_schema(source) else b"",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """How values become columns, where that depends on how messages are written; see :mod:`connectors.readers.kafka.located.columns`."""

    integers: Callable[..., columns.Reading] = columns.integers
    doubles: Callable[[pa.DataType], columns.Reading] = columns.doubles
    bodies: Callable[[], columns.Reading] = columns.base64_bytes
    decimals: Callable[[pa.DataType], columns.Reading] = columns.base64_decimals


_JSON = Readings()


def reading_of(field: Field, kind: ColumnType, made: Readings = _JSON) -> columns.Reading | None:
    """How values of a field are read as a column of *kind*; None: by no compiled code."""
    meaning, wanted = field.name, arrow_type(kind)
    if field.type == "bytes":
        if meaning == "" and pa.types.is_binary(wanted):
            return made.bodies()
        is_number = meaning == "org.apache.kafka.connect.data.Decimal" and kind.name == "decimal"
        if is_number and pa.types.is_decimal(wanted) and int(field.parameters.get("scale", 0)) == wanted.scale:
            return made.decimals(wanted)
        return None
    if field.type == "string":
        if meaning == "io.debezium.time.ZonedTimestamp" and pa.types.is_timestamp(wanted):
            return columns.moments_of(wanted, zulu=True)
        if not pa.types.is_string(wanted):
            return None
        if meaning == "io.debezium.data.Enum":
            return columns.texts(escapes=False)
        return columns.texts() if meaning in _TEXTS else None
    return _reading_of_number(field, kind, wanted, made)


def _reading_of_number(field: Field, kind: ColumnType, wanted: pa.DataType, made: Readings) -> columns.Reading | None:
    meaning = field.name
    if pa.types.is_timestamp(wanted) or (kind.name == "time" and wanted == pa.int64()):
        if meaning in (*_MILLISECONDS, *_TIMES_MS):
            return made.integers(wanted, multiplier=1000)
        if meaning in _NANOSECONDS:
            return made.integers(wanted, divisor=1000)
        is_us = meaning in ("io.debezium.time.MicroTimestamp", "io.debezium.time.MicroTime")
        return made.integers(wanted) if is_us else None
    if pa.types.is_date(wanted):
        is_days = meaning in ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")
        return made.integers(wanted) if is_days else None
    if meaning not in ("", "io.debezium.time.Year"):
        return None
    if kind.name in (*INTEGER_TYPES, "year"):
        truths = kind.name == "tinyint" and field.type == "boolean"
        return made.integers(wanted, truths=truths, wraps=kind.name == "bigint" and kind.unsigned)
    if kind.name in ("float", "double") and pa.types.is_floating(wanted):
        return made.doubles(wanted)
    return columns.booleans() if pa.types.is_boolean(wanted) else None
