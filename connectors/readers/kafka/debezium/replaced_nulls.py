"""NULLs in whose place a converter wrote the column's default (``replace.null.with.default``), which nothing tells from the default itself."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from itertools import repeat
from struct import pack
from typing import TYPE_CHECKING, Any

from historian.errors import UnsupportedEvent

if TYPE_CHECKING:
    from connectors.readers.kafka.messages.events import Event, RowSchema

__all__ = ["MARK", "check_defaults", "has_nullable_defaults", "is_marked"]

MARK = "false"
"""Of a change of the log Debezium leaves ``source.snapshot`` NULL, and its default is this text: who wrote it here writes defaults for NULLs."""

_FLOATS = {"float": "<f", "float32": "<f", "double": "<d", "float64": "<d"}
"""Types whose values are as coarse as these. A default of JSON is a double, of a DECIMAL too."""


def is_marked(source: Mapping[str, Any]) -> bool:
    """Whether the converter of a message writes defaults in the place of NULLs. Rows of a snapshot do not tell."""
    return source.get("snapshot") == MARK


def has_nullable_defaults(schema: RowSchema) -> bool:
    """Whether a row may have a default where it had a NULL."""
    return any(field.default is not None for field in schema.fields)


def check_defaults(event: Event, where: str) -> None:
    """Refuses an event with a row that may have had a NULL.

    Raises:
        UnsupportedEvent: a nullable column has its default.
    """
    if not event.may_lack_nulls:
        return
    rows = [row for row in (event.before, event.after) if row]
    for field in event.schema.fields:
        name, default = field.column.name, field.default
        if default is not None and any(_may_be(row.get(name), default, field.type) for row in rows):
            raise UnsupportedEvent(
                "a value that may be NULL at the source: the converter writes a column's default in the place of NULL",
                where=f"{event.table}.{name} at {where}",
                expected="value.converter.replace.null.with.default=false (Confluent's Avro: ignore.default.for.nullables=true)",
                found=f"the default {default!r} of a nullable column",
                next_step="set it at the connector, and have it write its topics anew; or source.debezium.nulls_as_defaults: accept, where such columns have no NULLs",
            )


def _may_be(value: Any, default: Any, kind: str) -> bool:
    """Whether *value* is a *default*, as far as both are told: refusing too much is right here."""
    if value == default:
        return True
    if isinstance(value, bytes):
        return default in (base64.b64encode(value).decode(), value.decode("latin-1"))
    # Of what is within a value the type is not told: the coarsest one.
    if isinstance(value, dict) and isinstance(default, dict):
        return value.keys() == default.keys() and all(_may_be(value[each], default[each], "float") for each in value)
    if isinstance(value, list) and isinstance(default, list):
        return len(value) == len(default) and all(map(_may_be, value, default, repeat("float")))
    if kind not in _FLOATS and not isinstance(default, float):
        return False
    try:
        return pack(_FLOATS.get(kind, "<d"), float(value)) == pack(_FLOATS.get(kind, "<d"), float(default))
    except (TypeError, ValueError, OverflowError):
        return False
