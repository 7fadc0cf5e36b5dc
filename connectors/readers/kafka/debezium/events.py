"""Messages of Debezium's as events: which table, under which schema, what was done, with what rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from connectors.readers.kafka.debezium.changes import changed, is_change
from connectors.readers.kafka.debezium.schemas import UNLIKE_A_SCHEMA, row_schema
from connectors.readers.kafka.debezium.statements import statement_of, watermark_of
from connectors.readers.kafka.messages.events import Event, RowSchema, SqlEvent, Watermark
from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes
from connectors.readers.kafka.messages.parsing import parsed
from historian.errors import UnsupportedEvent

__all__ = ["PAYLOAD", "EventReader"]

PAYLOAD = b',"payload":'
_SCHEMA = b'{"schema":'
"""What messages begin with; behind the schema stands ``PAYLOAD``, then the event and a brace."""

_DECIMAL = b"connect.data.Decimal"
_REMEMBERED = 1000
_NO_ROWS = (b'.common.Heartbeat"', b'.common.TransactionMetadataValue"', b'.SchemaChangeValue"')
"""How schemas of messages that are no rows are named, behind Debezium's package."""


class EventReader:
    """Reads messages, and takes a schema apart once. Not for several threads at once.

    Args:
        statements: changes of schemas, and watermarks, stand among the rows (TiCDC); else such messages are passed over.
        modes: of the connector, as far as schemas do not tell.
    """

    def __init__(self, *, statements: bool = False, modes: DebeziumModes = DEFAULT_MODES) -> None:
        self._statements, self._modes = statements, modes
        self._schemas: dict[tuple[bytes, bytes], RowSchema] = {}

    def events(
        self,
        key: bytes | None,
        value: bytes | None,
        where: str,
        time_us: int = 0,  # noqa: ARG002 messages tell when the source changed the row
    ) -> tuple[Event | SqlEvent | Watermark, ...]:
        """As :meth:`event`, as :class:`connectors.readers.kafka.messages.events.Decoder` has it; with ``statements`` those too."""
        if self._statements and value is not None:
            payload = self._parts(value, where)[1]
            other = statement_of(payload, where, _unlike) or watermark_of(payload, where, _unlike)
            if other is not None:
                return (other,)
        found = self.event(key, value, where)
        return () if found is None else (found,)

    def event(self, key: bytes | None, value: bytes | None, where: str) -> Event | SqlEvent | None:
        """The event of a message, a statement for a TRUNCATE; None for one that is no change of a row.

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
        return changed(
            payload,
            lambda: self._schema(key, text, where),
            where,
            _unlike,
            lambda: self._key_fields(key, where),
            self._modes,
        )

    @property
    def modes(self) -> DebeziumModes:
        """Of the connector."""
        return self._modes

    def plain_source(self, value: bytes) -> Mapping[str, Any] | None:
        """The ``source`` of a message that stands in the converter's own form; None of another one."""
        if not value.startswith(_SCHEMA) or PAYLOAD not in value:
            return None
        source = self._parts(value, "a message")[1].get("source")
        return source if isinstance(source, dict) else None

    def _parts(self, value: bytes, where: str) -> tuple[bytes, dict[str, Any]]:
        """A message's inline schema as text, and its payload."""
        # A quote inside a text stands behind a backslash, so this is never part of one.
        at = value.find(PAYLOAD)
        try:
            if value.startswith(_SCHEMA) and at >= 0:
                text = value[len(_SCHEMA) : at]
                payload = parsed(value[at + len(PAYLOAD) : -1], exact=_DECIMAL in text)
            else:
                message = parsed(value, exact=_DECIMAL in value)
                if not isinstance(message, dict) or not isinstance(message.get("schema"), dict):
                    raise _unlike(where, value[:60].decode("utf-8", "replace"))
                text, payload = orjson.dumps(message["schema"], default=float), message.get("payload")
        except (ValueError, RecursionError, TypeError) as error:
            raise _unlike(where, f"broken JSON: {error}") from None
        if not isinstance(payload, dict):
            raise _unlike(where, "a payload that is no object")
        return text, payload

    def _key_fields(self, key: bytes | None, where: str) -> dict[str, Any] | None:
        return None if key is None else self._parts(key, f"the key of {where}")[1]

    def _schema(self, key: bytes | None, text: bytes, where: str) -> RowSchema:
        key_text = b"" if key is None else self._parts(key, where)[0]
        held = self._schemas.get((key_text, text))
        if held is not None:
            return held
        if len(self._schemas) >= _REMEMBERED:
            self._schemas.clear()
        try:
            row = next(each for each in orjson.loads(text)["fields"] if each["field"] == "after")
            key_fields = orjson.loads(key_text)["fields"] if key_text else ()
            found = row_schema(row["fields"], key_fields, where, self._modes.binary)
        except UNLIKE_A_SCHEMA as error:
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
