"""JSON as values, with all digits of its numbers where that is wanted."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import orjson

__all__ = ["parsed"]

_HALVES = b"\\ud"


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


_EXACTLY: dict[str, Any] = {"parse_float": Decimal, "parse_constant": _no_number}


def parsed(text: bytes, *, exact: bool) -> Any:
    """The value of a JSON text.

    Args:
        exact: numbers with a fraction are decimals; else binary floats, which have not all digits of a DECIMAL.

    Raises:
        ValueError, RecursionError: it is none.
    """
    if not exact:
        return orjson.loads(text)
    found = json.loads(text, **_EXACTLY)
    if _HALVES in text:
        orjson.loads(text)  # refuses halves of a character, which no text may have
    return found
