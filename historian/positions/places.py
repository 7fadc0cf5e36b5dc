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

    It prints as the GTID, else as ``file:offset``.
    """

    gtid: str
    file: str
    offset: int
    ordinal: int

    def __str__(self) -> str:
        return self.gtid or f"{self.file}:{self.offset}"
