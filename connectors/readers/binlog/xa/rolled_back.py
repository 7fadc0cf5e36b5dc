"""Windows without the rows that were taken back in their own transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from connectors.readers.binlog.events.layout import GTID_EVENTS, EventType
from connectors.readers.binlog.transport.failover import event_text
from connectors.readers.binlog.transport.window import Window
from historian.plans.plans import RolledBack

__all__ = ["without_rolled_back"]

_ROWS = (*range(EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1 + 1), *range(30, 33), EventType.PARTIAL_UPDATE_ROWS)
_OF_FILE_OR_CONNECTION = (3, 4, 15, 27, 35, 41, 161, 163)


def without_rolled_back(
    windows: Iterable[Window], parts: Sequence[RolledBack], *, flavor: str, by_gtid: bool
) -> Iterator[Window]:
    """*windows* in which the row events of *parts* are IGNORABLE events, so that all others keep their ordinals.

    Args:
        windows: of unpacked events; a buffer that can be written is written to.
        parts: of their transactions.
        by_gtid: the windows are of another server than the one whose offsets the parts have.
    """
    wanted: dict[object, list[tuple[int, int]]] = {}
    for part in parts:
        key = part.gtid if by_gtid else (part.file, part.offset)
        wanted.setdefault(key, []).append((part.first, part.last))
    offsets = np.array([part.offset for part in parts], np.int64)
    open_parts: list[tuple[int, int]] = []
    ordinal = -1
    for window in windows:
        kinds = window.buffer[window.starts + 4]
        counted = ~np.isin(kinds, _OF_FILE_OR_CONNECTION)
        begins = np.flatnonzero(np.isin(kinds, GTID_EVENTS))
        marked = begins if by_gtid else begins[np.isin(window.offsets[begins], offsets)]
        first_begin = int(begins[0]) if len(begins) else len(kinds)
        places = [(0, first_begin)] if open_parts else []
        behind_each = np.append(begins, len(kinds))
        places += [(at, int(behind_each[np.searchsorted(begins, at) + 1])) for at in marked.tolist()]
        for at, behind in places:
            if at in marked:
                ordinal = -1
                place = window.file, int(window.offsets[at])
                key = event_text(window.event(at), flavor, window.where(at)) if by_gtid else place
                open_parts = wanted.get(key, [])
            numbers = ordinal + np.cumsum(counted[at:behind])
            for first, last in open_parts:
                inside = (numbers >= first) & (numbers <= last) & np.isin(kinds[at:behind], _ROWS)
                if not window.buffer.flags.writeable:
                    window = window.copied()  # noqa: PLW2901 - the bytes of a scan are kept for every reading
                window.buffer[window.starts[at:behind][inside] + 4] = EventType.IGNORABLE
            ordinal = int(numbers[-1]) if len(numbers) else ordinal
        if len(begins) and (not len(marked) or int(marked[-1]) != int(begins[-1])):
            open_parts = []
        yield window
