"""Memory that ends where a page begins that nobody may touch: a read behind it ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

__all__ = ["guarded", "guarded_room", "one_by_one"]

PROT_NONE = 0
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
    """Each event of *windows* in a window of its own, behind whose last byte nothing can be read."""
    for window in windows:
        for start, end, offset in zip(window.starts, window.ends, window.offsets, strict=True):
            yield Window(
                buffer=guarded(window.buffer[start:end]),
                starts=np.zeros(1, np.int64),
                ends=np.full(1, end - start, np.int64),
                offsets=np.full(1, offset, np.int64),
                file=window.file,
                server_version=window.server_version,
            )
