"""Windows of recorded binlog files, cut in plain Python: what the decoder's tests feed, whatever the readers do."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from connectors.readers.binlog.transport.window import Window

__all__ = ["file_windows", "window_of"]

MAGIC_BYTES = 4
HEADER = struct.Struct("<IBIIIH")
CHECKSUM_BYTES = 4


def file_windows(
    path: Path, *, start: int = MAGIC_BYTES, events: int | None = None, version: int = 0
) -> Iterator[Window]:
    """The events of a file from byte *start*, *events* a window; checksums are assumed, as servers write by default."""
    raw = path.read_bytes()
    bounds: list[tuple[int, int]] = []
    at = MAGIC_BYTES
    while at + HEADER.size <= len(raw):
        size = HEADER.unpack_from(raw, at)[3]
        if at >= start:
            bounds.append((at, at + size))
        at += size
    buffer = np.frombuffer(raw, np.uint8)
    step = events or max(1, len(bounds))
    for first in range(0, len(bounds), step):
        some = np.array(bounds[first : first + step], np.int64)
        starts = np.ascontiguousarray(some[:, 0])
        ends = np.ascontiguousarray(some[:, 1] - CHECKSUM_BYTES)
        yield Window(buffer=buffer, starts=starts, ends=ends, offsets=starts, file=path.name, server_version=version)


def window_of(events: list[bytes], *, file: str = "binlog.000001", offset: int = 4) -> Window:
    """One window of *events* without checksums, the first at *offset* of *file*."""
    ends = np.cumsum([len(event) for event in events], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    buffer = np.frombuffer(b"".join(events), np.uint8)
    return Window(buffer=buffer, starts=starts, ends=ends, offsets=starts + offset, file=file)
