"""Plain JSON under a key: the row as it is from now on; without a value it is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectors.readers.kafka.formats.schemas import UNTOLD, inferred
from connectors.readers.kafka.keyed.keys import key_fields
from connectors.readers.kafka.keyed.names import table_of
from connectors.readers.kafka.messages.events import Conventions, Event, RowSchema
from connectors.readers.kafka.messages.parsing import parsed
from historian.errors import UnsupportedEvent

__all__ = ["JsonRows"]


class JsonRows:
    """Reads the messages of one topic. Not for several threads at once.

    Args:
        topic: whose name tells the table's.
        zone: of TIMESTAMPs that are written without one.
        tells: events say what schema their message has; else they say none, for rows whose schema a plan knows.
    """

    def __init__(self, topic: str, *, zone: str = "UTC", tells: bool = True) -> None:
        self._table = table_of(topic)
        self._written = Conventions(zone=zone)
        self._tells = tells
        self._inferred: RowSchema | None = None

    def events(self, key: bytes | None, value: bytes | None, where: str, time_us: int = 0) -> tuple[Event, ...]:
        """The event of a message, see :class:`connectors.readers.kafka.messages.events.Decoder`.

        Raises:
            UnsupportedEvent: it has no key, or a value that is no JSON object.
        """
        fields = key_fields(key, where)
        names = tuple(fields)
        if value is None:
            return (
                Event(
                    table=self._table,
                    schema=self._schema(fields, names),
                    op="d",
                    before=fields,
                    after=None,
                    event_time_us=time_us,
                    written=self._written,
                    keyed=True,
                ),
            )
        row = {**fields, **self._parsed(value, where)}
        return (
            Event(
                table=self._table,
                schema=self._schema(row, names),
                op="u",
                before=None,
                after=row,
                event_time_us=time_us,
                written=self._written,
            ),
        )

    def _schema(self, row: Mapping[str, Any], key: tuple[str, ...]) -> RowSchema:
        if not self._tells:
            return UNTOLD
        self._inferred = inferred(row, self._inferred, key)
        return self._inferred

    def _parsed(self, value: bytes, where: str) -> dict[str, Any]:
        try:
            found = parsed(value, exact=True)
        except (ValueError, RecursionError) as error:
            raise _unlike(where, f"broken JSON: {error}") from None
        if not isinstance(found, dict):
            raise _unlike(where, value[:60].decode("utf-8", "replace"))
        return found


def _unlike(where: str, found: str) -> UnsupportedEvent:
    return UnsupportedEvent(
        "a message is no row as JSON",
        where=where,
        expected="an object",
        found=found,
        next_step="correct source.topics, or source.format",
    )
