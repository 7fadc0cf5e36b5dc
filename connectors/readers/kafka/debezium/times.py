"""When the source changed a row, as an envelope tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from historian.errors import UnsupportedEvent

__all__ = ["LAST_US", "time_us"]

LAST_US = 2**62
"""No time of a source is further from 1970, in either direction."""


def time_us(source: Mapping[str, Any], where: str, unlike: Callable[[str, str], UnsupportedEvent]) -> int:
    """The time of an envelope's ``source``, UTC microseconds; 0 where it has none.

    Raises:
        UnsupportedEvent: it is none.
    """
    exact = source.get("ts_us")
    time, unit_us = (exact, 1) if exact is not None else (source.get("ts_ms") or 0, 1000)
    if not isinstance(time, int) or abs(time * unit_us) > LAST_US:
        raise unlike(where, "a time of the source that is none")
    return time * unit_us
