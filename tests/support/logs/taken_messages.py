"""What a maker of chunks makes of messages: one by one, or with compiled code."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.located.batches import runs_of
from connectors.readers.kafka.locators import locator_of
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.rows import ChunkMaker
from historian.changelog.chunks import Chunk
from historian.errors import UnsupportedEvent
from logs.topic_streams import Message, batch_of

__all__ = ["taken"]


def taken(maker: ChunkMaker, name: str, messages: Sequence[Message], cuts: Sequence[int] | None) -> list[Chunk]:
    """The chunks of messages of the format *name*: one by one where *cuts* is None, or of batches that end there. Raises what *maker* does."""
    decoder = decoder_of(name, tells=False)
    locator = locator_of(decoder)
    assert locator is not None
    batch, found = batch_of(messages), list[Chunk]()
    for begin, end in itertools.pairwise([0, *(cuts or ()), len(messages)]):
        for run in runs_of(None if cuts is None else locator, batch.part(begin, end)):
            if not isinstance(run, int):
                found += maker.take_located(run)
                continue
            at = begin + run
            try:
                for event in decoder.events(*messages[at], f"t:0:{at}"):
                    if isinstance(event, Event):
                        found += maker.take(at, event)
            except UnsupportedEvent as error:
                found += maker.take_unread(f"t:0:{at}", 0, b"", str(error))
    return [*found, *maker.rest()]
