"""Whether an event lies in the prefix of a log that a position stands for; how versions find their rows."""

from __future__ import annotations

from historian.errors import PositionUnknown
from historian.plans import Place
from historian.positions import FilePosition, LogPosition
from historian.timeline import TimelineEntry

__all__ = ["Prefix", "covers", "holds"]


def covers(position: LogPosition, other: LogPosition) -> bool:
    """Whether everything up to *other* lies at or before *position*.

    Where *other* is given by file and offset alone and both are of one server, files decide even in a log with GTIDs.
    """
    if other.file and position.file and not other.gtids and _same(position.server, other.server):
        return position.at.covers(other.at)
    return position.covers(other)


def holds(position: LogPosition, place: Place, server: str) -> bool:
    """Whether the event at *place* of *server*'s log lies at or before *position*.

    Raises:
        PositionUnknown: the event has no GTID, and the position no offset on that server.
    """
    if place.gtid and (position.gtids or not position.file or not _same(position.server, server)):
        return position.gtid_set.contains_gtid(place.gtid)
    if not position.file or not _same(position.server, server):
        raise PositionUnknown(
            "a statement without GTID and a position without its file cannot be compared",
            where=str(position),
            expected=f"a position in {place.file} of server {server}",
        )
    at = position.at
    return at.covers(FilePosition(place.file, place.offset)) and (at.file, at.offset) != (place.file, place.offset)


class Prefix:
    """What lies before one row event: the log up to *position*, and *gtid*'s transaction up to the event *ordinal*.

    Without *ordinal* the whole transaction belongs to it; without *gtid* too, *position* is all.
    """

    __slots__ = ("_gtid", "_ordinal", "position")

    def __init__(self, position: LogPosition, gtid: str | None = None, ordinal: int | None = None) -> None:
        self.position = position
        self._gtid = gtid.lower() if gtid else None
        self._ordinal = ordinal

    def __str__(self) -> str:
        inside = "" if self._ordinal is None else f" event {self._ordinal}"
        return f"{self.position}{'' if self._gtid is None else f' in {self._gtid}'}{inside}"

    def holds(self, entry: TimelineEntry) -> bool:
        """Whether the statement or capture of *entry* lies before the row event."""
        place = entry.place
        if place is None:
            return covers(self.position, entry.position)
        if self._own(entry, place):
            return self._ordinal is None or place.ordinal < self._ordinal
        return holds(self.position, place, entry.server)

    def transaction_beyond(self, position: LogPosition) -> bool:
        """Whether the row event's own transaction lies behind *position*."""
        if self._gtid is not None:
            return not position.gtid_set.contains_gtid(self._gtid)
        return self._ordinal is not None and covers(self.position, position)

    def _own(self, entry: TimelineEntry, place: Place) -> bool:
        if place.gtid or self._gtid is not None:
            return place.gtid == self._gtid
        begin = entry.position
        return (
            self._ordinal is not None
            and _same(begin.server, self.position.server)
            and (begin.file, begin.offset) == (self.position.file, self.position.offset)
        )


def _same(server: str, other: str) -> bool:
    """Whether two positions may be of one server's files; a position that a person wrote names none."""
    return not server or not other or server == other
