"""Positions as people write them."""

from __future__ import annotations

from historian.errors import PositionError
from historian.positions.file import FilePosition
from historian.positions.log import LogPosition, parse_gtids

__all__ = ["parse_position"]


def parse_position(text: str, flavor: str) -> LogPosition:
    """A position that a person wrote: ``file:offset``, or GTIDs of that *flavor*.

    >>> parse_position("binlog.000003:4711", "mysql").offset
    4711
    """
    try:
        at = FilePosition.parse(text)
        at.number  # noqa: B018 raises where the name has none
    except PositionError:
        return LogPosition(flavor=flavor, gtids=str(parse_gtids(text, flavor)), file="", offset=0)
    return LogPosition(flavor=flavor, gtids="", file=at.file, offset=at.offset)
