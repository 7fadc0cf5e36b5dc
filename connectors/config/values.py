"""Small texts of a configuration: sizes, durations, ranges of server ids."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass

__all__ = [
    "ONCE",
    "ServerIds",
    "parse_address",
    "parse_bytes",
    "parse_duration_s",
    "parse_retry_s",
    "parse_server_ids",
    "server_ids_of",
]

ONCE = "once"
"""The trigger that ends a run at what the log holds when it starts."""

_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SECONDS = {
    "ms": 1e-3,
    "millisecond": 1e-3,
    "s": 1.0,
    "second": 1.0,
    "m": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
}
_RETRY_S = {"forever": math.inf, "never": 0.0}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")
_SERVER_IDS = re.compile(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?")
_HIGHEST_PORT = 65_535
_HIGHEST_SERVER_ID = 2**32 - 1
_DERIVED_FIRST = 1_000_000_000
_DERIVED_SIZE = 100
_DERIVED_RANGES = 30_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIds:
    """Server ids that our connections use, both ends included; prints as ``5400-5499``."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def parse_bytes(text: str | int) -> int:
    """A size in bytes; MB is a million bytes, MiB 2**20.

    >>> parse_bytes("256 MB"), parse_bytes("1.5 KiB"), parse_bytes(4096)
    (256000000, 1536, 4096)
    """
    if isinstance(text, int):
        size_bytes = text
    else:
        match = _QUANTITY.fullmatch(text)
        factor = _BYTES.get(match[2].lower()) if match else None
        if match is None or factor is None:
            raise ValueError(f"expected a size such as 256 MB (units: {', '.join(_BYTES)})")
        size = float(match[1]) * factor
        if math.isinf(size):
            raise ValueError("expected a size that is a number")
        size_bytes = round(size)
    if size_bytes < 1:
        raise ValueError("expected a size above zero")
    return size_bytes


def parse_duration_s(text: str) -> float:
    """A duration in seconds.

    >>> parse_duration_s("2 seconds"), parse_duration_s("1.5 minutes"), parse_duration_s("250ms")
    (2.0, 90.0, 0.25)
    """
    match = _QUANTITY.fullmatch(text)
    unit = match[2].lower() if match else ""
    factor = _SECONDS.get(unit) or _SECONDS.get(unit.removesuffix("s"))
    if match is None or factor is None:
        raise ValueError("expected a duration such as 2 seconds (units: ms, seconds, minutes, hours)")
    duration_s = float(match[1]) * factor
    if math.isinf(duration_s):
        raise ValueError("expected a duration that is a number")
    return duration_s


def parse_address(text: str | int) -> tuple[str, int]:
    """A host and a port to listen at; a port alone is one of this machine's loopback.

    >>> parse_address("127.0.0.1:9464"), parse_address(9464), parse_address("[::1]:80")
    (('127.0.0.1', 9464), ('127.0.0.1', 9464), ('::1', 80))
    """
    host, colon, port = str(text).rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > _HIGHEST_PORT:
        raise ValueError("expected HOST:PORT such as 127.0.0.1:9464")
    return host, int(port)


def parse_retry_s(text: str | int) -> float:
    """How long attempts may fail, in seconds.

    >>> parse_retry_s("10 minutes"), parse_retry_s("never"), parse_retry_s("forever")
    (600.0, 0.0, inf)
    """
    if text in _RETRY_S:
        return _RETRY_S[str(text)]
    try:
        return parse_duration_s(str(text))
    except ValueError:
        raise ValueError("expected forever, never, or a duration such as 10 minutes") from None


def parse_server_ids(text: str | int) -> ServerIds:
    """One server id, or a range of them.

    >>> parse_server_ids("5400-5499")
    ServerIds(first=5400, last=5499)
    """
    match = _SERVER_IDS.fullmatch(str(text))
    if match is None:
        raise ValueError("expected a number or a range of numbers such as 5400-5499")
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= first <= last <= _HIGHEST_SERVER_ID:
        raise ValueError(f"expected ids from 1 to {_HIGHEST_SERVER_ID}, the lower one first")
    return ServerIds(first=first, last=last)


def server_ids_of(name: str) -> ServerIds:
    """The range of a connector of that *name* by default: a hundred ids above a billion, the same at every start."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % _DERIVED_RANGES
    first = _DERIVED_FIRST + number * _DERIVED_SIZE
    return ServerIds(first=first, last=first + _DERIVED_SIZE - 1)
