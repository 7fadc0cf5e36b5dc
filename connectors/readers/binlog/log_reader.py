"""What readers of binlogs share, whether a live server or files hold the log."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.readers.base import Bound, CachedLog, LogMark, PartitionLag, Scanned, TableMapped, XaCommitted
from connectors.readers.binlog.events.layout import FormatDescription
from connectors.readers.binlog.transport.dump_places import PURGED_NEXT_STEP
from connectors.readers.binlog.transport.log_cache import MAX_KEPT_BYTES, LogCache, cached_windows
from connectors.readers.binlog.transport.stream import WindowStream
from connectors.readers.binlog.transport.window import Window
from connectors.readers.room import ROOM, Room
from historian.changelog.chunks import Chunk
from historian.errors import LogCorrupt, LogPurged, SourceError
from historian.plans.plans import LogRange, PlannedRange, PlannedTable
from historian.positions import Gtids, GtidSet, LogPosition, MariadbGtids, PreparedXa, missing_from, parse_gtids
from historian.positions.places import Place

if TYPE_CHECKING:
    from connectors.readers.base import Wake
    from connectors.readers.binlog.scan.scanner import Scanner

# Kernels are imported where a log is read: to know where it ends, as the status asks, takes none, and numba is half a second.

__all__ = ["FIRST_EVENT", "BinlogReader", "Windows", "foreign_range"]

Windows = Generator[Window, None, None]
FIRST_EVENT = 4
"""Offset of a file's first event."""


class BinlogReader(ABC):
    """A log of binlog files; implements :class:`connectors.readers.base.Reader`."""

    flavor: str
    _waits_for_bytes = False
    """Whether bytes come from elsewhere. A thread for those of files would take from the next task's core what it gives."""

    def __init__(self) -> None:
        self._last_bound: LogPosition | None = None
        self._cache: LogCache | None = None
        self.on_bound: Callable[[LogPosition], None] | None = None
        self.keeps_scans = False

    # ---- what a kind of log tells ----------------------------------------------------------------------------------
    @abstractmethod
    def _server(self) -> str:
        """Identity of the server that offsets are of; "" for files."""

    @abstractmethod
    def _files(self) -> Sequence[str]:
        """Names of the log's files, oldest first."""

    @abstractmethod
    def _sizes(self, file: str) -> Sequence[int]:
        """Sizes of *file* and those behind it, up to what is committed; [] where the log has no such file."""

    @abstractmethod
    def _gtids_before(self, file: str) -> Gtids:
        """GTIDs of all transactions before *file*."""

    @abstractmethod
    def _stream(self, file: str, offset: int) -> WindowStream:
        """The log from that place on."""

    @abstractmethod
    def _executed(self, wanted: Gtids) -> Gtids:
        """GTIDs of all transactions in the log's past; waits a moment where *wanted* may be just about to be one."""

    @abstractmethod
    def _lower_case_table_names(self) -> int:
        """The server's setting of that name."""

    @abstractmethod
    def _check_end(self, scanner: Scanner) -> None:
        """Raises where the log's end as *scanner* has seen it is no proper one."""

    @abstractmethod
    def end(self) -> LogPosition:
        """The log's end now: everything committed before the call lies at or before it. Retryable."""

    def near_end(self) -> LogPosition:
        """About the log's end now, see :class:`connectors.readers.base.Reader`."""
        return self.end()

    @abstractmethod
    def close(self) -> None:
        """Closes connections; the reader can be used again."""

    def server(self) -> str:
        """Identity of the server whose log it is, see :class:`connectors.readers.base.Reader`."""
        return self._server()

    # ---- positions -------------------------------------------------------------------------------------------------
    def _at(self, file: str, offset: int, gtids: Gtids | str) -> LogPosition:
        return LogPosition(flavor=self.flavor, gtids=str(gtids), file=file, offset=offset, server=self._server())

    def start(self) -> LogPosition:
        """The earliest position that can be read from. Retryable."""
        first = self._files()[0]
        return self._at(first, FIRST_EVENT, self._gtids_before(first))

    def mark(self, file: str) -> LogMark | None:
        """What the log says of a file; None where it has none of that name."""
        if file not in self._files():
            return None
        described = self._format(file)
        return LogMark(server=self._server(), version=described.server_version, file=file, made_s=described.made_s)

    def _format(self, file: str) -> FormatDescription:
        with closing(self._stream(file, FIRST_EVENT)) as stream:
            next(iter(stream.windows()), None)
            return stream.formats[file]

    def locate(self, position: LogPosition) -> LogPosition:
        """The same place with GTIDs, file, offset and server filled in; without GTIDs and file the log's beginning.

        Raises:
            LogPurged: the log behind it is no longer all there.
            SourceError: it was never executed here, or no transaction ends there.
        """
        if position.flavor != self.flavor:
            raise SourceError(
                "a position of another kind of server", where=str(position), expected=self.flavor, found=position.flavor
            )
        if not position.file and not position.gtids:
            return self.start()
        if position.file and position.server in ("", self._server()):
            if position.file in self._files():
                return self._complete(position)
            if not position.gtids:
                raise LogPurged(
                    "the position's file is not in the log",
                    where=str(position),
                    expected=f"a file from {self._files()[0]} to {self._files()[-1]}",
                    found=position.file,
                    next_step=PURGED_NEXT_STEP,
                )
        if not position.gtids:
            raise SourceError(
                "a position of another server, without GTIDs",
                where=f"{position.at} of server {position.server}",
                expected=f"server {self._server()}",
                next_step="connect to the server that the position is of, or start a new connector with a new lake",
            )
        return self._find(position)

    def _complete(self, position: LogPosition) -> LogPosition:
        if not position.gtids and not position.server and position != self._last_bound:
            return self._count(position)
        return replace(position, server=self._server())

    def _count(self, position: LogPosition) -> LogPosition:
        """Fills in the GTIDs of a place given by file and offset, by counting the file's transactions before it."""
        file, offset = position.file, position.offset
        begin = self._at(file, FIRST_EVENT, self._gtids_before(file))
        if offset <= FIRST_EVENT:
            return begin
        from connectors.readers.binlog.scan.scanner import Scanner

        scanner = Scanner(begin, count_only=True)
        with closing(self._stream(file, FIRST_EVENT)) as stream:
            scanner.pass_over(stream, end=offset)
            reached = stream.offset
        if reached < offset and not scanner.in_transaction:
            raise LogPurged(
                "the log ends before the position",
                where=str(position.at),
                expected=f"at least {offset} bytes in {file}",
                found=reached,
                next_step="check that this is the right server, and that its log was not reset",
            )
        if scanner.in_transaction or reached != offset:
            raise SourceError(
                "no transaction ends at the position",
                where=str(position.at),
                expected=f"{scanner.position.at}, the last end before it",
                next_step="take a position that SHOW BINLOG EVENTS gives as the end of a transaction",
            )
        return replace(scanner.position, offset=offset)

    def _find(self, position: LogPosition) -> LogPosition:
        """Finds the place of GTIDs: before the first transaction that is none of them."""
        wanted = parse_gtids(position.gtids, self.flavor)
        self._check_executed(position)
        file = self._file_before(wanted, position)
        from connectors.readers.binlog.scan.scanner import Scanner

        scanner = Scanner(self._at(file, FIRST_EVENT, wanted), by_gtid=True, find_only=True)
        with closing(self._stream(file, FIRST_EVENT)) as stream:
            scanner.pass_over(stream)
        return scanner.position

    def behind(self, transaction: LogPosition) -> LogPosition:
        """The place behind one transaction, see :class:`connectors.readers.base.TransactionLog`."""
        wanted = transaction.gtid_set
        self._check_executed(transaction)
        executed = self._executed(wanted)
        if isinstance(executed, MariadbGtids) and len(executed.last) == 1:
            return self._find(transaction)  # all that was executed is of that domain
        files = self._files()
        low, high = 0, len(files)
        while low < high:
            middle = (low + high) // 2
            if missing_from(wanted, self._gtids_before(files[middle])) is not None:
                low = middle + 1
            else:
                high = middle
        if low:
            from connectors.readers.binlog.scan.scanner import Scanner

            file = files[low - 1]
            begin = self._at(file, FIRST_EVENT, self._gtids_before(file))
            scanner = Scanner(begin, until=transaction, count_only=True)
            with closing(self._stream(file, FIRST_EVENT)) as stream:
                scanner.pass_over(stream)
            place = scanner.position
            if place.file == file and _has_last(place.gtid_set, wanted):
                return place
        return self._find(replace(transaction, gtids=_with_all_before(wanted)))

    def _file_before(self, wanted: Gtids, position: LogPosition) -> str:
        """The last file before which only transactions of *wanted* stand."""
        files = self._files()
        low, high = 0, len(files)
        while low < high:
            middle = (low + high) // 2
            if missing_from(self._gtids_before(files[middle]), wanted) is None:
                low = middle + 1
            else:
                high = middle
        if not low:
            gone = missing_from(self._gtids_before(files[0]), wanted)
            raise LogPurged(
                "the log behind the position has been purged",
                where=str(position),
                expected=f"a position that contains {gone}, which stood before {files[0]}",
                next_step=PURGED_NEXT_STEP,
            )
        return files[low - 1]

    def _check_executed(self, position: LogPosition) -> None:
        wanted = parse_gtids(position.gtids, self.flavor)
        unknown = missing_from(wanted, self._executed(wanted))
        if unknown is not None:
            raise LogPurged(
                "the server has not executed the position",
                where=str(position),
                expected="a position in the past of this log",
                found=f"{unknown} is not in it",
                next_step="check that this is the right server, that it has caught up, and that its log was not reset",
            )

    # ---- reading ---------------------------------------------------------------------------------------------------
    def scan(
        self,
        start: LogPosition,
        *,
        limit_bytes: int | None = None,
        until: LogPosition | None = None,
    ) -> Iterator[Scanned]:
        """What stands in the log behind *start*, see :class:`connectors.readers.base.Reader`."""
        from connectors.readers.binlog.scan.scanner import Scanner
        from connectors.readers.binlog.transport.unpacking import unpacked
        from connectors.readers.binlog.xa.prepared import Presence

        place = replace(self.locate(start), pending=start.pending)
        presence = Presence(self)
        moved = place.at != start.at or start.server not in ("", place.server)
        if moved:
            yield self._noted(Bound(position=place, event_time_us=0, skipped=True))
        scanner = Scanner(
            place,
            by_gtid=moved and bool(start.gtids),
            limit_bytes=limit_bytes,
            until=until,
            lower_case_table_names=self._lower_case_table_names(),
        )
        if scanner.is_finished() or self._is_end(place):
            return
        is_empty = not moved
        with closing(self._stream(place.file, place.offset)) as stream:
            for window in unpacked(self._keeping(stream, place), rows=False):
                for item in scanner.feed(window, stream.formats[window.file]):
                    if isinstance(item, XaCommitted):
                        presence.check(item)
                    is_empty = False
                    yield self._noted(item)
                if scanner.is_finished():
                    return
            for item in scanner.finish():
                is_empty = False
                yield self._noted(item)
        self._check_end(scanner)
        if is_empty and not scanner.in_transaction:
            self._note_empty(place)

    def _keeping(self, stream: WindowStream, place: LogPosition) -> Iterator[Window]:
        """The stream's windows, kept besides."""
        room = ROOM if self.keeps_scans else Room(MAX_KEPT_BYTES)
        self.forget()  # It makes place first.
        cache = self._cache = LogCache(place.server, place.file, place.offset, room) if place.server else None
        for window in stream.windows():
            if cache is not None:
                cache.add(window, stream.offset)
            yield window

    def cached(self, planned: PlannedRange) -> Sequence[CachedLog] | None:
        """The range's part of the log, see :class:`connectors.readers.base.Reader`; of files nothing is kept."""
        return None if self._cache is None else self._cache.cached(_own(planned))

    def forget(self) -> None:
        """Frees what the last scan kept, see :class:`connectors.readers.base.Reader`."""
        self._cache = None

    def waiting_bytes(self, position: LogPosition) -> int:
        """How much log stands behind *position*, see :class:`connectors.readers.base.Reader`."""
        if position.server not in ("", self._server()):
            return 0
        sizes = self._sizes(position.file)
        return sum(sizes) - position.offset if sizes else 0

    def partition_lags(self, position: LogPosition) -> tuple[PartitionLag, ...]:  # noqa: ARG002 as other readers
        """None: a binlog is in one piece."""
        return ()

    def wait(self, position: LogPosition, timeout_s: float, wake: Wake | None = None) -> bool:  # noqa: ARG002 - a server can tell
        """Returns after *timeout_s*, see :class:`connectors.readers.base.Reader`."""
        if wake is not None:
            return not wake.wait(timeout_s)
        time.sleep(timeout_s)
        return True

    def take_over(self, connector: str) -> None:
        """Ends what an earlier run left, see :class:`connectors.readers.base.Reader`."""
        del connector  # files know of no runs

    def look_back(self, xid: str, before: Place) -> tuple[PreparedXa, tuple[TableMapped, ...]]:
        """The last XA transaction of that xid before a place, see :class:`connectors.readers.base.Reader`."""
        from connectors.readers.binlog.xa.prepared import look_back

        return look_back(self, xid, before)

    def _noted(self, item: Scanned) -> Scanned:
        if isinstance(item, Bound):
            self._last_bound = item.position
            if self.on_bound is not None:
                self.on_bound(item.position)
        return item

    def _is_end(self, place: LogPosition) -> bool:  # noqa: ARG002 - a server can tell
        """Whether it is known without a look at the log that nothing stands behind *place*."""
        return False

    def _note_empty(self, place: LogPosition) -> None:  # noqa: B027 - a server can tell if that is so still
        """Notes that no transaction stood behind *place* when :meth:`_is_end` was asked last."""

    def read(
        self,
        planned: PlannedRange,
        tables: Sequence[PlannedTable],
        *,
        sequence: int = 0,
        as_text: bool = False,
        stops: bool = False,
        log: Sequence[CachedLog] | None = None,
        begun: dict[str, int] | None = None,
    ) -> Iterator[Chunk]:
        """Rows of *tables* in *planned*, see :class:`connectors.readers.base.Reader`."""
        from connectors.readers.binlog.rows.decoder import RangeDecoder
        from connectors.readers.binlog.transport.membership import noted
        from connectors.readers.binlog.transport.unpacking import unpacked
        from connectors.readers.binlog.xa.commit_order import CommitOrder
        from connectors.readers.binlog.xa.rolled_back import without_rolled_back

        planned = _own(planned)
        server = self._server() if log is None else planned.server
        here = planned.server in ("", server)
        windows: Windows
        if log is not None:
            windows = cached_windows(planned, log)
        elif here:
            windows = self._range(planned)
        else:
            windows, tables = self._elsewhere(planned, tables)
        decoder = RangeDecoder(tables, flavor=self.flavor, sequence=sequence, as_text=as_text, stops=stops)
        order = CommitOrder(planned, self._prepared, flavor=self.flavor, server=server)
        with closing(windows):
            plain = unpacked(windows)
            if begun is not None:
                plain = noted(plain, begun, flavor=self.flavor, by_gtid=not here)
            if planned.rolled_back:
                plain = without_rolled_back(plain, planned.rolled_back, flavor=self.flavor, by_gtid=not here)
            for window in order.windows(plain):
                yield from decoder.feed(window)
        yield from decoder.finish()

    def _prepared(self, xa: PreparedXa) -> Windows:
        from connectors.readers.binlog.xa.prepared import events_of

        if xa.server in ("", self._server()):
            return events_of(xa, lambda: self._stream(xa.file, xa.offset), here=True, flavor=self.flavor)
        return events_of(xa, lambda: self._stream_behind(xa), here=False, flavor=self.flavor)

    def _range(self, planned: LogRange) -> Windows:
        from connectors.readers.binlog.transport.prefetch import prefetched

        with closing(self._stream(planned.file, planned.start)) as stream:
            windows = stream.windows(end=planned.end)
            if self._waits_for_bytes:
                with closing(prefetched(windows, stream.close)) as windows:
                    yield from windows
            else:
                yield from windows
            reached = stream.offset
        if reached != planned.end:
            raise LogCorrupt(
                "the log does not end an event where the range ends",
                where=f"{planned.file}:{planned.start}",
                expected=f"offset {planned.end}",
                found=f"offset {reached}",
                next_step="check that the log was not reset or cut off since the range was planned",
            )

    @abstractmethod
    def _stream_behind(self, xa: PreparedXa) -> WindowStream:
        """The log from before an XA transaction that was prepared on another server."""

    @abstractmethod
    def _elsewhere(self, planned: LogRange, tables: Sequence[PlannedTable]) -> tuple[Windows, Sequence[PlannedTable]]:
        """The range's windows, and the tables with places in this log, where the range's file is another server's."""


def foreign_range(where: str, wanted: str, server: str) -> SourceError:
    """The error of a range that was planned on the server *wanted* and cannot be found on *server*."""
    return SourceError(
        "a range of another server's log, without GTIDs that would find it here",
        where=where,
        expected=f"server {wanted}",
        found=server,
        next_step="connect to the server that the range was planned on",
    )


def _has_last(found: Gtids, wanted: Gtids) -> bool:
    """Whether a scan up to *wanted* has met just that, and no transaction of its number that another server gave out."""
    if isinstance(found, MariadbGtids) and isinstance(wanted, MariadbGtids):
        return set(wanted.last) <= set(found.last)
    return missing_from(wanted, found) is None


def _with_all_before(transaction: Gtids) -> str:
    if isinstance(transaction, MariadbGtids):
        return str(transaction)
    return str(GtidSet.of({source: [(1, last)] for source, ((_, last), *_) in transaction}))


def _own(planned: PlannedRange) -> LogRange:
    if not isinstance(planned, LogRange):
        raise SourceError("a range of topics, and a reader of binlogs", where=str(planned))
    return planned
