"""A record of Avro as the schema of Kafka Connect that its converter made it of, in the words of Connect's own JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

__all__ = ["LOGICAL", "fields_of"]

LOGICAL = "connect.logical"
"""Where a type has what it names as ``logicalType``, which would have values read otherwise than they are written."""

_PLAIN = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "string": "string",
    "bytes": "bytes",
    "fixed": "bytes",
    "enum": "string",
    "array": "array",
    "map": "map",
    "record": "struct",
}
_MEANINGS = {
    "decimal": "org.apache.kafka.connect.data.Decimal",
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-millis": "io.debezium.time.Timestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
}
"""Of types that Connect's converter did not write, which names them."""


def fields_of(record: Mapping[str, Any], names: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields of *record*, as ``fields`` of a ``struct`` in JSON. A type that no field can have is named as it is.

    Args:
        names: definitions of the types that are referred to by their full names.

    Raises:
        KeyError, TypeError, ValueError: it is no record.
    """
    return [_field(each, names) for each in record["fields"]]


def _field(field: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    kind, is_optional = _branch(field["type"])
    found = _type(kind, names)
    default = field.get("default")
    if default is None and isinstance(kind, Mapping):
        default = kind.get("connect.default")
    if default is not None:
        # JSON of Avro has bytes as the characters of their numbers.
        is_body = found["type"] == "bytes" and isinstance(default, str)
        found["default"] = base64.b64encode(default.encode("latin-1")).decode() if is_body else default
    return {**found, "optional": is_optional, "field": field["name"]}


def _branch(kind: Any) -> tuple[Any, bool]:
    """The type of a field, and whether it may be null; a union of several types is what it is."""
    if not isinstance(kind, list):
        return kind, False
    branches = [each for each in kind if each != "null"]
    return (branches[0] if len(branches) == 1 else "union"), len(branches) < len(kind)


def _type(kind: Any, names: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(kind, str):
        known = names.get(kind)
        return {"type": _PLAIN.get(kind, kind)} if known is None else _type(known, names)
    name = str(kind["type"])
    logical = str(kind.get(LOGICAL) or "")
    parameters = dict(kind.get("connect.parameters") or {})
    if logical == "decimal":
        parameters.setdefault("scale", str(kind.get("scale", 0)))
        parameters.setdefault("connect.decimal.precision", str(kind.get("precision", 38)))
    found: dict[str, Any] = {"type": kind.get("connect.type") or _PLAIN.get(name, name)}
    meaning = kind.get("connect.name") or _MEANINGS.get(logical)
    if meaning:
        found["name"] = meaning
    if parameters:
        found["parameters"] = parameters
    return found
