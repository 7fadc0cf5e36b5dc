"""Where a change or a statement stands in the log of its server, as Debezium's messages of MySQL and MariaDB tell it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "FILE_LIMIT",
    "INTEGER_LIMIT",
    "NOTHING",
    "NO_PLACE",
    "Newest",
    "SourcePlace",
    "hash_of_names",
    "numbers_of",
    "payload_in_json",
    "place_of",
    "split_number",
]

_MASK = (1 << 64) - 1
_FIRST, _PRIME = 14695981039346656037, 1099511628211
_FILE_AT = 32
_BY_SECOND = "s"
FILE_LIMIT = 1 << 31
"""No server numbers its files so far."""
INTEGER_LIMIT = 1 << 63
"""No integer of a source is so great."""
NO_PLACE = (0, 0, 0, 0, 0, 0)
"""Of a row that tells none."""


class SourcePlace(NamedTuple):
    """Where a statement stands in the log of a server, whose files are called ``base`` and a number.

    Attributes:
        server: the id of that which executed it; "": it is not told.
        gtid: of its transaction; "": it has none that ends with a number.
        by_second: its time was told by the second.
    """

    server: str
    base: str
    digits: str
    offset: int
    gtid: str = ""
    by_second: bool = False

    @classmethod
    def of(cls, source: Any) -> SourcePlace | None:
        """That of a message's ``source``; None where it tells none."""
        try:
            base, digits = split_number(source["file"])
            offset, server, gtid = source["pos"], source.get("server_id"), source.get("gtid")
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        if type(offset) is not int or not 0 <= offset < INTEGER_LIMIT or int(digits) >= FILE_LIMIT:
            return None
        # A snapshot reads no log that names one: its rows have the id 0.
        told = str(server) if type(server) is int and server else ""
        return cls(told, base, digits, offset, gtid if _ends_with_number(gtid) else "")

    @classmethod
    @lru_cache(maxsize=65_536)
    def parsed(cls, text: str) -> SourcePlace:
        """Of what :meth:`__str__` gives. Raises ValueError for another text."""
        server, _, rest = text.partition("/")
        gtid, _, rest = rest.partition("/")
        file, _, offset = rest.rpartition(":")
        place = cls(server, *split_number(file), int(offset.removesuffix(_BY_SECOND)), gtid)
        return place._replace(by_second=offset.endswith(_BY_SECOND))

    def __str__(self) -> str:
        place = f"{self.server}/{self.gtid}/{self.base}{self.digits}:{self.offset}"
        return place + _BY_SECOND if self.by_second else place

    @property
    def log(self) -> int:
        """As :func:`hash_of_names`."""
        return hash_of_names(self.base, self.server)

    @property
    def unnamed_log(self) -> int:
        """As :attr:`log` of what names no server."""
        return hash_of_names(self.base, "")

    @property
    def at(self) -> int:
        """A number that is greater for what stands behind, in the same log."""
        return (int(self.digits) << _FILE_AT) + min(self.offset, (1 << _FILE_AT) - 1)

    @property
    def transaction(self) -> tuple[int, int]:
        """A hash of the server, and the transaction's number, as :func:`.kernels.sources.source_places` has them of rows."""
        if not self.gtid:
            return self.unnamed_log, self.at
        server, digits = split_number(self.gtid)
        return hash_of_names(server, self.base), int(digits)


class Newest(NamedTuple):
    """Of the newest change the server, the transaction's number, and the place as a number; the latest time of all, UTC microseconds."""

    server: int
    number: int
    place: int
    time_us: int


NOTHING = Newest(0, 0, 0, 0)
"""Where no change came."""


def numbers_of(files: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of files, by their numbers, and offsets in them numbers that are greater for what stands behind."""
    return (files << _FILE_AT) + np.minimum(offsets, (1 << _FILE_AT) - 1)


def payload_in_json(value: bytes) -> Any:
    """What a message in JSON holds, with its schema inline or without. Raises ValueError, AttributeError and RecursionError where it is no object."""
    message = json.loads(value)
    return message["payload"] if isinstance(message.get("payload"), dict) else message


def place_of(value: bytes, payload_of: Callable[[bytes], Any] = payload_in_json) -> list[int] | None:
    """Where a message tells that its change stands; None: it tells none.

    These are 1, the file's number, the offset, the log, and the server and the number of the transaction. Both are 0 of a snapshot, which has none.

    Args:
        payload_of: gives what a message holds, as its format is read.
    """
    try:
        payload = payload_of(value)
        place, op = SourcePlace.of(payload["source"]), payload.get("op")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if place is None:
        return None
    return [1, int(place.digits), place.offset, place.log, *((0, 0) if op == "r" else place.transaction)]


@lru_cache(maxsize=1024)
def hash_of_names(first: str, second: str) -> int:
    """The FNV-1a hash of two texts, as a signed number."""
    found = _FIRST
    for byte in (first + second).encode():
        found = (found ^ byte) * _PRIME & _MASK
    return found - (1 << 64) if found >> 63 else found


def split_number(text: str) -> tuple[str, str]:
    """A text and the digits with which it ends. Raises ValueError where there are none, or too many."""
    base = text.rstrip("0123456789")
    digits = text[len(base) :]
    if not 0 < len(digits) <= 18:
        raise ValueError(text)
    return base, digits


def _ends_with_number(text: Any) -> bool:
    try:
        return isinstance(text, str) and bool(split_number(text))
    except ValueError:
        return False
