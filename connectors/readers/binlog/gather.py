"""A buffer that log bytes are read into, and the windows made of the whole events in it."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.events import event_name
from connectors.readers.binlog.kernels.checksums import CRC_TABLES, first_wrong_checksum
from connectors.readers.binlog.kernels.finding import AT, COUNT, FIND_WORDS, NEEDED, OFFSET
from connectors.readers.binlog.window import Window
from historian.errors import LogCorrupt

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CHECKSUM_BYTES", "WINDOW_BYTES", "Gatherer", "check_sum"]

WINDOW_BYTES = 8 << 20
"""About how many bytes of log a window holds; one larger event makes it larger."""

CHECKSUM_BYTES = 4
_EVENTS = 1 << 17
_ZLIB_PAYS_FROM_BYTES = 1024


class Gatherer:
    """Owns one buffer and the index of events in it; the windows it gives are views that the next ones overwrite.

    Attributes:
        state: words of :mod:`kernels.finding`.
        fill: index behind the bytes read.
        checksum_bytes: that end each event, 4 or 0.
        server_version: that wrote the file, see :class:`Window`.
        given: offset behind the last event that was in a window.
    """

    def __init__(self, file: str, offset: int) -> None:
        self.buffer: NDArray[np.uint8] = np.empty(WINDOW_BYTES + (WINDOW_BYTES >> 1), np.uint8)
        self.starts: NDArray[np.int64] = np.empty(_EVENTS, np.int64)
        self.ends: NDArray[np.int64] = np.empty(_EVENTS, np.int64)
        self.offsets: NDArray[np.int64] = np.empty(_EVENTS, np.int64)
        self.state: NDArray[np.int64] = np.zeros(FIND_WORDS, np.int64)
        self.state[OFFSET] = offset
        self.file = file
        self.fill = 0
        self.checksum_bytes = 0
        self.server_version = 0
        self.given = offset
        self._look_up_addresses()

    @property
    def offset(self) -> int:
        """Of the first byte in the file that is in no event found yet."""
        return int(self.state[OFFSET])

    @property
    def missing_bytes(self) -> int:
        """How many bytes more the event that has begun takes; 1 where that is not known, 0 where none has begun."""
        waiting = self.fill - int(self.state[AT])
        return max(int(self.state[NEEDED]) - waiting, 1) if waiting else 0

    def arguments(self) -> tuple[int, int, int, int, int, int, int, int]:
        """What the kernels of :mod:`kernels.finding` take."""
        state, buffer, starts, ends, offsets = self._addresses
        return state, buffer, self.fill, starts, ends, offsets, _EVENTS, self.checksum_bytes

    def _look_up_addresses(self) -> None:
        arrays = (self.state, self.buffer, self.starts, self.ends, self.offsets)
        state, buffer, starts, ends, offsets = (array.ctypes.data for array in arrays)
        self._addresses = state, buffer, starts, ends, offsets
        self._bytes = memoryview(self.buffer)  # type: ignore[arg-type]

    def room(self) -> memoryview:
        """Where further bytes go; never empty. Call it only while no window is in use."""
        begin, needed = int(self.state[AT]), int(self.state[NEEDED])
        if not self.state[COUNT]:
            rest = self.buffer[begin : self.fill]
            if needed > len(self.buffer):
                larger = np.empty(needed + WINDOW_BYTES, np.uint8)
                larger[: len(rest)] = rest
                self.buffer = larger
                self._look_up_addresses()
            else:
                self.buffer[: len(rest)] = rest
            self.fill = len(rest)
            self.state[AT] = 0
        return self._bytes[self.fill :]

    def is_full(self) -> bool:
        """Whether what was found should be taken as a window before more is read."""
        found = int(self.state[COUNT])
        if not found:
            return False
        begin, needed = int(self.state[AT]), int(self.state[NEEDED])
        return (
            begin >= WINDOW_BYTES
            or found == _EVENTS
            or begin + needed > len(self.buffer)
            or self.fill == len(self.buffer)
        )

    def window(self, *, end: int | None = None) -> Window | None:
        """The events found, up to offset *end*, with checksums verified; None where there are none.

        Raises:
            LogCorrupt: a checksum is wrong.
        """
        count = int(self.state[COUNT])
        self.state[COUNT] = 0
        if end is not None:
            count = int(np.searchsorted(self.offsets[:count], end))
        if not count:
            return None
        window = Window(
            buffer=self.buffer,
            starts=self.starts[:count],
            ends=self.ends[:count],
            offsets=self.offsets[:count],
            file=self.file,
            server_version=self.server_version,
        )
        last = count - 1
        self.given = int(self.offsets[last] + self.ends[last] - self.starts[last]) + self.checksum_bytes
        if self.checksum_bytes:
            _verify(window)
        return window

    def begin_file(self, file: str, offset: int) -> None:
        """What follows is of *file*; the events found before have been taken."""
        self.file = file
        self.pass_to(offset)

    def pass_to(self, offset: int) -> None:
        """The file's bytes up to *offset* hold nothing for windows."""
        self.given = offset
        self.state[OFFSET] = offset


def _verify(window: Window) -> None:
    starts, ends, buffer = window.starts, window.ends, window.buffer
    wrong = first_wrong_checksum(
        CRC_TABLES.ctypes.data,
        buffer.ctypes.data,
        starts.ctypes.data,
        ends.ctypes.data,
        len(starts),
        _ZLIB_PAYS_FROM_BYTES,
    )
    if wrong >= 0:
        raise _wrong_checksum(window, wrong)
    view = memoryview(buffer)  # type: ignore[arg-type]
    for index in np.flatnonzero(ends - starts >= _ZLIB_PAYS_FROM_BYTES).tolist():
        start, end = int(starts[index]), int(ends[index])
        if zlib.crc32(view[start:end]).to_bytes(4, "little") != view[end : end + CHECKSUM_BYTES]:
            raise _wrong_checksum(window, index)


def _wrong_checksum(window: Window, index: int) -> LogCorrupt:
    start, end = int(window.starts[index]), int(window.ends[index])
    event = window.buffer[start : end + CHECKSUM_BYTES].tobytes()
    return _wrong(event, f"{window.file}:{int(window.offsets[index])}")


def check_sum(event: bytes, where: str) -> None:
    """Compares the sum of one *event* with the one in its last four bytes.

    Raises:
        LogCorrupt: they differ.
    """
    if zlib.crc32(event[:-CHECKSUM_BYTES]) != int.from_bytes(event[-CHECKSUM_BYTES:], "little"):
        raise _wrong(event, where)


def _wrong(event: bytes, where: str) -> LogCorrupt:
    stored = int.from_bytes(event[-CHECKSUM_BYTES:], "little")
    return LogCorrupt(
        f"the checksum of a {event_name(event[4])} event is wrong",
        where=where,
        expected=f"CRC32 {stored:08x}, as stored",
        found=f"{zlib.crc32(event[:-CHECKSUM_BYTES]):08x}",
        next_step="read this file from another copy of the log",
    )
