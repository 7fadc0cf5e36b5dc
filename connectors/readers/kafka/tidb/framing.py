"""The events of a message of TiCDC's open protocol: its key and its value are parts behind each other, each with its length before it."""

from __future__ import annotations

from typing import Any

from connectors.readers.kafka.messages.parsing import parsed

__all__ = ["pairs_of"]

_VERSION = 1


def pairs_of(key: bytes, value: bytes) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The keys and values of a message's events. ValueError or TypeError where it has none."""
    keys = _parts(key[8:])
    if int.from_bytes(key[:8], "big") != _VERSION or not keys:
        raise ValueError("no version 1 of the protocol")
    values = _parts(value) or [b""] * len(keys)
    if len(values) != len(keys):
        raise ValueError(f"{len(keys)} keys and {len(values)} values")
    return [(_object(each), _object(body) if body else {}) for each, body in zip(keys, values, strict=True)]


def _parts(body: bytes) -> list[bytes]:
    """What stands behind each other, each with its length before it."""
    found, at = list[bytes](), 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 8], "big", signed=True)
        if size < 0 or at + 8 + size > len(body):
            raise ValueError("a length that leads beyond the end")
        found.append(body[at + 8 : at + 8 + size])
        at += 8 + size
    return found


def _object(text: bytes) -> dict[str, Any]:
    found = parsed(text, exact=True)
    if not isinstance(found, dict):
        raise TypeError("no object")
    return found
