"""Which decoder reads the messages of a configured format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from connectors.readers.kafka.avro.events import AvroEvents
from connectors.readers.kafka.avro.sent import AvroSent
from connectors.readers.kafka.avro.writers import Writers
from connectors.readers.kafka.debezium.events import EventReader
from connectors.readers.kafka.debezium.schema_changes import (
    Payload,
    SchemaChanges,
    json_payload,
    registered_json_payload,
)
from connectors.readers.kafka.formats.decoder import FlatDecoder
from connectors.readers.kafka.formats.tables import FLAT_FORMATS
from connectors.readers.kafka.json_schema.events import JsonSchemaEvents
from connectors.readers.kafka.keyed.deletes import TOMBSTONES_DELETE, Deletes
from connectors.readers.kafka.keyed.formats import KEYED_FORMATS, KeyedFormat
from connectors.readers.kafka.keyed.rows import KeyedRows
from connectors.readers.kafka.messages.events import Conventions, Decoder
from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes
from connectors.readers.kafka.messages.source_places import payload_in_json
from connectors.readers.kafka.registry.client import RegistrySettings, SchemaRegistry
from connectors.readers.kafka.repeats import hash_of
from connectors.readers.kafka.tidb.avro import TICDC_AVRO
from connectors.readers.kafka.tidb.decoder import TidbDecoder
from connectors.readers.kafka.tidb.open_protocol import OPEN_COLUMNS, OPEN_PROTOCOL
from connectors.readers.kafka.tidb.simple import SIMPLE_PROTOCOL, SIMPLE_SCHEMAS
from connectors.readers.kafka.tidb.simple_avro import avro_reader
from connectors.readers.kafka.tidb.typed_columns import TypedRows
from connectors.readers.kafka.tidb.versioned_rows import VersionedRows
from historian.errors import SourceError

if TYPE_CHECKING:
    from connectors.readers.kafka.client import KafkaSettings

__all__ = [
    "FORMATS",
    "WITH_SCHEMA_TOPIC",
    "Sent",
    "advice_of",
    "decoder_for",
    "decoder_of",
    "has_source_places",
    "has_statements",
    "has_statements_among_rows",
    "has_statements_in_each",
    "looks_back",
    "sent_of",
    "writers_of",
]

_SCHEMALESS = "debezium_json_schemaless"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a decoder is made of, see :func:`decoder_of`."""

    zone: str
    tells: bool
    writers: Writers | None
    topic: str
    modes: DebeziumModes
    message_schema: str
    deletes: Deletes = TOMBSTONES_DELETE

    def registered(self, name: str) -> Writers:
        """The writers of a format that needs them."""
        if self.writers is None:
            raise SourceError("messages whose schemas a registry has", where=name, expected="source.registry")
        return self.writers

    @property
    def debezium(self) -> Conventions:
        """How Debezium writes values without their schema."""
        return self.modes.over(replace(FLAT_FORMATS[_SCHEMALESS].written, zone=self.zone))


def _flat(name: str) -> Callable[[_Asked], Decoder]:
    form = FLAT_FORMATS[name]

    def make(asked: _Asked) -> Decoder:
        by_mode = replace(form, written=asked.modes.over(form.written)) if name == _SCHEMALESS else form
        return FlatDecoder(by_mode, zone=asked.zone, tells=asked.tells, modes=asked.modes)

    return make


def _keyed(name: str, form: KeyedFormat) -> Callable[[_Asked], Decoder]:
    def make(asked: _Asked) -> Decoder:
        writers = asked.registered(name) if form.avro == "always" else asked.writers
        written = asked.debezium if form.debezium else replace(form.written, zone=asked.zone)
        return KeyedRows(
            form,
            asked.topic,
            written=written,
            writers=writers,
            tells=asked.tells,
            unavailable=asked.modes.unavailable,
            deletes=asked.deletes,
        )

    return make


_MAKE: Mapping[str, Callable[[_Asked], Decoder]] = {
    "debezium_json": lambda asked: EventReader(modes=asked.modes),
    "debezium_avro": lambda asked: AvroEvents(asked.registered("debezium_avro"), asked.modes),
    "debezium_json_schema": lambda asked: JsonSchemaEvents(
        asked.registered("debezium_json_schema").registry, asked.modes
    ),
    "ticdc_open_protocol": lambda asked: TidbDecoder(OPEN_PROTOCOL, TypedRows(OPEN_COLUMNS, zone=asked.zone)),
    "ticdc_simple": lambda _: TidbDecoder(SIMPLE_PROTOCOL, VersionedRows(SIMPLE_SCHEMAS)),
    "ticdc_simple_avro": lambda asked: TidbDecoder(
        SIMPLE_PROTOCOL, VersionedRows(SIMPLE_SCHEMAS, avro_reader(asked.message_schema))
    ),
    "ticdc_avro": _keyed("ticdc_avro", TICDC_AVRO),
    # It writes NULLs as such, and "false" as where rows come from.
    "ticdc_debezium": lambda _: EventReader(statements=True, modes=replace(DEFAULT_MODES, accepts_defaults=True)),
    **{name: _keyed(name, form) for name, form in KEYED_FORMATS.items()},
    **{name: _flat(name) for name in FLAT_FORMATS},
}


def _avro_payload(writers: Writers) -> Payload:
    return lambda value, where: writers.of(value, where).value(value, where)


_SCHEMA_CHANGES: Mapping[str, Callable[[_Asked], Payload]] = {
    "debezium_json": lambda _: json_payload,
    "debezium_json_schemaless": lambda _: json_payload,
    "debezium_json_schema": lambda _: registered_json_payload,
    "debezium_avro": lambda asked: _avro_payload(asked.registered("debezium_avro")),
}

WITH_SCHEMA_TOPIC = tuple(_SCHEMA_CHANGES)
"""Names of formats whose producers may write changes of schemas to a topic of their own."""

FORMATS = tuple(_MAKE)
"""Names of all formats."""

_WITH_WATERMARKS = ("ticdc_open_protocol", "ticdc_simple", "ticdc_simple_avro", "ticdc_debezium", "ticdc_canal_json")
_IN_EACH = ("ticdc_open_protocol", "ticdc_simple", "ticdc_simple_avro", "ticdc_debezium")
_WITH_STATEMENTS = (
    "debezium_json",
    "debezium_avro",
    "debezium_json_schema",
    "ticdc_open_protocol",
    "ticdc_simple",
    "ticdc_simple_avro",
    "ticdc_debezium",
)


def decoder_of(
    name: str,
    *,
    zone: str = "UTC",
    tells: bool = True,
    writers: Writers | None = None,
    topic: str = "",
    modes: DebeziumModes = DEFAULT_MODES,
    message_schema: str = "",
    schema_topic: str = "",
) -> Decoder:
    """A decoder of the format *name*.

    Args:
        zone: of TIMESTAMPs that are written without one.
        tells: events say what schema their message has, where reading rows does not need it.
        writers: schemas of formats that have them in a registry, see :func:`writers_of`.
        topic: of the messages, which names the table of formats that do not.
        modes: of a connector of Debezium's that writes no schema.
        message_schema: of a format with a schema that neither its messages have nor a registry.
        schema_topic: that has changes of schemas in the place of rows; "": none has.
    """
    asked = _Asked(zone=zone, tells=tells, writers=writers, topic=topic, modes=modes, message_schema=message_schema)
    return _decoder(name, asked, schema_topic)


def decoder_for(settings: KafkaSettings, topic: str, writers: Writers | None, *, tells: bool = True) -> Decoder:
    """A decoder of messages of *topic*, as *settings* have it; the rest as of :func:`decoder_of`."""
    asked = _Asked(
        zone=settings.zone,
        tells=tells,
        writers=writers,
        topic=topic,
        modes=settings.modes,
        message_schema=settings.message_schema,
        deletes=Deletes(tombstones=settings.tombstones, normalized=settings.normalized),
    )
    return _decoder(settings.format, asked, settings.schema_topic)


def _decoder(name: str, asked: _Asked, schema_topic: str) -> Decoder:
    if asked.topic and asked.topic == schema_topic:
        return SchemaChanges(_SCHEMA_CHANGES[name](asked))
    return _MAKE[name](asked)


def writers_of(registry: RegistrySettings | None) -> Writers | None:
    """What the decoders of a reader have in common: schemas of *registry*, each asked for once; None without one."""
    return None if registry is None else Writers(SchemaRegistry(registry))


def has_statements(name: str) -> bool:
    """Whether messages of the format *name* may be statements."""
    flat = FLAT_FORMATS.get(name)
    return name in _WITH_STATEMENTS or (flat is not None and bool(flat.is_ddl or flat.ddl_ops or flat.truncate))


def has_statements_among_rows(name: str) -> bool:
    """Whether topics of rows of the format *name* have statements that change schemas."""
    flat = FLAT_FORMATS.get(name)
    return name in _WITH_WATERMARKS or (flat is not None and bool(flat.is_ddl or flat.ddl_ops))


def has_statements_in_each(name: str) -> bool:
    """Whether each partition of topics of the format *name* has each statement; else one partition has it."""
    return name in _IN_EACH


def has_source_places(name: str) -> bool:
    """Whether messages of the format *name* say where their changes stand in the source's log.

    So those are known that come again, and statements have their places among rows.
    """
    return name in WITH_SCHEMA_TOPIC


class Sent(NamedTuple):
    """How messages are read that say where their changes stand.

    Attributes:
        payload: gives what a message holds; where it holds nothing, None or an error as of :func:`.source_places.payload_in_json`.
        hash_of: see :func:`.repeats.hash_of`.
    """

    payload: Callable[[bytes], Any]
    hash_of: Callable[[bytes, int], int]


def sent_of(name: str, writers: Writers | None) -> Sent:
    """Those of the format *name*; *writers*: see :func:`writers_of`. Not for several threads at once."""
    if name == "debezium_avro" and writers is not None:
        sent = AvroSent(writers)
        return Sent(sent.payload, sent.hash_of)
    if name == "debezium_json_schema":
        return Sent(lambda value: registered_json_payload(value, "a message"), hash_of)
    return Sent(payload_in_json, hash_of)


def looks_back(name: str) -> bool:
    """Whether messages of the format *name* are read by the one before them, which may be a watermark."""
    return name in _WITH_WATERMARKS


def advice_of(name: str) -> str:
    """What to do where messages of the format *name* tell too little of a table."""
    if name in ("ticdc_simple", "ticdc_simple_avro"):
        return (
            "have TiCDC send BOOTSTRAP messages (send-bootstrap-interval-in-sec), or give the tables by source.schema"
        )
    return "" if name not in FLAT_FORMATS else FLAT_FORMATS[name].without_types
