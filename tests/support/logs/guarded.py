"""Memory that ends where a page begins that nobody may touch: a read behind it ends the process."""

from __future__ import annotations

import ctypes
import mmap
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.transport.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

__all__ = ["guarded", "guarded_room", "one_by_one"]

PROT_NONE = 0
_ROOM_BYTES = 1 << 14
_ROOMS = 3
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def guarded_room(size: int) -> NDArray[np.uint8]:
    """So many bytes in front of such a page; the memory goes with the array."""
    pages = -(-size // mmap.PAGESIZE)
    mapped = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    everything = np.frombuffer(mapped, np.uint8)
    if _LIBC.mprotect(everything.ctypes.data + pages * mmap.PAGESIZE, mmap.PAGESIZE, PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
    return everything[pages * mmap.PAGESIZE - size : pages * mmap.PAGESIZE]


def guarded(data: bytes | NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A copy of *data* in such memory."""
    room = guarded_room(len(data))
    room[:] = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    return room


def one_by_one(windows: Iterable[Window]) -> Iterator[Window]:
    """Each event of *windows* in a window of its own, behind whose last byte nothing can be read.

    Like those of a reader they are overwritten later.
    """
    rooms = cycle([guarded_room(_ROOM_BYTES) for _ in range(_ROOMS)])
    for window in windows:
        for start, end, offset in zip(
            window.starts.tolist(), window.ends.tolist(), window.offsets.tolist(), strict=True
        ):
            event = window.buffer[start:end]
            if len(event) <= _ROOM_BYTES:
                buffer = next(rooms)[_ROOM_BYTES - len(event) :]
                buffer[:] = event
            else:
                buffer = guarded(event)
            yield Window(
                buffer=buffer,
                starts=np.array([0]),
                ends=np.array([end - start]),
                offsets=np.array([offset]),
                file=window.file,
                server_version=window.server_version,
            )
