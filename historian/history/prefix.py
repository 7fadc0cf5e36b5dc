"""Whether an event lies in the prefix of a log that a position stands for; how versions find their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from historian.errors import PositionError, PositionUnknown
from historian.history.timeline import TimelineEntry
from historian.positions import KAFKA, FilePosition, GtidSet, LogPosition
from historian.positions.places import Place

__all__ = ["Prefix", "behind", "covers", "holds"]


def behind(position: LogPosition, entries: Sequence[TimelineEntry]) -> LogPosition:
    """The position, or where it names one transaction alone, as ``position`` of a row does, the one behind that.

    What was on other servers before is known where the transaction's own server had a statement before it.

    Args:
        entries: of the history, in order.
    """
    named = position.read
    if not isinstance(named, GtidSet) or len(named) != 1:
        return position
    [(source, [(_, number)])] = named
    held = GtidSet.of({source: [(1, number)]})
    for entry in reversed(entries):
        before = entry.position.read
        own = "" if entry.place is None else entry.place.gtid
        if own and isinstance(before, GtidSet) and held.contains_gtid(own):
            held = held.union(before)
            break
    return replace(position, gtids=str(held))


def covers(position: LogPosition, other: LogPosition) -> bool:
    """Whether everything up to *other* lies at or before *position*.

    Where one is given by file and offset alone and both are of one server, files decide even in a log with GTIDs.

    Raises:
        PositionUnknown: both are given by files alone, of two servers or of two logs of one.
    """
    by_file = position.file and other.file and not (position.gtids and other.gtids)
    if by_file and position.of_one_server(other.server):
        return _file_covers(position, other.at)
    try:
        return position.covers(other)
    except PositionError as error:
        raise _not_comparable(position, other.file, other.server) from error


def holds(position: LogPosition, place: Place, server: str) -> bool:
    """Whether the event at *place* of *server*'s log lies at or before *position*.

    Raises:
        PositionUnknown: the event has no GTID, and the position no offset on that server.
    """
    if place.gtid and (position.gtids or not position.file or not position.of_one_server(server)):
        return position.read.contains_gtid(place.gtid)
    if not position.file or not position.of_one_server(server):
        raise _not_comparable(position, place.file, server)
    at = FilePosition(place.file, place.offset)
    return _file_covers(position, at) and position.at != at


def _file_covers(position: LogPosition, at: FilePosition) -> bool:
    try:
        return position.at.covers(at)
    except PositionError as error:
        raise _not_comparable(position, at.file, position.server) from error


def _not_comparable(position: LogPosition, file: str, server: str) -> PositionUnknown:
    return PositionUnknown(
        "a statement without GTID and a position without its file cannot be compared",
        where=str(position),
        expected=f"a position in {file} of server {server}",
    )


class Prefix:
    """What lies before one row event: the log up to *position*, and *gtid*'s transaction up to the event *ordinal*.

    Without *ordinal* the whole transaction belongs to it; without *gtid* too, *position* is all.
    """

    __slots__ = ("gtid", "ordinal", "position")

    def __init__(self, position: LogPosition, gtid: str | None = None, ordinal: int | None = None) -> None:
        self.position = position
        self.gtid = None if not gtid else gtid if position.flavor == KAFKA else gtid.lower()
        self.ordinal = ordinal

    def __str__(self) -> str:
        inside = "" if self.ordinal is None else f" event {self.ordinal}"
        return f"{self.position}{'' if self.gtid is None else f' in {self.gtid}'}{inside}"

    def holds(self, entry: TimelineEntry) -> bool:
        """Whether the statement or capture of *entry* lies before the row event."""
        place = entry.place
        if place is None:
            return covers(self.position, entry.position)
        if self._own(entry, place):
            return self.ordinal is None or place.ordinal < self.ordinal
        return holds(self.position, place, entry.server)

    def transaction_beyond(self, position: LogPosition) -> bool:
        """Whether the row event's own transaction lies behind *position*."""
        if self.gtid is not None:
            return not position.read.contains_gtid(self.gtid)
        return self.ordinal is not None and covers(self.position, position)

    def _own(self, entry: TimelineEntry, place: Place) -> bool:
        if place.gtid or self.gtid is not None:
            return place.gtid == self.gtid
        begin = entry.position
        return (
            self.ordinal is not None
            and begin.of_one_server(self.position.server)
            and (begin.file, begin.offset) == (self.position.file, self.position.offset)
        )
