"""Which decoder reads the messages of a configured format."""

from __future__ import annotations

from connectors.readers.kafka.debezium.events import EventReader
from connectors.readers.kafka.formats.decoder import FlatDecoder
from connectors.readers.kafka.formats.tables import FLAT_FORMATS
from connectors.readers.kafka.messages.events import Decoder

__all__ = ["FORMATS", "advice_of", "decoder_of"]

FORMATS = ("debezium_json", *FLAT_FORMATS)
"""Names of all formats."""


def decoder_of(name: str, *, zone: str = "UTC", tells: bool = True) -> Decoder:
    """A decoder of the format *name*.

    Args:
        zone: of TIMESTAMPs that are written without one.
        tells: events say what schema their message has, where reading rows does not need it.
    """
    if name == "debezium_json":
        return EventReader()
    return FlatDecoder(FLAT_FORMATS[name], zone=zone, tells=tells)


def advice_of(name: str) -> str:
    """What to do where messages of the format *name* tell too little of a table."""
    return "" if name == "debezium_json" else FLAT_FORMATS[name].without_types
