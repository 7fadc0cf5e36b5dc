"""Which decoder reads the messages of a configured format."""

from __future__ import annotations

from connectors.readers.kafka.avro.events import AvroEventReader
from connectors.readers.kafka.avro.writers import Writers
from connectors.readers.kafka.debezium.events import EventReader
from connectors.readers.kafka.formats.decoder import FlatDecoder
from connectors.readers.kafka.formats.tables import FLAT_FORMATS
from connectors.readers.kafka.messages.events import Decoder
from connectors.readers.kafka.registry.client import RegistrySettings, SchemaRegistry
from historian.errors import SourceError

__all__ = ["FORMATS", "advice_of", "decoder_of", "has_statements", "writers_of"]

FORMATS = ("debezium_json", "debezium_avro", *FLAT_FORMATS)
"""Names of all formats."""


def decoder_of(name: str, *, zone: str = "UTC", tells: bool = True, writers: Writers | None = None) -> Decoder:
    """A decoder of the format *name*.

    Args:
        zone: of TIMESTAMPs that are written without one.
        tells: events say what schema their message has, where reading rows does not need it.
        writers: schemas of formats that have them in a registry, see :func:`writers_of`.
    """
    if name == "debezium_json":
        return EventReader()
    if name == "debezium_avro":
        if writers is None:
            raise SourceError("messages whose schemas a registry has", where=name, expected="source.registry")
        return AvroEventReader(writers)
    return FlatDecoder(FLAT_FORMATS[name], zone=zone, tells=tells)


def writers_of(registry: RegistrySettings | None) -> Writers | None:
    """What the decoders of a reader have in common: schemas of *registry*, each asked for once; None without one."""
    return None if registry is None else Writers(SchemaRegistry(registry))


def has_statements(name: str) -> bool:
    """Whether messages of the format *name* may be statements."""
    return name in FLAT_FORMATS and bool(FLAT_FORMATS[name].is_ddl or FLAT_FORMATS[name].ddl_ops)


def advice_of(name: str) -> str:
    """What to do where messages of the format *name* tell too little of a table."""
    return "" if name not in FLAT_FORMATS else FLAT_FORMATS[name].without_types
