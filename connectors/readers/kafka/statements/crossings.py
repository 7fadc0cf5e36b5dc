"""Where rows of a partition pass a statement that another topic tells: what columns rows before it told, says nothing of those behind.

So it is where a row from before comes again.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from connectors.readers.kafka.debezium.times import time_us
from connectors.readers.kafka.formats.decoder import FlatDecoder
from connectors.readers.kafka.messages.events import Decoder, Event
from connectors.readers.kafka.messages.source_places import place_of
from historian.errors import UnsupportedEvent

if TYPE_CHECKING:
    from connectors.readers.kafka.messages.batch import Batch
    from connectors.readers.kafka.statements.source_order import SourceOrder

__all__ = ["Crossings"]


class Crossings:
    """Of one partition without schemas, whose messages are in JSON and come in order.

    Args:
        order: of all statements; *where*: names the partition in errors.
    """

    def __init__(self, order: SourceOrder, where: str) -> None:
        self._order, self._where = order, where
        self._passed: int | None = None
        self._side: int | None = None

    def alone(self, event: Event, moment_us: int, decoder: Decoder, key: bytes | None, value: bytes | None) -> Event:
        """*event*, which tells a schema that is new; read anew, by itself, where statements are between it and the last such one.

        Args:
            decoder: that has read it, from *key* and *value*. It knows nothing of a row any more that came late, amid others.
        """
        side = bisect_right(self._order.statement_moments_us, moment_us)
        last, self._side = self._side, side
        if last is None or side == last or not isinstance(decoder, FlatDecoder):
            return event
        decoder.forget()
        found = next(each for each in decoder.events(key, value, self._where) if isinstance(each, Event))
        if side < last:
            decoder.forget()
        return found

    def of(self, batch: Batch) -> list[int]:
        """The numbers of those of the next messages before which rows pass statements, ascending.

        Few messages are looked at, as a partition has the order of its source's log.

        Raises:
            SourceError: as :meth:`.SourceOrder.moments`.
        """
        moments_us, end = self._order.statement_moments_us, len(batch)
        if not moments_us:
            return []
        known: dict[int, int | None] = {}

        def count(number: int) -> int:
            """How many statements a message has passed; one that tells no place as many as that before."""
            for each in range(number, -1, -1):
                if each not in known:
                    known[each] = self._count(batch.values[each], moments_us)
                if (found := known[each]) is not None:
                    return found
            return self._passed or 0

        if self._passed is None:
            self._passed = count(0)
        found, begin = list[int](), 0
        while begin < end and count(end - 1) != self._passed:
            passed = self._passed
            begin = bisect_left(range(end), True, begin, key=lambda each: count(each) != passed)
            found.append(begin)
            self._passed = count(begin)
            begin += 1
        return found

    def _count(self, value: bytes | None, moments_us: list[int]) -> int | None:
        words = None if value is None else place_of(value)
        if value is None or words is None:
            return None
        message = json.loads(value)
        try:
            at_us = time_us(message.get("payload", message)["source"], self._where, _unlike)
        except UnsupportedEvent:
            return None  # who reads it tells, or leaves it to the dead letters
        return bisect_right(moments_us, self._order.moment(words, at_us, self._where))


def _unlike(where: str, found: str) -> UnsupportedEvent:
    return UnsupportedEvent("a time of the source that is none", where=where, found=found)
