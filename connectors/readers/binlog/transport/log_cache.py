"""The bytes of a scan, kept so that nobody has to read them from the server again."""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from connectors.readers.base import CachedLog
from connectors.readers.binlog.transport.window import Window
from connectors.readers.room import Room
from historian.plans.plans import LogRange

__all__ = ["MAX_KEPT_BYTES", "LogBytes", "LogCache", "cached_windows"]

MAX_KEPT_BYTES = 1 << 20
"""Of a scan whose rows others may read no more log than this is kept: reading it again costs less than sending it along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBytes:
    """Events that follow each other; a :class:`connectors.readers.base.CachedLog`.

    Attributes:
        events: their bytes, checksums verified; ``index``: where each stands.
        server_version: that wrote them, as a number.
    """

    events: pa.Buffer
    index: bytes
    server_version: int

    @property
    def size_bytes(self) -> int:
        """See :class:`connectors.readers.base.CachedLog`."""
        return int(self.events.size)


class LogCache:
    """What one scan of *server*'s log has read, from *offset* of *file* on, as far as there is *room*.

    Room is given back when nobody has the bytes any more.
    """

    def __init__(self, server: str, file: str, offset: int, room: Room) -> None:
        self._server, self._begin, self._room = server, (file, offset), room
        self._windows: list[tuple[str, int, int, LogBytes]] = []
        self._reached: dict[str, int] = {}
        self._is_full = False

    def add(self, window: Window, reached: int) -> None:
        """Takes a window behind the ones before; *reached*: offset behind its last event."""
        if self._is_full:
            return
        begin, behind = int(window.starts[0]), int(window.ends[-1])
        # Arrow's memory, unlike new bytes, is used again without being cleared.
        events = pa.allocate_buffer(behind - begin)
        self._is_full = not self._room.take(behind - begin)
        if self._is_full:
            return
        weakref.finalize(events, self._room.give, behind - begin).atexit = False
        np.frombuffer(events, np.uint8)[:] = window.buffer[begin:behind]
        index = np.stack([window.starts - begin, window.ends - begin, window.offsets])
        kept = LogBytes(events=events, index=index.tobytes(), server_version=window.server_version)
        self._windows.append((window.file, int(window.offsets[0]), reached, kept))
        self._reached[window.file] = reached

    def cached(self, planned: LogRange) -> list[LogBytes] | None:
        """The parts that hold the range, to be read once; None where not all of it is here."""
        file, offset = self._begin
        if planned.server != self._server or self._reached.get(planned.file, 0) < planned.end:
            return None
        if planned.file == file and planned.start < offset:
            return None
        return [
            part
            for name, first, reached, part in self._windows
            if name == planned.file and first < planned.end and reached > planned.start
        ]


def cached_windows(planned: LogRange, parts: Sequence[CachedLog]) -> Generator[Window, None, None]:
    """The windows of a range, of what :meth:`LogCache.cached` gave for it.

    A list is emptied as it is read: rows are made in the memory of the log that they were made of. To be given new memory takes as long as to decode.
    """
    for part in _taken(parts) if isinstance(parts, list) else parts:
        if not isinstance(part, LogBytes):
            raise TypeError(part)
        starts, ends, offsets = np.frombuffer(part.index, np.int64).reshape(3, -1)
        first, behind = np.searchsorted(offsets, (planned.start, planned.end)).tolist()
        if first < behind:
            yield Window(
                buffer=np.frombuffer(part.events, np.uint8),
                starts=starts[first:behind],
                ends=ends[first:behind],
                offsets=offsets[first:behind],
                file=planned.file,
                server_version=part.server_version,
            )


def _taken(parts: list[CachedLog]) -> Iterator[CachedLog]:
    parts.reverse()
    while parts:
        yield parts.pop()
