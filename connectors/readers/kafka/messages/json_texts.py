"""JSON values as text."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

__all__ = ["json_text"]


_DEEPEST = 300
"""Levels of a document. MySQL has a hundred; Python's own limit would depend on who asks."""


def json_text(value: Any) -> str:
    """A JSON value as MySQL prints it: a blank behind commas and colons, numbers with the digits that they came with.

    Raises:
        ValueError: it is nested more than 300 levels deep.

    >>> json_text({"a": [1, Decimal("2.50"), None]})
    '{"a": [1, 2.50, null]}'
    """
    return _text(value, _DEEPEST)


def _text(value: Any, levels: int) -> str:
    if isinstance(value, (dict, list)) and not levels:
        raise ValueError(f"a document is nested more than {_DEEPEST} levels deep")
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key, ensure_ascii=False)}: {_text(held, levels - 1)}" for key, held in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([_text(held, levels - 1) for held in value]) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
