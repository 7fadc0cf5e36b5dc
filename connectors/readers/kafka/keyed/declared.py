"""Fields of a record that declare what their columns are in the database, beside what Kafka Connect would say of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from connectors.readers.kafka.debezium.schemas import labels_of
from connectors.readers.kafka.messages.events import Field
from historian.schema.snapshots import Column, ColumnType

__all__ = ["DeclaredTypes", "declared_fields"]

_SCALE, _PRECISION = "scale", "connect.decimal.precision"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTypes:
    """The parameters by which fields declare types.

    Attributes:
        name: of the type, and ``names``: types by it; one that is not among them is what it is called.
        labels: of an ENUM or SET, a comma between two; ``length``: of a BIT.
    """

    name: str
    names: Mapping[str, ColumnType]
    labels: str
    length: str


def declared_fields(told: Iterable[Mapping[str, Any]], key: Collection[str], types: DeclaredTypes) -> tuple[Field, ...]:
    """The fields of a record in Connect's words, as their parameters declare them.

    Args:
        key: names of the columns that are the key.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: one declares nothing, or something else.
    """
    return tuple(_field(each, types, is_key=each["field"] in key) for each in told)


def _field(told: Mapping[str, Any], types: DeclaredTypes, *, is_key: bool) -> Field:
    parameters = told.get("parameters") or {}
    if types.name not in parameters:
        raise ValueError(f"`{told['field']}` without `{types.name}`")
    kind = _type(parameters, types)
    column = Column(id=0, name=str(told["field"]), type=kind, nullable=not is_key and bool(told["optional"]))
    return Field(column=column, type="", name="", parameters={})


def _type(parameters: Mapping[str, Any], types: DeclaredTypes) -> ColumnType:
    name = str(parameters[types.name])
    found = types.names.get(name) or ColumnType(name=name.lower())
    if found.name in ("enum", "set"):
        return replace(found, labels=labels_of(str(parameters[types.labels])))
    if found.name == "bit":
        return replace(found, length=int(parameters[types.length]))
    if found.name == "decimal" and _PRECISION in parameters:  # as text it has no digits that are told
        return replace(found, precision=int(parameters[_PRECISION]), scale=int(parameters[_SCALE]))
    return found
