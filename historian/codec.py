"""Values of the core to JSON and back.

The wire form is what pydantic makes of the dataclasses: field names, or the aliases of renamed fields, as keys, tuples as arrays, edits told apart by
``kind``.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

from pydantic import TypeAdapter

__all__ = ["dump", "dump_short", "load"]

T = TypeVar("T")


_made: dict[Any, TypeAdapter[Any]] = {}
_lock = threading.Lock()


def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Made once, however many threads ask at a time: it takes longer than thousands of its uses."""
    found = _made.get(kind)
    if found is None:
        with _lock:
            found = _made.get(kind)
            if found is None:
                found = _made[kind] = TypeAdapter(kind)
    return found


def dump(kind: Any, value: object) -> str:
    """*value*, of type *kind*, as canonical JSON text: equal values give equal text."""
    return _adapter(kind).dump_json(value, by_alias=True).decode()


def dump_short(kind: Any, value: object) -> str:
    """As :func:`dump`, without fields that have their defaults. A default is part of the stored form: it never changes."""
    return _adapter(kind).dump_json(value, by_alias=True, exclude_defaults=True).decode()


def load(kind: type[T], text: str | bytes) -> T:
    """The value of type *kind* that :func:`dump` or :func:`dump_short` wrote."""
    key: Any = kind  # mypy does not take a type variable's type for hashable
    value: T = _adapter(key).validate_json(text)
    return value
