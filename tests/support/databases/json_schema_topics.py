"""Messages that a real connector wrote in JSON with their schemas, in topics of another name as Confluent's JsonSchemaConverter writes them: no public repository has that converter."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.messages.partitions import Partition
from databases.kafka import Kafka
from databases.registry import Registry

__all__ = ["JsonSchemaTopics"]

_PLAIN = {
    "int8": "integer",
    "int16": "integer",
    "int32": "integer",
    "int64": "integer",
    "float": "number",
    "double": "number",
    "boolean": "boolean",
    "string": "string",
}
_NAMED = {"float": "float32", "double": "float64"}
_WITHOUT_NAME = ("boolean", "string")


def _in_json_schema(kind: Mapping[str, Any], index: int | None = None) -> dict[str, Any]:
    """A schema of Kafka Connect's JSON, which is of the field of that number in its record, as Confluent's converter writes it."""
    found: dict[str, Any]
    if kind["type"] == "struct":
        fields = {each["field"]: _in_json_schema(each, number) for number, each in enumerate(kind["fields"])}
        found = {"type": "object", "properties": fields}
    elif kind["type"] == "array":
        found = {"type": "array", "items": _in_json_schema(kind["items"])}
    elif "name" in kind and kind["name"].startswith("org.apache.kafka.connect.data."):
        raise ValueError(f"values of {kind['name']} stand in another form there")
    else:
        found = {"type": _PLAIN[kind["type"]]}
        if kind["type"] not in _WITHOUT_NAME:
            found["connect.type"] = _NAMED.get(kind["type"], kind["type"])
    told = {"name": "title", "version": "connect.version", "parameters": "connect.parameters", "default": "default"}
    found |= {theirs: kind[ours] for ours, theirs in told.items() if ours in kind}
    if kind.get("optional"):
        found = {"oneOf": [{"type": "null"}, found]}
    return found if index is None else {**found, "connect.index": index}


class JsonSchemaTopics:
    """Topics ``TO`` and ``TO.…`` beside ``FROM`` and ``FROM.…`` of a broker, each of one partition, whose schemas *registry* has."""

    def __init__(self, kafka: Kafka, registry: Registry, came_from: str, to: str) -> None:
        self._kafka, self._registry = kafka, registry
        self._from, self._to = came_from, to
        self._reached: dict[Partition, int] = {}
        self._ids: dict[tuple[str, str], int] = {}

    def follow(self) -> None:
        """Writes what came since it was last called, topic by topic."""
        settings = KafkaSettings(brokers=self._kafka.brokers, topics=(self._from, f"{self._from}.*"))
        with contextlib.closing(Client(settings)) as client:
            for partition in client.partitions():
                start, (_, end) = self._reached.get(partition, 0), client.bounds(partition)
                topic = self._to + partition[0].removeprefix(self._from)
                for _, batch in client.batches({partition: (start, end)}):
                    bodies = zip(batch.keys, batch.values, strict=True)
                    self._kafka.produce(
                        topic,
                        [
                            (self._body(f"{topic}-key", key), self._body(f"{topic}-value", value))
                            for key, value in bodies
                        ],
                    )
                self._reached[partition] = end

    def _body(self, subject: str, text: bytes | None) -> bytes | None:
        if text is None:
            return None
        message = json.loads(text)
        if message["payload"] is None:
            return None
        schema = json.dumps(_in_json_schema(message["schema"]))
        if (subject, schema) not in self._ids:
            self._ids[subject, schema] = self._registry.register_json_schema(subject, schema)
        number = self._ids[subject, schema]
        payload = json.dumps(message["payload"], separators=(",", ":"), ensure_ascii=False)
        return b"\0" + number.to_bytes(4, "big") + payload.encode()
