"""Buffers that log bytes are read into, and the windows made of the whole events in them."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.events.layout import event_name
from connectors.readers.binlog.kernels.log.finding import AT, COUNT, FIND_WORDS, NEEDED, OFFSET
from connectors.readers.binlog.kernels.machine.checksums import CRC_TABLES, first_wrong_checksum, first_wrong_folded
from connectors.readers.binlog.kernels.machine.folding import CAN_FOLD, WIDE_FROM_BYTES
from connectors.readers.binlog.transport.window import Window
from historian.errors import LogCorrupt

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CHECKSUM_BYTES", "FRAMES", "FRAME_BYTES", "WINDOW_BYTES", "ReadBuffer", "check_sum"]

WINDOW_BYTES = 4 << 20
"""About how many bytes of log a window holds; one larger event makes it larger."""

FRAMES = 3
"""Windows that may be there at a time: one in use, one ready, one being filled."""

CHECKSUM_BYTES = 4
FRAME_BYTES = WINDOW_BYTES + (WINDOW_BYTES >> 1)
"""The size of frames; a window in a larger one is valid only until the next one is asked for."""

_STAYS_LARGE_WINDOWS = 8
_EVENTS = 1 << 16
_ZLIB_PAYS_FROM_BYTES = 1024


class _Frame:
    """The memory of one window: bytes, and the index of events in them."""

    def __init__(self, size: int) -> None:
        self.index: NDArray[np.int64] = np.empty((3, _EVENTS), np.int64)
        self.resize(size)

    def resize(self, size: int) -> None:
        """Takes other memory for the bytes."""
        self.buffer: NDArray[np.uint8] = np.empty(size, np.uint8)
        self.bytes = memoryview(self.buffer)  # type: ignore[arg-type]
        starts, ends, offsets = (part.ctypes.data for part in self.index)
        self.addresses = (self.buffer.ctypes.data, starts, ends, offsets)


class ReadBuffer:
    """Owns a few frames that windows are made in, in turn: one stays valid while the next FRAMES - 1 are made.

    Attributes:
        state: words of :mod:`kernels.finding`.
        fill: index behind the bytes read.
        checksum_bytes: that end each event, 4 or 0.
        server_version: that wrote the file, see :class:`Window`.
        given: offset behind the last event that was in a window.
    """

    def __init__(self, file: str, offset: int) -> None:
        self._frames = [_Frame(FRAME_BYTES)]
        self._number = 0
        self._is_given = False
        self._small_windows = 0
        self.state: NDArray[np.int64] = np.zeros(FIND_WORDS, np.int64)
        self.state[OFFSET] = offset
        self._state_address = self.state.ctypes.data
        self.file = file
        self.fill = 0
        self.checksum_bytes = 0
        self.server_version = 0
        self.given = offset

    @property
    def buffer(self) -> NDArray[np.uint8]:
        """The bytes of the frame that is being filled."""
        return self._frames[self._number].buffer

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
        self._turn()
        buffer, starts, ends, offsets = self._frames[self._number].addresses
        return self._state_address, buffer, self.fill, starts, ends, offsets, _EVENTS, self.checksum_bytes

    def _turn(self) -> None:
        """Goes on in the next frame where this one's window was given away."""
        if not self._is_given:
            return
        self._is_given = False
        begin, needed = int(self.state[AT]), int(self.state[NEEDED])
        rest = self.buffer[begin : self.fill]
        if len(self.buffer) > FRAME_BYTES:
            # Where one large event came, others may follow; all in one frame, since several would fill the memory.
            self._small_windows = 0 if max(begin, needed, len(rest)) > FRAME_BYTES else self._small_windows + 1
            if self._small_windows < _STAYS_LARGE_WINDOWS:
                self._move(rest)
                return
            self._frames[self._number] = _Frame(FRAME_BYTES)
        self._number = (self._number + 1) % FRAMES
        if self._number == len(self._frames):
            self._frames.append(_Frame(FRAME_BYTES))
        # There is room for a large event when its bytes are asked for.
        if len(rest) > WINDOW_BYTES:
            self._frames[self._number].resize(len(rest) + WINDOW_BYTES)
        self._move(rest)

    def _move(self, rest: NDArray[np.uint8]) -> None:
        """Puts the bytes that are in no event yet to the front of the frame."""
        self.buffer[: len(rest)] = rest
        self.fill = len(rest)
        self.state[AT] = 0

    def room(self) -> memoryview:
        """Where further bytes go; never empty."""
        self._turn()
        frame = self._frames[self._number]
        begin, needed = int(self.state[AT]), int(self.state[NEEDED])
        if not self.state[COUNT] and (begin or needed > len(frame.buffer)):
            rest = frame.buffer[begin : self.fill]
            if needed > len(frame.buffer):
                frame.resize(needed + WINDOW_BYTES)
            self._move(rest)
        return frame.bytes[self.fill :]

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
        frame = self._frames[self._number]
        starts, ends, offsets = frame.index[:, :count]
        if end is not None and count and offsets[-1] >= end:
            count = int(np.searchsorted(offsets, end))
        if not count:
            return None
        self._is_given = True
        window = Window(
            buffer=frame.buffer,
            starts=starts[:count],
            ends=ends[:count],
            offsets=offsets[:count],
            file=self.file,
            server_version=self.server_version,
        )
        last = count - 1
        self.given = int(offsets[last] + ends[last] - starts[last]) + self.checksum_bytes
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
    addresses = (CRC_TABLES.ctypes.data, buffer.ctypes.data, starts.ctypes.data, ends.ctypes.data)
    if CAN_FOLD:
        scratch = np.empty(2, np.int64)
        wrong = first_wrong_folded(*addresses, len(starts), scratch.ctypes.data, WIDE_FROM_BYTES)
    else:
        wrong = first_wrong_checksum(*addresses, len(starts), _ZLIB_PAYS_FROM_BYTES)
    if wrong >= 0:
        raise _wrong_checksum(window, wrong)
    if CAN_FOLD:
        return
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
