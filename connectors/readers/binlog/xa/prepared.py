"""XA transactions looked up in a log: where they were prepared, whether they are still there, and their events."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from connectors.readers.base import TableMapped, XaCommitted
from connectors.readers.binlog.events.layout import GTID_EVENTS, EventType
from connectors.readers.binlog.scan.open_transactions import prepared_xid
from connectors.readers.binlog.scan.scanner import Scanner
from connectors.readers.binlog.transport.dump_places import PURGED_NEXT_STEP
from connectors.readers.binlog.transport.failover import event_text
from connectors.readers.binlog.transport.unpacking import unpacked
from connectors.readers.binlog.transport.window import Window
from connectors.readers.binlog.xa.rolled_back import without_rolled_back
from historian.errors import LogCorrupt, LogPurged
from historian.plans.plans import RolledBack
from historian.positions import PreparedXa
from historian.positions.places import Place

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.stream import Log, WindowStream

__all__ = ["Presence", "events_of", "look_back"]

_FIRST_EVENT = 4


def look_back(reader: Log, xid: str, place: Place) -> tuple[PreparedXa, tuple[TableMapped, ...]]:
    """The last XA transaction of that xid prepared before *place*, and the first TABLE_MAP of each table in it.

    Raises:
        LogPurged: it is not there.
    """
    files = list(reader._files())  # noqa: SLF001 of one class with the reader
    for file in reversed(files[: files.index(place.file) + 1]):
        scanner = _scanned(reader, file, place.offset if file == place.file else None)
        found = scanner.open_transactions.pending.get(xid)
        if found is not None:
            return found, _tables(reader, found)
        if xid in scanner.open_transactions.unknown:
            break  # an earlier one of that name was settled in this file
    raise _gone(xid, place, None, f"no XA PREPARE of it from {files[0]} on")


def _scanned(reader: Log, file: str, end: int | None) -> Scanner:
    """A scanner that has seen one file, up to *end*."""
    begin = reader._at(file, _FIRST_EVENT, reader._gtids_before(file))  # noqa: SLF001
    scanner = Scanner(begin)
    with closing(reader._stream(file, _FIRST_EVENT)) as stream:  # noqa: SLF001
        for window in unpacked(stream.windows(end=end), rows=False):
            if window.file != file:
                break
            for _ in scanner.feed(window, stream.formats[file]):
                pass
    return scanner


def _tables(reader: Log, xa: PreparedXa) -> tuple[TableMapped, ...]:
    """The TABLE_MAPs of a transaction, the first of each table."""
    begin = reader._at(xa.file, xa.offset, xa.after)  # noqa: SLF001
    scanner = Scanner(begin, limit_bytes=1)
    with closing(reader._stream(xa.file, xa.offset)) as stream:  # noqa: SLF001
        found: list[TableMapped] = []
        for window in unpacked(stream.windows(), rows=False):
            found += (i for i in scanner.feed(window, stream.formats[window.file]) if isinstance(i, TableMapped))
            if scanner.is_finished():
                break
    return tuple(found)


class Presence:
    """Tells at an XA COMMIT whether the rows that it commits are still in the log."""

    def __init__(self, reader: Log) -> None:
        self._reader = reader
        self._files: set[str] = set()

    def check(self, committed: XaCommitted) -> None:
        """Raises :class:`LogPurged` where they are not."""
        xa, reader = committed.xa, self._reader
        if xa is None:
            return
        if xa.server in ("", reader._server()):  # noqa: SLF001
            if xa.file in (committed.place.file, *self._files):
                return
            self._files = set(reader._files())  # noqa: SLF001
            is_there = xa.file in self._files
        else:
            purged = reader.start().gtid_set
            is_there = bool(xa.gtid) and not purged.contains_gtid(xa.gtid)
        if not is_there:
            raise _gone(xa.xid, committed.place, xa, f"a log that begins with {reader.start()}")


def _gone(xid: str, place: Place, xa: PreparedXa | None, found: str) -> LogPurged:
    return LogPurged(
        "the rows of a committed XA transaction are not in the log",
        where=f"XA COMMIT {xid} at {place.file}:{place.offset}" + (f", transaction {place.gtid}" if place.gtid else ""),
        expected="its XA PREPARE in a file before" if xa is None else f"{xa} in {xa.file}:{xa.offset}",
        found=found,
        next_step=PURGED_NEXT_STEP,
    )


def events_of(
    xa: PreparedXa, stream: Callable[[], WindowStream], *, here: bool, flavor: str
) -> Generator[Window, None, None]:
    """The events of an XA transaction read from the log again, from its GTID event to its XA_PREPARE.

    Args:
        stream: opens the log at its first event; where it is not *here*, in the place where it was prepared, before it.

    Raises:
        LogPurged: it is not there.
        LogCorrupt: something else is.
    """
    parts = [RolledBack(gtid=xa.gtid, file=xa.file, offset=xa.offset, first=a, last=b) for a, b in xa.rolled_back]
    try:
        yield from _events(xa, stream, parts, here=here, flavor=flavor)
    except LogPurged as error:
        raise LogPurged(
            "the rows of a committed XA transaction are not in the log",
            where=str(xa),
            expected=f"XA PREPARE {xa.xid}, from {xa.file}:{xa.offset} on",
            found=str(error),
            next_step=PURGED_NEXT_STEP,
        ) from error


def _events(
    xa: PreparedXa, stream: Callable[[], WindowStream], parts: list[RolledBack], *, here: bool, flavor: str
) -> Iterator[Window]:
    with closing(stream()) as opened:
        windows: Iterator[Window] = unpacked(opened.windows())
        if parts:
            windows = without_rolled_back(windows, parts, flavor=flavor, by_gtid=not here)
        begun = False
        for window in windows:
            first = 0 if begun else _begin(window, xa, flavor, here=here)
            if first < 0:
                continue
            begun = True
            kinds = window.buffer[window.starts + 4]
            prepares = [at for at in (kinds == EventType.XA_PREPARE).nonzero()[0].tolist() if at >= first]
            if not prepares:
                yield window.part(first, len(kinds))
                continue
            event = window.event(prepares[0])
            if xa.xid and prepared_xid(event, window.where(prepares[0])) != xa.xid:
                break
            yield window.part(first, prepares[0] + 1)
            return
    raise LogPurged("another transaction, or none, is where it was prepared")


def _begin(window: Window, xa: PreparedXa, flavor: str, *, here: bool) -> int:
    """Index of the transaction's GTID event in *window*; -1: it is not there."""
    if here:
        if (window.file, int(window.offsets[0])) != (xa.file, xa.offset) or window.event(0)[4] not in GTID_EVENTS:
            raise LogCorrupt(
                "no transaction begins where an XA transaction was prepared",
                where=window.where(0),
                expected=str(xa),
                next_step="check that the log was not reset since",
            )
        return 0
    for index, kind in enumerate(window.buffer[window.starts + 4].tolist()):
        if kind in GTID_EVENTS and event_text(window.event(index), flavor, window.where(index)) == xa.gtid:
            return index
    return -1
