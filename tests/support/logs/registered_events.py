"""Debezium's events in JSON as its other converters write them: as Avro and with a JSON Schema, and the schemas that a registry has for them."""

from __future__ import annotations

import io
import json
from typing import Any

from fastavro import parse_schema, schemaless_writer

from connectors.readers.kafka.avro.writers import Writers
from logs.topic_messages import RecordedRegistry
from logs.topic_streams import Message

__all__ = ["RegisteredEvents"]

_TEXT, _LONG, _MAY = "string", "long", "null"
_SOURCE = {
    "connector": _TEXT, "ts_ms": _LONG, "snapshot": [_MAY, _TEXT], "db": _TEXT, "ts_us": [_MAY, _LONG], "table": [_MAY, _TEXT],
    "server_id": _LONG, "gtid": [_MAY, _TEXT], "file": _TEXT, "pos": _LONG, "row": "int",
}  # fmt: skip


def _record(name: str, **kinds: Any) -> dict[str, Any]:
    fields = [{"name": each, "type": kind} for each, kind in kinds.items()]
    return {"type": "record", "name": name, "fields": fields}


def _in_avro(kind: str, columns: tuple[str, ...]) -> dict[str, Any]:
    source = _record("Source", **_SOURCE)
    if kind == "key":
        return _record("Key", id="int")
    if kind == "statement":
        return _record("SchemaChangeValue", source=source, databaseName=[_MAY, _TEXT], ddl=[_MAY, _TEXT])
    row = _record("Value", **{name: "int" if name == "id" else [_MAY, "int"] for name in columns})
    return _record("Envelope", before=[_MAY, row], after=[_MAY, "Value"], source=source, op=_TEXT, ts_ms=[_MAY, _LONG])


def _in_json_schema(kind: str, columns: tuple[str, ...]) -> dict[str, Any]:
    number = {"type": "integer", "connect.type": "int32"}
    row = {
        "type": "object",
        "properties": {
            name: {**number, "connect.index": index} if name == "id" else {"oneOf": [{"type": _MAY}, number], "connect.index": index}
            for index, name in enumerate(columns)
        },
    }  # fmt: skip
    parts: dict[str, Any] = {"id": number}
    if kind == "statement":
        parts = {"source": {"type": "object", "properties": {}}, "ddl": {"type": "string"}}
    if kind == "row":
        parts = {name: {"oneOf": [{"type": _MAY}, row]} for name in ("before", "after")} | {"op": {"type": "string"}}
    return {"type": "object", "title": {"key": "Key", "statement": "SchemaChangeValue", "row": "Envelope"}[kind], "properties": parts}  # fmt: skip


class RegisteredEvents:
    """Writes events of the format *name*; those of a format without a registry stay as they are, in JSON with their schema.

    Tables have the key ``id``, and numbers alone.
    """

    def __init__(self, name: str) -> None:
        self._make = {"debezium_avro": _in_avro, "debezium_json_schema": _in_json_schema}.get(name)
        self._schemas: dict[str, Any] = {}
        self._ids: dict[tuple[str, tuple[str, ...]], tuple[int, Any]] = {}

    @property
    def writers(self) -> Writers | None:
        """What a reader of them is given; None where it needs none."""
        return None if self._make is None else Writers(RecordedRegistry(self._schemas))

    def message(self, message: Message) -> Message:
        """An event, or a statement of the topic of schema changes, which has no schema."""
        key, value = message
        if self._make is None:
            return message
        return self._body("key", key), self._body("row", value)

    def _body(self, kind: str, text: bytes | None) -> bytes | None:
        if text is None or self._make is None:
            return None
        found = json.loads(text)
        columns: tuple[str, ...] = ()
        if "ddl" in found:
            kind, payload = "statement", found
        else:
            payload = found["payload"]
            columns = (
                ("id",) if kind == "key" else tuple(each["field"] for each in found["schema"]["fields"][0]["fields"])
            )
        number, parsed = self._schema(kind, columns)
        header = b"\0" + number.to_bytes(4, "big")
        if parsed is None:
            return header + json.dumps(payload, separators=(",", ":")).encode()
        out = io.BytesIO()
        schemaless_writer(out, parsed, payload)
        return header + out.getvalue()

    def _schema(self, kind: str, columns: tuple[str, ...]) -> tuple[int, Any]:
        assert self._make is not None
        if (kind, columns) not in self._ids:
            number, made = len(self._ids) + 1, self._make(kind, columns)
            is_avro = self._make is _in_avro
            self._schemas[str(number)] = made if is_avro else {"schemaType": "JSON", "schema": json.dumps(made)}
            self._ids[kind, columns] = number, parse_schema(made) if is_avro else None
        return self._ids[kind, columns]
