"""TiDB's timestamps: milliseconds since 1970, and behind them 18 bits that tell apart what happened in one."""

from __future__ import annotations

from typing import Any

__all__ = ["time_us"]

_LOGICAL_BITS = 18
_LAST = 2**63


def time_us(timestamp: Any) -> int:
    """When something was committed, UTC microseconds.

    Raises:
        ValueError: it is no timestamp.
    """
    if not isinstance(timestamp, int) or isinstance(timestamp, bool) or not 0 <= timestamp < _LAST:
        raise ValueError(f"no timestamp: {timestamp!r}")
    return (timestamp >> _LOGICAL_BITS) * 1000
