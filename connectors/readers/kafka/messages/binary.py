"""Bytes in messages."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

__all__ = ["binary", "encoded"]


def binary(value: Any) -> bytes:
    """The bytes of *value*: of a format that has them, or base64 of one that has text alone.

    Raises:
        TypeError, ValueError: it is neither.
    """
    return value if isinstance(value, bytes) else base64.b64decode(value)


def encoded(mode: str) -> Callable[[Any], bytes]:
    """What reads the bytes of texts that Debezium writes by its ``binary.handling.mode``: "base64", "base64-url-safe" or "hex".

    It raises TypeError or ValueError where a text has none.
    """
    if mode == "hex":
        return bytes.fromhex
    signs = b"-_" if mode == "base64-url-safe" else None
    return lambda value: base64.b64decode(value, altchars=signs, validate=True)
