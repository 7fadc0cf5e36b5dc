"""Windows whose compressed events are unpacked: what stands between a log and whoever looks at its events.

The events of a transaction's payload take the offset of the payload; where they stand in their transaction, their
ordinal tells, as it does for the same transaction logged plainly.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.events.layout import HEADER_BYTES, event_name
from connectors.readers.binlog.kernels.log import unpacking as at
from connectors.readers.binlog.transport.window import Window
from historian.errors import LogCorrupt, UnsupportedEvent

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["unpacked"]

_PIECE_BYTES = 32 << 20
"""About how much a window of unpacked events holds; one larger event makes it larger."""

_QUERY, _LAST_ROWS = 165, 171
_PLAIN_KINDS = {165: 2, 166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}


def unpacked(windows: Iterable[Window], *, rows: bool = True) -> Iterator[Window]:
    """*windows* with plain events in place of TRANSACTION_PAYLOAD and of MariaDB's compressed events.

    A window without any is passed on as it is; one that grows beyond 32 MB comes in several.

    Args:
        rows: whether MariaDB's row events are wanted with their images; else they stay as they are.

    Raises:
        LogCorrupt: bytes that do not unpack to the events that they should be, with file and offset.
        UnsupportedEvent: an algorithm that this release does not know.
    """
    last = _LAST_ROWS if rows else _QUERY
    unpacker = _Unpacker(last)
    for window in windows:
        if at.first_packed(window.buffer.ctypes.data, window.starts.ctypes.data, len(window.starts), last) < 0:
            yield window
        else:
            yield from unpacker.windows(window)


class _Unpacker:
    """The memory that windows are unpacked into, which each overwrites."""

    def __init__(self, last_kind: int) -> None:
        self._last_kind = last_kind
        self._codec = pa.Codec("zstd")
        self._frames: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._buffer: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._index: NDArray[np.int64] = np.empty((3, 0), np.int64)

    def windows(self, window: Window) -> Iterator[Window]:
        parts = self._measured(window)
        sizes = parts[:, at.SIZE]
        behind_each = np.cumsum(sizes)
        first, count = 0, len(parts)
        while first < count:
            wanted = int(behind_each[first] - sizes[first]) + _PIECE_BYTES
            behind = max(first + 1, int(np.searchsorted(behind_each, wanted, "right")))
            if sizes[first] > _PIECE_BYTES and parts[first, at.HOW] in (at.ZSTD, at.RAW):
                yield from self._streamed(window, parts, first)
            else:
                yield self._spliced(window, parts, first, behind, self._contents(window, parts, first, behind))
            first = behind

    def _measured(self, window: Window) -> NDArray[np.int64]:
        parts: NDArray[np.int64] = np.empty((len(window.starts), at.PART_WORDS), np.int64)
        buffer, starts, ends = (array.ctypes.data for array in (window.buffer, window.starts, window.ends))
        wrong = at.measure(buffer, starts, ends, len(parts), self._last_kind, parts.ctypes.data)
        if wrong >= 0:
            if parts[wrong, at.HOW] == at.UNKNOWN:
                raise UnsupportedEvent(
                    f"a {_name(window, wrong)} event with an algorithm that this release does not know",
                    where=_where(window, wrong),
                )
            raise _damaged(window, wrong, "its own fields overrun it")
        return parts

    def _contents(self, window: Window, parts: NDArray[np.int64], first: int, behind: int) -> Any:
        """What the packed events in [first, behind) hold, one behind the other; None where nothing is unpacked."""
        how = parts[first:behind, at.HOW]
        if (how == at.ZLIB).any():
            packed = (np.flatnonzero((how == at.ZLIB) | (how == at.ZSTD)) + first).tolist()
            return b"".join(self._content(window, parts, index) for index in packed)
        total = int(parts[first:behind, at.SIZE][how == at.ZSTD].sum())
        if not total:
            return None
        length = int(parts[first:behind, at.LENGTH][how == at.ZSTD].sum())
        if length > len(self._frames):
            self._frames = np.empty(length + length // 4, np.uint8)
        # One call for all: each has its cost, and frames that follow each other unpack like one.
        at.collect(parts.ctypes.data, first, behind, window.buffer.ctypes.data, self._frames.ctypes.data)
        try:
            return self._codec.decompress(self._frames[:length], total)
        except (OSError, pa.ArrowException) as error:
            for index in (np.flatnonzero(how == at.ZSTD) + first).tolist():
                self._content(window, parts, index)
            raise _damaged(window, first, f"frames that do not end where their events do: {error}") from error

    def _content(self, window: Window, parts: NDArray[np.int64], index: int) -> bytes:
        """What one packed event holds."""
        how, start, length, size = parts[index].tolist()
        if how == at.ZLIB:
            return _plain(window, parts, index)
        try:
            data: bytes = self._codec.decompress(window.buffer[start : start + length], size, asbytes=True)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(window, index, str(error)) from error
        return data

    def _spliced(self, window: Window, parts: NDArray[np.int64], first: int, behind: int, contents: Any) -> Window:
        size = int(parts[first:behind, at.SIZE].sum())
        room = behind - first + size // HEADER_BYTES
        if size > len(self._buffer):
            self._buffer = np.empty(size + size // 4, np.uint8)
        if room > self._index.shape[1]:
            self._index = np.empty((3, room + room // 4), np.int64)
        starts, ends, offsets = self._index
        read = (window.buffer, window.starts, window.offsets)
        buffer, begins, places = (array.ctypes.data for array in read)
        source = 0 if contents is None else _address(contents)
        written = [array.ctypes.data for array in (self._buffer, starts, ends, offsets)]
        count = at.splice(parts.ctypes.data, first, behind, buffer, begins, places, source, *written)
        if count < 0:
            raise _damaged(window, -1 - count, "its unpacked bytes do not end where an event ends")
        return Window(
            buffer=self._buffer[:size],
            starts=starts[:count],
            ends=ends[:count],
            offsets=offsets[:count],
            file=window.file,
            server_version=window.server_version,
        )

    def _streamed(self, window: Window, parts: NDArray[np.int64], index: int) -> Iterator[Window]:
        """The windows of a payload that is too large to be unpacked at once."""
        how, start, length, left = parts[index].tolist()
        source: Any = pa.BufferReader(pa.py_buffer(window.buffer[start : start + length]))
        if how == at.ZSTD:
            source = pa.CompressedInputStream(source, "zstd")
        rest, wanted = b"", _PIECE_BYTES
        part = parts[: index + 1].copy()
        while left:
            try:
                more = source.read(min(wanted, left))
            except (OSError, pa.ArrowException) as error:
                raise _damaged(window, index, str(error)) from error
            if not more:
                raise _damaged(window, index, f"{left} bytes are missing")
            left -= len(more)
            data = rest + more
            whole = at.whole_events(_address(data), len(data))
            if whole < 0 or (not left and whole != len(data)):
                raise _damaged(window, index, "its unpacked bytes do not end where an event ends")
            rest = data[whole:]
            wanted = _PIECE_BYTES
            if len(rest) >= HEADER_BYTES:
                wanted = max(wanted, int.from_bytes(rest[9:13], "little") - len(rest))
            if whole:
                part[index] = (at.ZSTD, 0, 0, whole)
                yield self._spliced(window, part, index, index + 1, data)
        if source.read(1):
            raise _damaged(window, index, "it unpacks to more bytes than it says")


def _address(data: Any) -> int:
    if isinstance(data, pa.Buffer):
        return int(data.address)
    return int(np.frombuffer(data, np.uint8).ctypes.data)


def _plain(window: Window, parts: NDArray[np.int64], index: int) -> bytes:
    """The plain event that a compressed one of MariaDB stands for."""
    start, length, size = parts[index, at.START :].tolist()
    begin = int(window.starts[index])
    head = window.buffer[begin:start].tobytes()
    width = 1 + (int(window.buffer[start]) & 7)
    unpacker = zlib.decompressobj()
    wanted = size - len(head)
    try:
        # One byte more than it may have, so that a stream that goes on is seen.
        body = unpacker.decompress(memoryview(window.buffer)[start + width : start + length], wanted + 1)  # type: ignore[arg-type]
    except zlib.error as error:
        raise _damaged(window, index, str(error)) from error
    if len(body) != wanted or not unpacker.eof:
        raise _damaged(window, index, f"{len(body)} bytes or more of {wanted}")
    kind = bytes([_PLAIN_KINDS[head[4]]])
    return b"".join((head[:4], kind, head[5:9], size.to_bytes(4, "little"), head[13:], body))


def _name(window: Window, index: int) -> str:
    return event_name(int(window.buffer[int(window.starts[index]) + 4]))


def _where(window: Window, index: int) -> str:
    return f"{window.file}:{int(window.offsets[index])}"


def _damaged(window: Window, index: int, found: str) -> LogCorrupt:
    return LogCorrupt(
        f"a {_name(window, index)} event cannot be unpacked",
        where=_where(window, index),
        found=found,
        next_step="read this file from another copy of the log",
    )
