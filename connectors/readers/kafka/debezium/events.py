"""Messages of Debezium's as events: which table, under which schema, what was done, with what rows."""

from __future__ import annotations

from typing import Any

import orjson

from connectors.readers.kafka.debezium.changes import changed, is_change
from connectors.readers.kafka.debezium.schemas import columns_of
from connectors.readers.kafka.messages.events import Event, Field, RowSchema
from historian.errors import UnsupportedEvent

__all__ = ["PAYLOAD", "EventReader"]

PAYLOAD = b',"payload":'
_SCHEMA = b'{"schema":'
"""What messages begin with; behind the schema stands ``PAYLOAD``, then the event and a brace."""

_REMEMBERED = 1000
_NO_ROWS = (b'.common.Heartbeat"', b'.common.TransactionMetadataValue"', b'.SchemaChangeValue"')
"""How schemas of messages that are no rows are named, behind Debezium's package."""


class EventReader:
    """Reads messages, and takes a schema apart once. Not for several threads at once."""

    def __init__(self) -> None:
        self._rows: dict[bytes, tuple[Field, ...]] = {}
        self._keys: dict[bytes, tuple[str, ...]] = {}
        self._schemas: dict[tuple[bytes, bytes], RowSchema] = {}

    def events(self, key: bytes | None, value: bytes | None, where: str) -> tuple[Event, ...]:
        """As :meth:`event`, as :class:`connectors.readers.kafka.messages.events.Decoder` has it."""
        found = self.event(key, value, where)
        return () if found is None else (found,)

    def event(self, key: bytes | None, value: bytes | None, where: str) -> Event | None:
        """The event of a message; None for one that is no change of a row.

        That is a tombstone, a heartbeat, a begin or end of a transaction, a change of a schema, a message of the source's log.

        Args:
            where: names the message in errors.

        Raises:
            UnsupportedEvent: it is none of Debezium's with its schema inline, or of a kind that is not read yet.
        """
        if value is None:
            return None
        text, payload = self._parts(value, where)
        if not is_change(payload) and any(name in text for name in _NO_ROWS):
            return None
        return changed(payload, lambda: self._schema(key, text, where), where, _unlike)

    def _parts(self, value: bytes, where: str) -> tuple[bytes, dict[str, Any]]:
        """A message's inline schema as text, and its payload."""
        # A quote inside a text stands behind a backslash, so this is never part of one.
        at = value.find(PAYLOAD)
        if not value.startswith(_SCHEMA) or at < 0:
            raise _unlike(where, value[:60].decode("utf-8", "replace"))
        try:
            payload = orjson.loads(value[at + len(PAYLOAD) : -1])
        except orjson.JSONDecodeError as error:
            raise _unlike(where, f"broken JSON: {error}") from None
        if not isinstance(payload, dict):
            raise _unlike(where, "a payload that is no object")
        return value[len(_SCHEMA) : at], payload

    def _schema(self, key: bytes | None, text: bytes, where: str) -> RowSchema:
        key_text = b"" if key is None else self._parts(key, where)[0]
        held = self._schemas.get((key_text, text))
        if held is not None:
            return held
        if len(self._schemas) >= _REMEMBERED:
            self._schemas.clear()
        try:
            envelope = orjson.loads(text)
            row = next(each for each in envelope["fields"] if each["field"] == "after")
            names = tuple(str(each["field"]) for each in orjson.loads(key_text)["fields"]) if key_text else ()
            found = RowSchema(fields=columns_of(row, where), key=names)
        except (orjson.JSONDecodeError, KeyError, TypeError, StopIteration, ValueError, ArithmeticError) as error:
            raise _unlike(where, f"an inline schema that is none of a change event: {error!r}") from None
        self._schemas[key_text, text] = found
        return found


def _unlike(where: str, found: str) -> UnsupportedEvent:
    return UnsupportedEvent(
        "a message is no event of Debezium's as JSON with its schema inline",
        where=where,
        expected='{"schema": ..., "payload": {"op": ...}}, as schemas.enable=true of JsonConverter writes it',
        found=found,
        next_step="correct source.topics, or source.format",
    )
