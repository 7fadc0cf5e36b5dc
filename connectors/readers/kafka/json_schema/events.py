"""Messages of Debezium's whose JSON Schema a registry has, as events: which table, under which schema, what was done, with what rows."""

from __future__ import annotations

from typing import Any

from connectors.readers.kafka.debezium.changes import changed, is_change
from connectors.readers.kafka.debezium.schemas import UNLIKE_A_SCHEMA, columns_of
from connectors.readers.kafka.json_schema.schemas import JsonSchema
from connectors.readers.kafka.messages.events import Event, RowSchema, SqlEvent
from connectors.readers.kafka.messages.parsing import parsed
from connectors.readers.kafka.registry.client import SchemaRegistry
from connectors.readers.kafka.registry.wire import HEADER_BYTES, schema_id
from historian.errors import UnsupportedEvent

__all__ = ["JsonSchemaReader"]

_NO_ROWS = (".common.Heartbeat", ".common.TransactionMetadataValue", ".SchemaChangeValue")
"""How schemas of messages that are no rows are titled, behind Debezium's package."""


class JsonSchemaReader:
    """Reads messages. Not for several threads at once; *registry* may be others' too."""

    def __init__(self, registry: SchemaRegistry, *, binary: str = "bytes") -> None:
        self._registry, self._binary = registry, binary
        self._held: dict[int, JsonSchema] = {}
        self._schemas: dict[tuple[int, int], RowSchema] = {}

    def events(
        self,
        key: bytes | None,
        value: bytes | None,
        where: str,
        time_us: int = 0,  # noqa: ARG002 messages tell when the source changed the row
    ) -> tuple[Event | SqlEvent, ...]:
        """The event of a message, see :class:`connectors.readers.kafka.messages.events.Decoder`; none of one that is no change of a row.

        Raises:
            UnsupportedEvent: it is none of Debezium's with such a schema, or of a kind that is not read yet.
            RegistryDown, SourceError: its schema cannot be had.
        """
        if value is None:
            return ()
        schema = self._of(value, where)
        payload = self._payload(value, where)
        if not is_change(payload) and schema.name.endswith(_NO_ROWS):
            return ()
        found = changed(
            payload, lambda: self._schema(key, schema, where), where, _unlike, lambda: self._key_fields(key, where)
        )
        return () if found is None else (found,)

    def _payload(self, message: bytes, where: str) -> dict[str, Any]:
        try:
            found = parsed(message[HEADER_BYTES:], exact=True)
        except (ValueError, RecursionError) as error:
            raise _unlike(where, f"broken JSON: {error}") from None
        if not isinstance(found, dict):
            raise _unlike(where, "a payload that is no object")
        return found

    def _key_fields(self, key: bytes | None, where: str) -> dict[str, Any] | None:
        where = f"the key of {where}"
        if key is None:
            return None
        schema_id(key, where)
        return self._payload(key, where)

    def _of(self, message: bytes, where: str) -> JsonSchema:
        """The schema that *message* names."""
        number = schema_id(message, where)
        held = self._held.get(number)
        if held is not None:
            return held
        registered = self._registry.schema_named(number, where)
        try:
            held = JsonSchema.of(number, registered)
        except (ValueError, TypeError, RecursionError) as error:
            raise UnsupportedEvent(
                "a message names a schema that is no JSON Schema of an object",
                where=f"{where}, schema {number} at {self._registry.settings.url}",
                found=str(error),
                next_step="correct source.topics, or source.format",
            ) from None
        self._held[number] = held
        return held

    def _schema(self, key: bytes | None, schema: JsonSchema, where: str) -> RowSchema:
        key_schema = None if key is None else self._of(key, f"the key of {where}")
        numbers = (0 if key_schema is None else key_schema.number), schema.number
        held = self._schemas.get(numbers)
        if held is not None:
            return held
        try:
            row = {"fields": schema.fields("after")}
            names = () if key_schema is None else tuple(str(each["field"]) for each in key_schema.fields())
            found = RowSchema(fields=columns_of(row, where, self._binary), key=names)
        except UNLIKE_A_SCHEMA as error:
            raise _unlike(where, f"schema {schema.number}, {schema.name or 'without a title'}: {error!r}") from None
        self._schemas[numbers] = found
        return found


def _unlike(where: str, found: str) -> UnsupportedEvent:
    return UnsupportedEvent(
        "a message is no event of Debezium's with a JSON Schema in a registry",
        where=where,
        expected="an object with before, after, source and op, as Confluent's JsonSchemaConverter writes it",
        found=found,
        next_step="correct source.topics, or source.format",
    )
