"""Windows cut down to the transactions of a set, as a range is read on a server that it was not planned on; and where each begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from connectors.readers.binlog.events.gtid_sources import event_gtid
from connectors.readers.binlog.events.layout import GTID_EVENTS, EventType
from connectors.readers.binlog.transport.failover import event_text
from connectors.readers.binlog.transport.window import Window
from historian.errors import LogPurged
from historian.positions import GtidSet, MariadbGtids, parse_gtids

__all__ = ["members", "noted"]


def members(windows: Iterable[Window], *, after: str, upto: str, flavor: str) -> Iterator[Window]:
    """The events of the transactions in *upto* that are not in *after*, each once; ends when all have come.

    Raises:
        LogPurged: the windows end before that.
    """
    wanted = _Wanted(after, upto, flavor)
    keep = False
    for window in windows:
        kinds = window.buffer[window.starts + 4]
        begins = np.flatnonzero(np.isin(kinds, GTID_EVENTS))
        kept = np.full(len(kinds), keep)
        for index, behind in pairwise([*begins.tolist(), len(kinds)]):
            if wanted.is_empty and not keep:
                break
            start, end = int(window.starts[index]), int(window.ends[index])
            where = f"{window.file}:{window.offsets[index]}"
            keep = wanted.take(window.buffer[start:end].tobytes(), where)
            kept[index:behind] = keep
        if kept.any():
            yield Window(
                buffer=window.buffer,
                starts=window.starts[kept],
                ends=window.ends[kept],
                offsets=window.offsets[kept],
                file=window.file,
                server_version=window.server_version,
            )
        if wanted.is_empty and not keep:
            return
    if not wanted.is_empty:
        raise LogPurged(
            "transactions of the range are not in this server's log",
            where=str(wanted),
            expected=f"all of {upto} behind {after or 'the beginning'}",
            next_step="wait until the server has them, or go back to the one that the range was planned on",
        )


def noted(windows: Iterable[Window], begun: dict[str, int], *, flavor: str, by_gtid: bool) -> Iterator[Window]:
    """*windows* as they are; *begun* is filled with where each transaction that has a GTID begins, by that.

    Args:
        by_gtid: the windows are of several files, so that their number in the order of the log counts and no offset.
    """
    for window in windows:
        for index in np.flatnonzero(np.isin(window.buffer[window.starts + 4], GTID_EVENTS)).tolist():
            gtid = event_text(window.event(index), flavor, window.where(index))
            if gtid:
                begun[gtid] = len(begun) if by_gtid else int(window.offsets[index])
        yield window


class _Wanted:
    """The transactions that are still to come."""

    def __init__(self, after: str, upto: str, flavor: str) -> None:
        self._after, self._upto = parse_gtids(after, flavor), parse_gtids(upto, flavor)
        self._left: dict[str, int] | None = None
        if isinstance(self._after, GtidSet) and isinstance(self._upto, GtidSet):
            missing = self._upto.subtract(self._after)
            self._left = {source: sum(b - a + 1 for a, b in ranges) for source, ranges in missing}
            self._missing = missing
        elif isinstance(self._after, MariadbGtids) and isinstance(self._upto, MariadbGtids):
            self._domains = {d: last for d, _, last in self._upto.last if last > self._after.sequence(d)}

    @property
    def is_empty(self) -> bool:
        return not (self._domains if self._left is None else self._left)

    def __str__(self) -> str:
        return ", ".join(map(str, self._domains if self._left is None else self._left))

    def take(self, event: bytes, where: str) -> bool:
        """Whether the transaction that this GTID event begins is wanted; it then no longer is."""
        if self._left is None:
            return self._take_mariadb(event)
        if event[4] == EventType.ANONYMOUS_GTID:
            return False
        source, number = event_gtid(event, where)
        if not self._missing.contains(source, number):
            return False
        self._left[source] -= 1
        if not self._left[source]:
            del self._left[source]
        return True

    def _take_mariadb(self, event: bytes) -> bool:
        domain, number = int.from_bytes(event[27:31], "little"), int.from_bytes(event[19:27], "little")
        last = self._domains.get(domain)
        if last is None or number > last:
            return False
        if number == last:
            del self._domains[domain]
        return True
