"""Moments by which a place in a log is asked, as text with a zone."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

__all__ = ["moment_us"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def moment_us(text: str) -> int | None:
    """UTC microseconds of an ISO 8601 moment; None where *text* is none, or has no zone.

    >>> moment_us("2026-11-01T00:00:00Z")
    1793491200000000
    >>> moment_us("2026-11-01 01:00:00+01:00")
    1793491200000000
    """
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return None if moment.tzinfo is None else (moment - _EPOCH) // timedelta(microseconds=1)
