"""Schemas of Delta tables as values: columns under Delta's names, types and ids, and what types hold and widen to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from historian.changelog.missing_columns import NAMES_TYPE
from historian.changelog.operations import column_id
from historian.schema.snapshots import Column
from historian.values.arrow_types import arrow_type
from sinks.rows.variant import VARIANT, is_variant

__all__ = ["DeltaField", "DeltaSchema", "delta_type", "mapped_field", "plain_schema", "widens"]

_ID = "delta.columnMapping.id"
_PHYSICAL = "delta.columnMapping.physicalName"
_SINCE = "historian.since"
_INTEGERS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
"""Delta's integer types, and the digits before the point of a decimal that Delta widens them to."""

_ARROW: dict[str, pa.DataType] = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "array<string>": NAMES_TYPE,
    "variant": VARIANT,
}
_DELTA = {arrow: name for name, arrow in _ARROW.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaField:
    """One column of a Delta table; ``metadata`` is kept as the table has it."""

    name: str
    type: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    nullable: bool = True

    @property
    def physical(self) -> str:
        """The column's name in files."""
        return str(self.metadata.get(_PHYSICAL, self.name))

    @property
    def column_id(self) -> int | None:
        """The id of the history's column; None for a system column."""
        physical = str(self.metadata.get(_PHYSICAL, ""))
        return column_id(physical) if physical[:1] == "h" and physical[1:].isdigit() else None

    @property
    def delta_id(self) -> int:
        """Delta's own id of the column; 0 in a table without column mapping."""
        return int(self.metadata.get(_ID, 0))

    @property
    def since(self) -> int:
        """The schema version that brought the column; 0 where it was there from the table's first version."""
        return int(self.metadata.get(_SINCE, 0))

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of the column's values in files."""
        if self.type.startswith("decimal"):
            return pa.decimal128(*_decimal(self.type))
        return _ARROW[self.type]


@dataclass(frozen=True, slots=True)
class DeltaSchema:
    """The columns of a Delta table, in order.

    *last_id*: the highest Delta id that a column of the table ever had, as far as is known; new ones are higher.
    """

    fields: tuple[DeltaField, ...]
    last_id: int = field(default=0, compare=False)

    @classmethod
    def parse(cls, text: str, last_id: int = 0) -> DeltaSchema:
        """The schema of Delta's JSON text."""
        return cls(
            tuple(
                DeltaField(name=f["name"], type=_type_name(f["type"]), metadata=f["metadata"], nullable=f["nullable"])
                for f in json.loads(text)["fields"]
            ),
            last_id,
        )

    def json(self) -> str:
        """Delta's JSON text."""
        return json.dumps(_struct([(f.name, f) for f in self.fields]))

    def physical(self) -> dict[str, Any]:
        """The same under the names that files have, as a dictionary."""
        return _struct([(f.physical, f) for f in self.fields])

    def arrow(self) -> pa.Schema:
        """The schema of the table's files."""
        return pa.schema(
            [
                pa.field(
                    f.physical,
                    f.arrow,
                    f.nullable,
                    {"PARQUET:field_id": str(f.metadata[_ID])} if _ID in f.metadata else {},
                )
                for f in self.fields
            ]
        )

    def names(self) -> list[str]:
        """The columns' names, in order."""
        return [f.name for f in self.fields]

    def by_id(self, column_id: int) -> DeltaField | None:
        """The field of the history's column with that id."""
        return next((f for f in self.fields if f.column_id == column_id), None)

    def unlike(self, held: DeltaSchema) -> DeltaSchema | None:
        """The schema for a commit to a table that has *held*: None where names, types, order and ids are the same.

        What Delta notes of earlier types does not count.
        """
        mine, theirs = ([(f.name, f.type, f.physical) for f in one.fields] for one in (self, held))
        return None if mine == theirs else self


def mapped_field(name: str, kind: str, delta_id: int, physical: str, since: int = 0) -> DeltaField:
    """A column under Delta's column mapping: type *kind*, its name in files, and the schema version that brings it."""
    noted = {_SINCE: str(since)} if since else {}
    return DeltaField(name=name, type=kind, metadata={_ID: delta_id, _PHYSICAL: physical, **noted})


def plain_schema(**columns: str) -> DeltaSchema:
    """A schema without column mapping: name to Delta type."""
    return DeltaSchema(tuple(DeltaField(name=name, type=kind) for name, kind in columns.items()))


def delta_type(column: Column) -> str:
    """Delta's name of the type that holds every value of *column*."""
    if is_variant(column.type):
        return "variant"
    arrow = arrow_type(column.type)
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    return _DELTA[arrow]


def widens(old: str, new: str) -> bool:
    """Whether Delta's type widening turns *old* into *new* without touching files.

    >>> widens("integer", "long"), widens("integer", "decimal(12,2)"), widens("long", "double")
    (True, True, False)
    """
    if old in _INTEGERS and new in _INTEGERS:
        return _INTEGERS[old] <= _INTEGERS[new]
    if old in _INTEGERS and new.startswith("decimal"):
        digits, scale = _decimal(new)
        return digits - scale >= max(_INTEGERS[old], 10)
    if old.startswith("decimal") and new.startswith("decimal"):
        (digits, scale), (new_digits, new_scale) = _decimal(old), _decimal(new)
        return new_scale >= scale and new_digits - new_scale >= digits - scale
    return (old, new) in {
        ("byte", "double"),
        ("short", "double"),
        ("integer", "double"),
        ("float", "double"),
        ("date", "timestamp_ntz"),
    }


def _decimal(kind: str) -> tuple[int, int]:
    digits, scale = kind[len("decimal(") : -1].split(",")
    return int(digits), int(scale)


def _struct(named: list[tuple[str, DeltaField]]) -> dict[str, Any]:
    fields = [
        {"name": name, "type": _TYPES.get(f.type, f.type), "nullable": f.nullable, "metadata": dict(f.metadata)}
        for name, f in named
    ]
    return {"type": "struct", "fields": fields}


_TYPES: dict[str, Any] = {"array<string>": {"type": "array", "elementType": "string", "containsNull": False}}
"""Types that Delta spells out."""


def _type_name(spelled: Any) -> str:
    return next((name for name, form in _TYPES.items() if form == spelled), spelled)
