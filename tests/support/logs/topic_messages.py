"""Messages of topics as goldens have them: texts, bytes, and records of Avro with the schemas that a registry has for them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from fastavro import parse_schema, schemaless_writer

from connectors.readers.kafka.avro.writers import Writers
from connectors.readers.kafka.messages.json_texts import json_text
from connectors.readers.kafka.registry.client import RegisteredSchema, RegistrySettings, SchemaRegistry

__all__ = ["RecordedRegistry", "body", "recorded_writers"]


class RecordedRegistry(SchemaRegistry):
    """A registry in memory: schemas by id as a registry's answers have them, or the schemas of Avro alone."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        super().__init__(RegistrySettings(url="http://recorded"))
        self.recorded = schemas

    def schema(self, number: int) -> RegisteredSchema | None:
        found = self.recorded.get(str(number))
        if found is None:
            return None
        whole = found if isinstance(found, dict) and "schema" in found else {"schema": found}
        references = [self.schema(each) for each in whole.get("references", ())]
        text = whole["schema"] if isinstance(whole["schema"], str) else json.dumps(whole["schema"], default=float)
        return RegisteredSchema(
            kind=whole.get("schemaType", "AVRO"),
            text=text,
            references=tuple(each for each in references if each),
            name=whole.get("name", "") if "schemaType" in whole else "",
        )


def recorded_writers(case: Mapping[str, Any]) -> Writers | None:
    """What decoders are given of the ``registry`` of a golden; None where it has none."""
    return Writers(RecordedRegistry(case["registry"])) if "registry" in case else None


def body(part: Any, registry: Mapping[str, Any]) -> bytes | None:
    """The bytes of a key or value: a text as it is, ``hex``, a ``record`` of Avro or ``json`` under the ``schema`` of an id; else JSON."""
    if part is None or isinstance(part, str):
        return None if part is None else part.encode()
    if isinstance(part, dict) and part.keys() == {"hex"}:
        return bytes.fromhex(part["hex"])
    if isinstance(part, dict) and part.keys() == {"schema", "json"}:
        return b"\0" + int(part["schema"]).to_bytes(4, "big") + json_text(part["json"]).encode()
    if isinstance(part, dict) and part.keys() == {"schema", "record"}:
        out = io.BytesIO()
        plain = json.dumps(registry[str(part["schema"])], default=float).replace('"logicalType"', '"logical"')
        schemaless_writer(out, parse_schema(json.loads(plain)), _as_avro(part["record"]))
        return b"\0" + int(part["schema"]).to_bytes(4, "big") + out.getvalue()
    return json_text(part).encode()


def _as_avro(part: Any) -> Any:
    """A part of a record as the library writes it."""
    if isinstance(part, dict):
        if part.keys() == {"bytes"}:
            return bytes.fromhex(part["bytes"])
        return {name: _as_avro(each) for name, each in part.items()}
    return float(part) if isinstance(part, Decimal) else part
