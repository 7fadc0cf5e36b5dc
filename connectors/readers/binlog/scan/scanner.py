"""The light scan: windows in, bounds, statements and new TABLE_MAPs out; rows are counted by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.base import Bound, Scanned, Statement, TableMapped, XaCommitted
from connectors.readers.binlog.events.error_location import error_location
from connectors.readers.binlog.events.layout import (
    HEADER_BYTES,
    EventType,
    FormatDescription,
    event_name,
    gtids_before,
    header,
)
from connectors.readers.binlog.events.statements import logged_statement
from connectors.readers.binlog.events.table_maps import table_map
from connectors.readers.binlog.kernels.log import scan_layout as at
from connectors.readers.binlog.kernels.log.gtids import SOURCE_KEY_WORDS
from connectors.readers.binlog.kernels.log.scanning import scan
from connectors.readers.binlog.scan.gtid_counter import GtidCounter
from connectors.readers.binlog.scan.open_transactions import OpenTransactions, outcome, prepared_xid
from connectors.readers.binlog.scan.table_map_cache import TableMapCache
from connectors.readers.binlog.scan.unsupported_events import incident, other_kind, unsupported_event
from connectors.readers.binlog.transport.stream import WindowStream
from connectors.readers.binlog.transport.window import Window
from historian.errors import HistorianError, LogCorrupt
from historian.plans.plans import RolledBack
from historian.positions import FilePosition, LogPosition, PreparedXa
from historian.positions.places import Place

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BOUND_EVERY_BYTES", "Scanner"]

BOUND_EVERY_BYTES = 8 << 20
"""At most about so many bytes of log lie between two bounds, but for one larger transaction."""

_NEVER = 1 << 62


class Scanner:
    """One scan from *start* on, fed with the windows behind it.

    Args:
        start: with file and offset; its ``gtids`` are those of the log prefix, its ``pending`` the XA transactions known there.
        by_gtid: transactions of ``start.gtids`` may stand behind *start*; they are passed over.
        limit_bytes, until: where to end, at the first bound there or behind.
        count_only: every transaction is only counted into the position.
        find_only: end before the first transaction that is not passed over.
    """

    def __init__(
        self,
        start: LogPosition,
        *,
        by_gtid: bool = False,
        limit_bytes: int | None = None,
        until: LogPosition | None = None,
        count_only: bool = False,
        find_only: bool = False,
        lower_case_table_names: int = 0,
    ) -> None:
        self.open_transactions = OpenTransactions(start.pending)
        self._after = start.gtids
        self._finished = False
        self._flavor, self._server = start.flavor, start.server
        self._index = 0
        self._lower_case_table_names = lower_case_table_names
        self._counter = GtidCounter(start.gtids, start.flavor, pass_over=by_gtid)
        self._maps = TableMapCache()
        self._file, self._bound_offset = start.file, start.offset
        self._file_end = start.offset
        self._bytes_before = -start.offset
        self._limit_bytes = limit_bytes
        self._until_file = until.at if until is not None and _same_place(until, start) else None
        self._until_gtids = until.gtids if until is not None and self._until_file is None else ""
        state: NDArray[np.int64] = np.zeros(at.STATE_WORDS, np.int64)
        state[at.GROUP_END] = start.offset
        state[at.SOURCE] = -1
        state[at.IS_MARIADB] = start.flavor == "mariadb"
        state[at.COUNT_ONLY] = count_only
        state[at.FIND_ONLY] = find_only
        state[at.BY_GTID] = by_gtid and bool(start.gtids)
        self._state = state
        self._end_reached()

    def is_finished(self) -> bool:
        """Whether the scan has come to where it was to end."""
        return self._finished

    @property
    def position(self) -> LogPosition:
        """Behind the last whole transaction seen, or where the scan began."""
        self._take_records()
        return self._position(int(self._state[at.GROUP_END]))

    @property
    def fed_to(self) -> int:
        """Offset behind the last event fed."""
        return self._file_end

    @property
    def in_transaction(self) -> bool:
        """Whether the windows so far end inside a transaction."""
        return bool(self._state[at.GROUP])

    @property
    def last_event(self) -> int:
        """Type of the last event seen; 0 before the first."""
        return int(self._state[at.LAST_KIND])

    def pass_over(self, stream: WindowStream, *, end: int | None = None) -> None:
        """Takes what *stream* has, up to the offset *end*, for :attr:`position` alone. Errors are those of :meth:`feed`."""
        for window in stream.windows(end=end):
            for _ in self.feed(window, stream.formats[window.file]):
                pass
            if self._finished:
                return

    def feed(self, window: Window, written_by: FormatDescription) -> Iterator[Scanned]:
        """What stands in *window*, whose file *written_by* describes; ends early where :meth:`is_finished`.

        Raises:
            LogCorrupt: an event that is none, or in the wrong place, or of a log of the other flavor.
            UnsupportedEvent: one that this release does not read.
            SourceError: see :mod:`~connectors.readers.binlog.scan.unsupported_events`.
        """
        if written_by.flavor != self._flavor:
            raise other_kind(window.file, self._flavor, written_by)
        if window.file != self._file:
            yield from self._change_file(window.file, restarted=written_by.restarted)
        with error_location(lambda: self._event_and_place(window)):
            yield from self._walk(window, written_by)
        last = len(window.starts) - 1
        self._file_end = int(window.offsets[last]) + header(_bytes(window, last, HEADER_BYTES)).size_bytes

    def _walk(self, window: Window, written_by: FormatDescription) -> Iterator[Scanned]:
        state = self._state
        state[at.EVENT] = 0
        while not self._finished:
            state[at.BOUND_AT] = self._next_bound()
            code = self._scan(window)
            if code == at.DONE:
                break
            if code == at.BOUND:
                yield from self._bound()
                self._end_reached()
            elif code == at.GAP_ENDS:
                yield from self._end_gap()
                self._finished = bool(state[at.FIND_ONLY])
            elif code in (at.STATEMENT, at.MAPPED):
                yield from self._bound()
                yield self._statement(window, written_by) if code == at.STATEMENT else self._mapped(window)
            elif code in _UNSETTLING:
                yield from self._unsettle(code, window)
            elif code == at.NEW_SOURCE:
                self._counter.add_source(state[at.GTID : at.GTID + SOURCE_KEY_WORDS])
            elif code == at.RECORDS_FULL:
                self._take_records()
            elif code == at.OTHER:
                self._adopt(window.event(self._index))
            else:
                yield from self._bound()
                raise self._unsupported_event(code, window)

    def finish(self) -> Iterator[Scanned]:
        """The last bound, at the end of what was fed."""
        if not self._finished:
            yield from self._end_gap()
            yield from self._bound()

    # ---- places ----------------------------------------------------------------------------------------------------
    def _position(self, offset: int) -> LogPosition:
        return LogPosition(
            flavor=self._flavor,
            gtids=self._counter.text,
            file=self._file,
            offset=offset,
            server=self._server,
            pending=tuple(self.open_transactions.pending.values()),
        )

    def _bound_at(self, offset: int, *, skipped: bool = False) -> Bound:
        self._take_records()
        self._bound_offset = offset
        position = self._position(offset)
        self._after = position.gtids
        return Bound(position=position, event_time_us=int(self._state[at.LAST_TIME_US]), skipped=skipped)

    def _bound(self) -> Iterator[Bound]:
        """A bound behind the last whole transaction, unless the last one was there."""
        offset = int(self._state[at.GROUP_END])
        if offset > self._bound_offset:
            yield self._bound_at(offset)

    def _end_gap(self) -> Iterator[Bound]:
        state = self._state
        if not state[at.GAP]:
            return
        state[at.GAP] = 0
        self._maps.clear()
        if int(state[at.GAP_START]) > self._bound_offset:
            yield self._bound_at(int(state[at.GAP_START]))
        yield self._bound_at(int(state[at.GROUP_END]), skipped=True)

    def _change_file(self, file: str, *, restarted: bool) -> Iterator[Bound]:
        if self.in_transaction:
            raise LogCorrupt(
                "a binlog file ends inside a transaction",
                where=f"{self._file}:{int(self._state[at.GROUP_START])}, {self._gtid() or 'without GTID'}",
                expected="its end in the same file",
                found=f"the next file, {file}",
            )
        yield from self._end_gap()
        state = self._state
        state[at.GROUP_END] = max(self._file_end, self._bound_offset)
        yield from self._bound()
        self._end_reached()
        if self._finished:
            return
        self._maps.clear()
        self._bytes_before += self._file_end - _FIRST_EVENT
        self._file = file
        state[at.GROUP_END] = _FIRST_EVENT
        yield replace(self._bound_at(_FIRST_EVENT), restarted=restarted)
        self._end_reached()

    def _next_bound(self) -> int:
        wanted = self._bound_offset + BOUND_EVERY_BYTES
        if self._limit_bytes is not None:
            wanted = min(wanted, self._limit_bytes - self._bytes_before)
        if self._until_file is not None and self._until_file.number == FilePosition(self._file, 0).number:
            wanted = min(wanted, self._until_file.offset)
        return wanted

    def _end_reached(self) -> None:
        """Ends the scan where its limit is reached at a bound."""
        offset = int(self._state[at.GROUP_END])
        if self._limit_bytes is not None and self._bytes_before + offset >= self._limit_bytes:
            self._finished = True
        if self._until_file is not None and self._file and FilePosition(self._file, offset).covers(self._until_file):
            self._finished = True
        if self._until_gtids:
            self._take_records()
            self._finished |= self._counter.stop_before_covering(self._until_gtids)

    # ---- events ----------------------------------------------------------------------------------------------------
    def _scan(self, window: Window) -> int:
        counter, maps = self._counter, self._maps
        self._state[at.SOURCES] = counter.source_count
        arrays = (self._state, counter.sources, counter.intervals, counter.records)
        state, sources, intervals, records = (array.ctypes.data for array in arrays)
        events = (window.buffer, window.starts, window.ends, window.offsets)
        buffer, starts, ends, offsets = (array.ctypes.data for array in events)
        room, entries, store = len(counter.records), maps.entries.ctypes.data, maps.store.ctypes.data
        code = scan(
            state, sources, intervals, records, room, entries, store, buffer, starts, ends, offsets, len(window.starts)
        )
        self._index = int(self._state[at.EVENT]) - (code not in (at.NEW_SOURCE, at.GAP_ENDS))
        return int(code)

    def _take_records(self) -> None:
        self._counter.take(int(self._state[at.RECORDS]))
        self._state[at.RECORDS] = 0

    def _gtid(self) -> str:
        state = self._state
        return self._counter.gtid(int(state[at.SOURCE]), int(state[at.NUMBER]), int(state[at.SERVER]))

    def _place(self, window: Window) -> Place:
        offset, ordinal = int(window.offsets[self._index]), int(self._state[at.ORDINAL])
        return Place(gtid=self._gtid(), file=self._file, offset=offset, ordinal=ordinal)

    def _event_and_place(self, window: Window) -> tuple[str, str]:
        """Name of the event that is looked at, and where it stands."""
        gtid = self._gtid() if self.in_transaction else ""
        where = window.where(self._index) + (f", transaction {gtid}" if gtid else "")
        return event_name(window.event(self._index)[4]), where

    def _statement(self, window: Window, written_by: FormatDescription) -> Statement:
        event = window.event(self._index)
        logged = logged_statement(event, written_by, lower_case_table_names=self._lower_case_table_names)
        self._maps.clear()
        state = self._state
        known = bool(state[at.TIME_IS_KNOWN])
        return Statement(
            place=self._place(window),
            event_time_us=int(state[at.TIME_US]) if known else header(event).timestamp * 1_000_000,
            sql=logged.sql,
            context=logged.context,
        )

    def _mapped(self, window: Window) -> TableMapped:
        event = window.event(self._index)
        found = table_map(event, self._flavor)
        self._maps.add(found, event[HEADER_BYTES:])
        if self._state[at.XA]:
            self._enter().touch(found.table)
        return TableMapped(place=self._place(window), table=found.table, columns=found.columns)

    def _enter(self) -> OpenTransactions:
        self.open_transactions.enter(self._file, int(self._state[at.GROUP_START]))
        return self.open_transactions

    def _unsettle(self, code: int, window: Window) -> Iterator[Scanned]:
        """Takes what makes rows count later, or not at all."""
        state, open_transactions = self._state, self._enter()
        ordinal, begin = int(state[at.ORDINAL]), int(state[at.GROUP_START])
        event = window.event(self._index)
        if code == at.XA_MAPPED:
            open_transactions.touch(self._maps.name(int(state[at.DETAIL])))
        elif code == at.XA_PREPARED:
            xid, gtid = prepared_xid(event), self._gtid()
            open_transactions.prepare(
                PreparedXa(xid=xid, gtid=gtid, file=self._file, offset=begin, server=self._server, after=self._after)
            )
        elif code == at.XA_OUTCOME:
            is_commit, xid = outcome(event)
            xa = open_transactions.settle(xid)
            if is_commit:
                yield XaCommitted(place=self._place(window), xid=xid, xa=xa)
        else:
            part = (1, ordinal - 1) if code == at.ROLLED_BACK else open_transactions.savepoint(event, ordinal)
            if part is not None:
                yield RolledBack(gtid=self._gtid(), file=self._file, offset=begin, first=part[0], last=part[1])

    def _adopt(self, event: bytes) -> None:
        # SET gtid_purged adds transactions that no file holds: the next file's first event names them.
        self._take_records()
        self._counter.adopt(gtids_before(event, self._flavor))

    def _unsupported_event(self, code: int, window: Window) -> HistorianError:
        event = window.event(self._index)
        name, where = self._event_and_place(window)
        if event[4] == EventType.INCIDENT:
            return incident(event, where)
        return unsupported_event(code, event=name, where=where, table=self._maps.table_of(event))


_FIRST_EVENT = 4
_UNSETTLING = frozenset((at.XA_MAPPED, at.XA_PREPARED, at.XA_OUTCOME, at.SAVEPOINT, at.ROLLED_BACK))


def _same_place(until: LogPosition, start: LogPosition) -> bool:
    return bool(until.file) and until.server in ("", start.server)


def _bytes(window: Window, index: int, size: int) -> bytes:
    start = int(window.starts[index])
    return window.buffer[start : start + size].tobytes()
