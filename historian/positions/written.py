"""Positions as people write them."""

from __future__ import annotations

from historian.errors import PositionError
from historian.positions.file import FilePosition
from historian.positions.log import LogPosition, parse_gtids

__all__ = ["parse_position"]


def parse_position(text: str, flavor: str) -> LogPosition:
    """A position that a person wrote: ``file:offset``, or GTIDs of that *flavor*; white space around it is theirs.

    >>> parse_position("binlog.000003:4711", "mysql").offset
    4711
    """
    text = text.strip()
    at = _file(text)
    if at is not None:
        return LogPosition(flavor=flavor, gtids="", file=at.file, offset=at.offset)
    gtids = parse_gtids(text, flavor)
    # A lone UUID is an empty set to servers; who writes one does not mean the beginning of the log.
    if text and not gtids:
        raise PositionError("a position that names no transaction", where=text, expected="GTIDs, or FILE:OFFSET")
    return LogPosition(flavor=flavor, gtids=str(gtids), file="", offset=0)


def _file(text: str) -> FilePosition | None:
    try:
        at = FilePosition.parse(text)
        at.number  # noqa: B018 raises where the name has none
    except PositionError:
        return None
    return at
