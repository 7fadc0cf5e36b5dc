"""Messages of Debezium's whose JSON Schema a registry has, as events."""

from __future__ import annotations

from connectors.readers.kafka.debezium.registered import RegisteredEvents
from connectors.readers.kafka.json_schema.schemas import JsonSchema, JsonSchemas
from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes
from connectors.readers.kafka.registry.client import SchemaRegistry

__all__ = ["JsonSchemaEvents"]


class JsonSchemaEvents(RegisteredEvents[JsonSchema]):
    """Reads messages. Not for several threads at once; *registry* may be others' too."""

    def __init__(self, registry: SchemaRegistry, modes: DebeziumModes = DEFAULT_MODES) -> None:
        super().__init__(
            JsonSchemas(registry).of,
            form="JSON with a JSON Schema in a registry",
            expected="an object with before, after, source and op, as Confluent's JsonSchemaConverter writes it",
            modes=modes,
        )
