"""Windows in which the rows of a prepared XA transaction stand where it is committed.

Small transactions are held as bytes until their XA COMMIT; what is larger is read from the log again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace

from connectors.readers.binlog.events.layout import GTID_EVENTS, HEADER_BYTES, EventType, event_name, header
from connectors.readers.binlog.kernels.log.xa import BEGIN, BEGIN_MARIADB, COMMIT, next_end, next_xa
from connectors.readers.binlog.scan.open_transactions import outcome, prepared_xid
from connectors.readers.binlog.transport.failover import event_text
from connectors.readers.binlog.transport.window import Committed, Window
from historian.errors import LogCorrupt
from historian.plans.plans import LogRange, PreparedRows
from historian.positions import PreparedXa

__all__ = ["HELD_BYTES", "CommitOrder"]

HELD_BYTES = 1 << 20
"""A prepared transaction of more bytes is read again at its commit."""

ALL_HELD_BYTES = 64 << 20
_MYSQL_GTIDS = frozenset((EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED))


@dataclass(slots=True)
class _Held:
    """An XA transaction of the range: where it is, and its events while they are few."""

    xa: PreparedXa
    parts: list[Window] | None = field(default_factory=list)
    size_bytes: int = 0


class CommitOrder:
    """Reorders one range.

    Args:
        planned: the range.
        again: gives the windows of an XA transaction that is read again, from its GTID event to its XA_PREPARE.
        flavor, server: of the log that the range is read from.
    """

    def __init__(
        self,
        planned: LogRange,
        again: Callable[[PreparedXa], Iterator[Window]],
        *,
        flavor: str,
        server: str,
    ) -> None:
        self._again = again
        self._flavor, self._server, self._after = flavor, server, planned.after
        self._prepared: dict[str, PreparedRows | _Held] = {rows.xa.xid: rows for rows in planned.prepared}
        self._rolled_back = planned.rolled_back
        self._open: _Held | None = None
        self._announced: Window | None = None
        self._total_bytes = 0

    def windows(self, windows: Iterable[Window]) -> Iterator[Window]:
        """The events of *windows* in the order in which they count.

        Raises:
            LogCorrupt: an XA COMMIT of a transaction that the range does not know.
            LogPurged: rows that must be read again are no longer in the log.
        """
        for window in windows:
            yield from self._window(window)
        if self._announced is not None:
            yield self._announced
        if self._open is not None:
            yield from self._as_they_are(self._open)

    def _window(self, window: Window) -> Iterator[Window]:
        at, count = 0, len(window.starts)
        while at < count:
            if self._open is not None:
                at = yield from self._receive(window, at, self._open)
                continue
            buffer, starts, ends = (part.ctypes.data for part in (window.buffer, window.starts, window.ends))
            found = next_xa(buffer, starts, ends, at, count)
            index, kind = (found >> 3, found & 7) if found >= 0 else (count, 0)
            if kind == BEGIN and index == at and self._announced is not None:
                self._begin(self._announced)
                self._announced = None
                continue
            behind = index - 1 if kind == BEGIN else index
            yield from self._released()
            last = window.buffer[int(window.starts[count - 1]) + 4]
            if index == count and last in _MYSQL_GTIDS:
                # What follows says whether it begins an XA transaction.
                behind -= 1
                self._announced = window.part(behind, count).copied()
            if behind > at:
                yield window.part(at, behind) if (at, behind) != (0, count) else window
            if kind in (BEGIN, BEGIN_MARIADB):
                if behind < at:
                    raise _stray(window, index)
                self._begin(window.part(behind, behind + 1).copied())
                at = behind + 1
            elif kind:
                yield from self._settle(window, index, commits=kind == COMMIT)
                yield window.part(index, index + 1)
                at = index + 1
            else:
                at = count

    def _released(self) -> Iterator[Window]:
        if self._announced is not None:
            yield self._announced
            self._announced = None

    # ---- prepared in the range ---------------------------------------------------------------------------------------
    def _begin(self, announced: Window) -> None:
        if announced.buffer[int(announced.starts[0]) + 4] not in GTID_EVENTS:
            raise _stray(announced, 0)
        gtid = event_text(announced.event(0), self._flavor, announced.where(0))
        offset = int(announced.offsets[0])
        parts = ((b.first, b.last) for b in self._rolled_back if _is_of(b.gtid, b.file, b.offset, announced, gtid))
        xa = PreparedXa(
            xid="",
            gtid=gtid,
            file=announced.file,
            offset=offset,
            server=self._server,
            after=self._after,
            rolled_back=tuple(parts),
        )
        self._open = _Held(xa, [announced])

    def _receive(self, window: Window, at: int, held: _Held) -> Generator[Window, None, int]:
        """Takes events into the open transaction; gives the index behind them."""
        count = len(window.starts)
        end = next_end(window.buffer.ctypes.data, window.starts.ctypes.data, at, count)
        is_prepare = end < count and window.buffer[int(window.starts[end]) + 4] == EventType.XA_PREPARE
        behind = end + 1 if is_prepare else end
        self._keep(held, window, at, behind)
        if end == count:
            return behind
        self._open = None
        event = window.event(end)
        if not is_prepare or event[HEADER_BYTES : HEADER_BYTES + 1] != b"\0":
            # Committed in one phase, or ended otherwise: the rows count where they stand.
            yield from self._as_they_are(held)
            return behind
        held.xa = replace(held.xa, xid=prepared_xid(event, window.where(end)))
        if held.parts is not None:
            self._total_bytes += held.size_bytes
            if self._total_bytes > ALL_HELD_BYTES:
                self._total_bytes -= held.size_bytes
                held.parts = None
        self._prepared[held.xa.xid] = held
        return behind

    def _keep(self, held: _Held, window: Window, at: int, behind: int) -> None:
        if held.parts is None or behind == at:
            return
        held.size_bytes += int(window.ends[behind - 1] - window.starts[at])
        if held.size_bytes > HELD_BYTES:
            held.parts = None
        else:
            held.parts.append(window.part(at, behind).copied())

    def _as_they_are(self, held: _Held) -> Iterator[Window]:
        yield from held.parts if held.parts is not None else self._again(held.xa)

    # ---- committed in the range --------------------------------------------------------------------------------------
    def _settle(self, window: Window, index: int, *, commits: bool) -> Iterator[Window]:
        _, xid = outcome(window.event(index), window.where(index))
        found = self._prepared.pop(xid, None)
        if isinstance(found, _Held) and found.parts is not None:
            self._total_bytes -= found.size_bytes
        if not commits:
            return
        if found is None:
            raise LogCorrupt(
                "an XA COMMIT of a transaction that was not prepared in the range, and that the plan does not name",
                where=window.where(index),
                found=xid,
                next_step="check that the log was not reset or cut off since the range was planned",
            )
        committed = Committed(
            file=window.file,
            offset=int(window.offsets[index]),
            time_us=header(window.event(index)).timestamp * 1_000_000,
            tables=None if isinstance(found, _Held) else found.tables,
        )
        if isinstance(found, _Held):
            windows = self._as_they_are(found)
        elif found.tables:
            windows = self._again(found.xa)
        else:
            return
        first = True
        for each in windows:
            count = len(each.starts)
            is_last = each.buffer[int(each.starts[count - 1]) + 4] == EventType.XA_PREPARE
            part = each.part(1 if first else 0, count - is_last)
            first = False
            if len(part.starts):
                yield replace(part, committed=committed)


def _is_of(gtid: str, file: str, offset: int, window: Window, own: str) -> bool:
    return gtid == own if own else (file, offset) == (window.file, int(window.offsets[0]))


def _stray(window: Window, index: int) -> LogCorrupt:
    name = event_name(window.event(index)[4])
    return LogCorrupt(f"an XA transaction begins without a GTID event ({name} event)", where=window.where(index))
