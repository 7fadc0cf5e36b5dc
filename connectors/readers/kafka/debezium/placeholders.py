"""What stands for a value that a change did not change and the source's log does not hold: PostgreSQL's TOAST, LOBs of Oracle."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

__all__ = ["Placeholders", "placeholders_of"]

_OCTETS = "hex:"


@dataclass(frozen=True, slots=True)
class Placeholders:
    """How a connector writes it: ``in_json`` of text, bytes and UUIDs, of arrays of them and of numbers, of an hstore; ``anywhere``: in Avro too."""

    in_json: tuple[Any, ...]
    anywhere: tuple[Any, ...]

    def lacking(self, row: Mapping[str, Any]) -> list[str]:
        """The names of fields in which it stands."""
        return [
            name
            for name, value in row.items()
            if isinstance(value, str | bytes | list | dict) and value in self.anywhere
        ]


@lru_cache
def placeholders_of(configured: str) -> Placeholders:
    """Those of a connector with that ``unavailable.value.placeholder``: a text, or ``hex:`` and octets. ValueError where these are none."""
    is_hex = configured.startswith(_OCTETS)
    octets = bytes.fromhex(configured[len(_OCTETS) :]) if is_hex else configured.encode()
    text = octets.decode("utf-8", "replace")
    bodies = dict.fromkeys(
        (base64.b64encode(octets).decode(), base64.urlsafe_b64encode(octets).decode(), octets.hex())
    )  # as binary.handling.mode says
    named = str(uuid.UUID(bytes=hashlib.md5(octets, usedforsecurity=False).digest(), version=3))
    numbers = [each - 256 if each > 127 else each for each in octets]  # as bytes of Java
    in_json = (text, named, [text], [named], numbers, {text: text}, *bodies, *([body] for body in bodies))
    return Placeholders(in_json, (*in_json, octets, [octets]))
