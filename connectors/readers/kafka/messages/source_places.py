"""Where a change or a statement stands in the log of its server, as Debezium's messages of MySQL and MariaDB tell it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NO_PLACE", "SourcePlace", "numbers_of", "place_of"]

_MASK = (1 << 64) - 1
_FIRST, _PRIME = 14695981039346656037, 1099511628211
_FILE_AT = 32
NO_PLACE = (0, 0, 0, 0)
"""Of a row that tells none."""


class SourcePlace(NamedTuple):
    """Where a statement stands in the log of a server, whose files are called ``base`` and a number."""

    server: str
    base: str
    digits: str
    offset: int

    @classmethod
    def of(cls, source: Any) -> SourcePlace | None:
        """That of a message's ``source``; None where it tells none."""
        try:
            base, digits = _split(source["file"])
            offset, server = source["pos"], source.get("server_id")
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        if type(offset) is not int or offset < 0:
            return None
        return cls("" if type(server) is not int else str(server), base, digits, offset)

    @classmethod
    def parsed(cls, text: str) -> SourcePlace:
        """Of what :meth:`__str__` gives. Raises ValueError for another text."""
        server, _, rest = text.partition("/")
        file, _, offset = rest.rpartition(":")
        return cls(server, *_split(file), int(offset))

    def __str__(self) -> str:
        return f"{self.server}/{self.base}{self.digits}:{self.offset}"

    @property
    def log(self) -> int:
        """As :func:`_log_of`."""
        return _log_of(self.base, self.server)

    @property
    def at(self) -> int:
        """A number that is greater for what stands behind, in the same log."""
        return int(numbers_of(np.array([int(self.digits)]), np.array([self.offset]))[0])


def numbers_of(files: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of files, by their numbers, and offsets in them numbers that are greater for what stands behind."""
    return (files << _FILE_AT) + np.minimum(offsets, (1 << _FILE_AT) - 1)


def place_of(value: bytes) -> list[int] | None:
    """Where a message in JSON tells that its change stands: 1, the file's number, the offset, and the log as :func:`_log_of`; None: it tells none."""
    try:
        message: Any = json.loads(value)
        payload = message["payload"] if isinstance(message.get("payload"), dict) else message
        place = SourcePlace.of(payload["source"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return None if place is None else [1, int(place.digits), place.offset, place.log]


def _log_of(first: str, second: str) -> int:
    """The FNV-1a hash of two texts, as a signed number."""
    found = _FIRST
    for byte in (first + second).encode():
        found = (found ^ byte) * _PRIME & _MASK
    return found - (1 << 64) if found >> 63 else found


def _split(text: str) -> tuple[str, str]:
    """A text and the digits with which it ends. Raises ValueError where there are none, or too many."""
    base = text.rstrip("0123456789")
    digits = text[len(base) :]
    if not 0 < len(digits) <= 18:
        raise ValueError(text)
    return base, digits
