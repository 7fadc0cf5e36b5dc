"""JSON values as text."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

__all__ = ["json_text"]


def json_text(value: Any) -> str:
    """A JSON value as MySQL prints it: a blank behind commas and colons, numbers with the digits that they came with.

    >>> json_text({"a": [1, Decimal("2.50"), None]})
    '{"a": [1, 2.50, null]}'
    """
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {json_text(v)}" for key, v in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
