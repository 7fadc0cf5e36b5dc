"""What compiled code knows of the messages that a decoder reads."""

from __future__ import annotations

from dataclasses import replace

from connectors.readers.kafka.avro.columnar import AvroLocator
from connectors.readers.kafka.avro.events import AvroEvents
from connectors.readers.kafka.debezium import columnar as debezium
from connectors.readers.kafka.debezium.doubts import doubts_of
from connectors.readers.kafka.debezium.envelope import SOURCES
from connectors.readers.kafka.debezium.events import EventReader
from connectors.readers.kafka.formats import columnar as flat
from connectors.readers.kafka.formats.decoder import FlatDecoder
from connectors.readers.kafka.formats.inferring import InferringLocator
from connectors.readers.kafka.located.batches import Locator, Lone, never
from connectors.readers.kafka.messages.events import Decoder

__all__ = ["locator_of", "scanning_locator_of"]


def locator_of(decoder: Decoder, lone: Lone = never) -> Locator | None:
    """What finds the rows of batches of messages that *decoder* reads for their rows; None where compiled code does not read its format.

    Args:
        lone: as of :class:`connectors.readers.kafka.located.batches.Locator`.
    """
    if isinstance(decoder, EventReader):
        return _event_locator(decoder, lone)
    if isinstance(decoder, AvroEvents):
        return AvroLocator(decoder, lone)
    if isinstance(decoder, FlatDecoder):
        form, located = decoder.format, flat.form_of(decoder.format)
        doubts = doubts_of(decoder.modes) if form.source else flat.doubts_of(form)
        if located is None:
            return None
        return Locator(located, lambda key, value: flat.known_of(decoder, key, value), lone, doubts)
    return None


def scanning_locator_of(decoder: Decoder, lone: Lone = never) -> Locator | None:
    """What finds the rows of batches whose messages tell the same schema; None where compiled code does not see whether they do."""
    if isinstance(decoder, EventReader):
        return _event_locator(decoder, lone, SOURCES)
    if isinstance(decoder, AvroEvents):
        return locator_of(decoder, lone)
    if not isinstance(decoder, FlatDecoder):
        return None
    form = flat.form_of(decoder.format)
    if form is None:
        return None
    if not form.told:
        return InferringLocator(decoder, replace(form, sources=SOURCES if decoder.format.source else ()), lone)
    return Locator(form, lambda key, value: flat.told_of(decoder, form, key, value), lone)


def _event_locator(decoder: EventReader, lone: Lone, sources: tuple[str, ...] = ()) -> Locator:
    return Locator(
        replace(debezium.FORM, sources=sources),
        lambda key, value: debezium.known_of(decoder, key, value),
        lone,
        doubts_of(decoder.modes),
    )
