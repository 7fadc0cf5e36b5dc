"""Bytes in messages."""

from __future__ import annotations

import base64
from typing import Any

__all__ = ["binary"]


def binary(value: Any) -> bytes:
    """The bytes of *value*: of a format that has them, or base64 of one that has text alone.

    Raises:
        TypeError, ValueError: it is neither.
    """
    return value if isinstance(value, bytes) else base64.b64decode(value)
