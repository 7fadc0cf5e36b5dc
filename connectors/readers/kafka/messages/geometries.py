"""Geometries as objects in messages."""

from __future__ import annotations

import struct
from typing import Any

from connectors.readers.kafka.messages.binary import binary

__all__ = ["geometry"]


def geometry(value: Any) -> bytes:
    """The server's own bytes, SRID and then WKB, of Debezium's object with ``wkb`` and ``srid``.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    if not isinstance(value, dict):
        raise TypeError(f"no geometry: {value!r}")
    return struct.pack("<i", value.get("srid") or 0) + binary(value["wkb"])
