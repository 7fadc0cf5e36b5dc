"""What a connector's state says of positions and lag, in words: the same on the page and on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["LAG_UNITS", "lag_text", "place_form"]

LAG_UNITS = ("transactions", "messages", "bytes")
"""What a lag may be counted in, the best first."""


def place_form(position: Mapping[str, str]) -> str:
    """A position of the state for people: GTIDs and the place in the file, or what of the two there is."""
    gtids, at = position["gtids"], position["at"]
    return f"{gtids} ({at})" if gtids and at else gtids or at


def lag_text(lag: Mapping[str, Any]) -> str:
    """How far the log goes on, for people; "" where it has moved on to another file."""
    return lag.get("unknown") or ", ".join(f"{lag[unit]} {unit}" for unit in LAG_UNITS if lag.get(unit) is not None)
