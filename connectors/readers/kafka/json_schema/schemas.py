"""A JSON Schema as the schema of Kafka Connect that its converter made it of, in the words of Connect's own JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectors.readers.kafka.messages.parsing import parsed
from connectors.readers.kafka.registry.client import RegisteredSchema, SchemaRegistry
from connectors.readers.kafka.registry.wire import HEADER_BYTES, schema_id
from historian.errors import UnsupportedEvent

__all__ = ["JsonSchema", "JsonSchemas"]

_PLAIN = {
    "boolean": "boolean",
    "integer": "int64",
    "number": "float64",
    "string": "string",
    "array": "array",
    "object": "struct",
}
"""Of types that Connect's converter did not write, which names them."""

_DEEPEST = 32


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """A schema, with those that it refers to by name.

    Attributes:
        number: its id in the registry; ``name``: its title.
        document: the schema; ``named``: others by the names that it has for them.
    """

    number: int
    name: str
    document: Mapping[str, Any]
    named: Mapping[str, Any]

    @staticmethod
    def of(number: int, registered: RegisteredSchema) -> JsonSchema:
        """The schema of an id.

        Raises:
            ValueError, TypeError, RecursionError: it is no JSON, or no object.
        """
        if registered.kind != "JSON":
            raise TypeError(f"a schema of {registered.kind}")
        document = _object(registered.text)
        named: dict[str, Any] = {}

        def walk(schema: RegisteredSchema) -> None:
            for each in schema.references:
                walk(each)
                found = _object(each.text)
                named[each.name] = found
                if isinstance(found.get("$id"), str):
                    named[found["$id"]] = found

        walk(registered)
        return JsonSchema(number, str(document.get("title") or ""), document, named)

    def value(self, message: bytes, where: str) -> dict[str, Any]:
        """The object that *message* holds behind its header.

        Raises:
            UnsupportedEvent: it is no JSON, or no object.
        """
        try:
            found = parsed(message[HEADER_BYTES:], exact=True)
        except (ValueError, RecursionError) as error:
            raise self._unlike(where, f"broken JSON: {error}") from None
        if not isinstance(found, dict):
            raise self._unlike(where, "a payload that is no object")
        return found

    def _unlike(self, where: str, found: str) -> UnsupportedEvent:
        return UnsupportedEvent(
            "a message cannot be read by the schema that it names",
            where=where,
            expected=f"an object of JSON of schema {self.number}, {self.name or 'without a title'}",
            found=found,
            next_step="look at what wrote it; source.unreadable: dead_letter reads on",
        )

    def fields(self, part: str = "") -> list[dict[str, Any]]:
        """The fields of the object, or of the object in its property *part*, in Connect's words and order.

        Raises:
            KeyError, TypeError, ValueError: there is none.
        """
        schema, base, _ = self._branch(self.document, self.document)
        if part:
            schema, base, _ = self._branch(schema["properties"][part], base)
        return self._fields(schema, base)

    def _fields(self, schema: Mapping[str, Any], base: Mapping[str, Any]) -> list[dict[str, Any]]:
        wanted = {str(name) for name in schema.get("required") or ()}
        found = [
            (self._field(name, kind, base, is_required=not wanted or name in wanted), self._index(kind, number))
            for number, (name, kind) in enumerate(schema["properties"].items())
        ]
        return [field for field, _ in sorted(found, key=lambda each: each[1])]

    def _index(self, kind: Mapping[str, Any], number: int) -> int:
        """The place of a property in its row: JSON's objects have no order."""
        index = kind.get("connect.index")
        return index if isinstance(index, int) else number

    def _field(
        self, name: str, kind: Mapping[str, Any], base: Mapping[str, Any], *, is_required: bool
    ) -> dict[str, Any]:
        schema, _, is_optional = self._branch(kind, base)
        parameters = {str(key): str(value) for key, value in (schema.get("connect.parameters") or {}).items()}
        connect = str(schema.get("connect.type") or _PLAIN.get(_type_of(schema), _type_of(schema)))
        found: dict[str, Any] = {"field": name, "type": connect, "optional": is_optional or not is_required}
        if schema.get("title"):
            found["name"] = schema["title"]
        if parameters:
            found["parameters"] = parameters
        default = schema.get("default")
        if default is not None:
            # The converter hands a default over as the library of JSON prints it: bytes as an array of numbers.
            is_body = connect == "bytes" and isinstance(default, list)
            found["default"] = base64.b64encode(bytes(each % 256 for each in default)).decode() if is_body else default
        return found

    def _branch(
        self, kind: Mapping[str, Any], base: Mapping[str, Any], depth: int = 0
    ) -> tuple[Mapping[str, Any], Mapping[str, Any], bool]:
        """The schema of a value that is there, the document that it stands in, and whether it may be null."""
        if depth > _DEEPEST:
            raise ValueError("references that lead nowhere")
        if "$ref" in kind:
            target, document = self._referred(str(kind["$ref"]), base)
            return self._branch(target, document, depth + 1)
        for name in ("oneOf", "anyOf"):
            if isinstance(kind.get(name), list):
                branches = [each for each in kind[name] if _type_of(each) != "null"]
                if len(branches) != 1:
                    return {"type": "union"}, base, len(branches) < len(kind[name])
                schema, document, is_optional = self._branch(branches[0], base, depth + 1)
                return schema, document, is_optional or len(branches) < len(kind[name])
        types = kind.get("type")
        if isinstance(types, list):
            rest = [each for each in types if each != "null"]
            plain = rest[0] if len(rest) == 1 else "union"
            return {**kind, "type": plain}, base, len(rest) < len(types)
        return kind, base, False

    def _referred(self, reference: str, base: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        document, _, path = reference.partition("#")
        found = self.named[document] if document else base
        whole = found
        for step in (each for each in path.split("/") if each):
            found = found[step.replace("~1", "/").replace("~0", "~")]
        if not isinstance(found, dict):
            raise TypeError(f"no schema at {reference}")
        return found, whole


class JsonSchemas:
    """Schemas of one *registry*, each taken apart once. Not for several threads at once."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._held: dict[int, JsonSchema] = {}

    def of(self, message: bytes, where: str) -> JsonSchema:
        """The schema that *message* names.

        Raises:
            UnsupportedEvent: it names none, or one that the registry does not have, or that is no JSON Schema.
            RegistryDown, SourceError: as :class:`connectors.readers.kafka.registry.client.SchemaRegistry` has them.
        """
        number = schema_id(message, where)
        held = self._held.get(number)
        if held is not None:
            return held
        registered = self._registry.schema_named(number, where)
        try:
            held = self._held[number] = JsonSchema.of(number, registered)
        except (ValueError, TypeError, RecursionError) as error:
            raise UnsupportedEvent(
                "a message names a schema that is no JSON Schema of an object",
                where=f"{where}, schema {number} at {self._registry.settings.url}",
                found=str(error),
                next_step="correct source.topics, or source.format",
            ) from None
        return held


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError("a schema that is no object")
    return found


def _type_of(schema: Any) -> str:
    return str(schema.get("type")) if isinstance(schema, dict) else ""
