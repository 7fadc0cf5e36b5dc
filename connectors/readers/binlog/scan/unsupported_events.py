"""What a scan stops at, in words: which event, where, and what to do."""

from __future__ import annotations

from connectors.readers.binlog.events.layout import HEADER_BYTES, MAGIC, FormatDescription
from connectors.readers.binlog.kernels.log import scan_layout as at
from connectors.readers.binlog.transport.dump_places import PURGED_NEXT_STEP
from historian.errors import HistorianError, LogCorrupt, LogPurged, SourceError, UnsupportedEvent
from historian.names import TableName

__all__ = ["incident", "other_kind", "unsupported_event"]


def incident(event: bytes, where: str) -> LogPurged:
    """The error for an INCIDENT event: its number, then the length of a text, and that. MySQL sums it twice.

    Raises:
        LogCorrupt: it is too short.
    """
    if len(event) < HEADER_BYTES + 3:
        raise LogCorrupt(f"{_CORRUPT[at.SHORT]} (INCIDENT event)", where=where)
    text = event[HEADER_BYTES + 3 :][: event[HEADER_BYTES + 2]].decode("utf-8", "replace")
    return LogPurged(
        "the log lacks events that the server could not write (INCIDENT event)",
        where=where,
        found=f"incident {int.from_bytes(event[HEADER_BYTES : HEADER_BYTES + 2], 'little')}: {text or 'no reason is given'}",
        next_step=PURGED_NEXT_STEP,
    )


def other_kind(file: str, flavor: str, written_by: FormatDescription) -> LogCorrupt:
    """The error for a file that another kind of server wrote than that of the log, whose *flavor* is known."""
    return LogCorrupt(
        "a log of files from two kinds of servers",
        where=f"FORMAT_DESCRIPTION at {file}:{len(MAGIC)}",
        expected=flavor,
        found=f"{written_by.flavor}, {written_by.server_version}",
        next_step="read the files of each server on their own",
    )


def unsupported_event(code: int, *, event: str, where: str, table: TableName | None) -> HistorianError:
    """The error for a return of the scanning kernel that ends the scan."""
    if code == at.UNSUPPORTED:
        of_table = "" if table is None else f" of {table}"
        return UnsupportedEvent(
            f"the log holds {'an' if event[0] in 'AEIOU' else 'a'} {event} event{of_table}, which this release does not read",
            where=where,
            next_step="start behind this event, or read it with a later release",
        )
    if code == at.DESCENDING:
        return SourceError(
            "a domain's sequence numbers do not ascend",
            where=where,
            expected="gtid_strict_mode=ON, so that a position stands for everything before it",
            found=f"a {event} event with a number at or below the one before",
            next_step="SET GLOBAL gtid_strict_mode = ON on all servers, and start behind this transaction",
        )
    if code == at.ANONYMOUS:
        return SourceError(
            "a transaction without GTID cannot be placed in a scan that starts at GTIDs",
            where=where,
            expected="gtid_mode=ON since the position",
            next_step="start at FILE:OFFSET",
        )
    return LogCorrupt(f"{_CORRUPT[code]} ({event} event)", where=where)


_CORRUPT = {
    at.NESTED: "a transaction begins inside another",
    at.STRAY: "an event stands outside every transaction",
    at.UNMAPPED: "rows of a table number that no TABLE_MAP explains",
    at.SHORT: "an event is shorter than its own fields",
    at.FOREIGN: "an event of another kind of server",
    at.NUMBERLESS: "a GTID whose number is none of a transaction",
}
