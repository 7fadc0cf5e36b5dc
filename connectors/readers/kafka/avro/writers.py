"""Writers' schemas: what a registry has under an id, taken apart once."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from connectors.readers.kafka.avro.connect_schemas import LOGICAL, fields_of
from connectors.readers.kafka.registry.client import RegisteredSchema, SchemaRegistry
from connectors.readers.kafka.registry.wire import HEADER_BYTES, schema_id
from historian.errors import UnsupportedEvent

__all__ = ["Writer", "Writers"]

_UNREADABLE = (
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
    struct.error,
)
"""What bytes that are no Avro, or of another schema, make of the library."""


@dataclass(frozen=True, slots=True, eq=False)
class Writer:
    """A writer's schema.

    Attributes:
        number: its id in the registry; ``name``: of its record.
        parsed: for the library; ``names``: its parts by name.
    """

    number: int
    name: str
    parsed: Any
    names: Mapping[str, Any]

    def value(self, message: bytes, where: str) -> dict[str, Any]:
        """The record that *message* holds behind its header.

        Raises:
            UnsupportedEvent: it is not whole, or none of this schema.
        """
        from fastavro import schemaless_reader

        body = BytesIO(message)
        body.seek(HEADER_BYTES)
        try:
            found = schemaless_reader(body, self.parsed, None)
        except _UNREADABLE as error:
            ends = isinstance(error, (EOFError, IndexError))
            raise self._unlike(where, "an end amid it" if ends else f"{type(error).__name__} {error}".strip()) from None
        if body.tell() != len(message):
            raise self._unlike(where, f"{len(message) - body.tell()} bytes behind its end")
        if not isinstance(found, dict):
            raise self._unlike(where, "no record")
        return found

    def fields(self, part: str = "") -> list[dict[str, Any]]:
        """The fields of the record, or of the record in its field *part*, in Connect's words.

        Raises:
            KeyError, TypeError, ValueError: there is none.
        """
        record = self.parsed
        if part:
            kind = next((each["type"] for each in record["fields"] if each["name"] == part), None)
            branches = kind if isinstance(kind, list) else [kind]
            (record,) = (
                self.names.get(each, each) if isinstance(each, str) else each for each in branches if each != "null"
            )
        return fields_of(record, self.names)

    def _unlike(self, where: str, found: str) -> UnsupportedEvent:
        return UnsupportedEvent(
            "a message cannot be read by the schema that it names",
            where=where,
            expected=f"Avro of schema {self.number}, {self.name}",
            found=found,
            next_step="look at what wrote it; source.unreadable: dead_letter reads on",
        )


class Writers:
    """Writers' schemas of one ``registry``. For several threads at once: one may ask what another one asks."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self.registry = registry
        self._held: dict[int, Writer] = {}

    def of(self, message: bytes, where: str) -> Writer:
        """The schema that *message* was written with.

        Raises:
            UnsupportedEvent: it names none, or one that the registry does not have, or that is no Avro.
            RegistryDown, SourceError: as :class:`connectors.readers.kafka.registry.client.SchemaRegistry` has them.
        """
        number = schema_id(message, where)
        held = self._held.get(number)
        if held is None:
            held = self._held.setdefault(number, self._parsed(number, where))
        return held

    def _parsed(self, number: int, where: str) -> Writer:
        from fastavro import parse_schema
        from fastavro.schema import SchemaParseException

        registered = self.registry.schema_named(number, where)
        if registered.kind != "AVRO":
            raise self._no_avro(number, where, f"a schema of {registered.kind}")
        names: dict[str, Any] = {}
        try:
            for each in _in_order(registered):
                parsed = parse_schema(_without_logical_types(json.loads(each.text)), names)
        except (SchemaParseException, RecursionError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._no_avro(number, where, f"{type(error).__name__} {error}") from None
        if not isinstance(parsed, dict) or parsed.get("type") != "record":
            raise self._no_avro(number, where, f"a type that is no record: {str(parsed)[:60]}")
        return Writer(number, str(parsed["name"]), parsed, names)

    def _no_avro(self, number: int, where: str, found: str) -> UnsupportedEvent:
        return UnsupportedEvent(
            "a message names a schema that is no record of Avro",
            where=f"{where}, schema {number} at {self.registry.settings.url}",
            found=found,
            next_step="correct source.topics, or source.format",
        )


def _in_order(schema: RegisteredSchema) -> Iterator[RegisteredSchema]:
    """*schema* behind all that it refers to, each once."""
    seen = set[str]()

    def walk(each: RegisteredSchema) -> Iterator[RegisteredSchema]:
        for reference in each.references:
            yield from walk(reference)
        if each.text not in seen:
            seen.add(each.text)
            yield each

    return walk(schema)


def _without_logical_types(schema: Any) -> Any:
    """*schema* so that values are read as they are written: what they mean stands elsewhere."""
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        LOGICAL if key == "logicalType" else key: value
        if key in ("default", "connect.parameters")
        else _without_logical_types(value)
        for key, value in schema.items()
    }
