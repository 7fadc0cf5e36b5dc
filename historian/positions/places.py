"""Where one event stands in a log."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one event stands in a log.

    Attributes:
        gtid: the transaction's GTID as text; "" where it has none.
        file, offset: of the *event's* first byte, valid on the server that ``LogPosition.server`` names.
        ordinal: of the event in its transaction, the GTID event being 0.
    """

    gtid: str
    file: str
    offset: int
    ordinal: int
