"""Chunks on their way: in memory, beyond a limit in a temporary file."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

import pyarrow as pa

from historian.changelog.chunks import Chunk, chunk_row, chunks_of, ipc_stream

__all__ = ["Spool", "chunk_body", "chunk_of"]

_MEMORY_BYTES = 128 << 20


def chunk_body(chunk: Chunk, compression: str = "zstd") -> bytes:
    """*chunk* as an Arrow IPC stream of one row of :data:`historian.changelog.chunks.CHUNK_STREAM`, its rows compressed."""
    return bytes(ipc_stream(chunk_row(chunk, compression=compression)))


def chunk_of(body: bytes) -> Chunk:
    """The chunk that :func:`chunk_body` wrote."""
    (chunk,) = chunks_of(pa.ipc.open_stream(body).read_next_batch())
    return chunk


class Spool:
    """Chunks, and their bodies, by the order of their sequence; threads may add to it. Gone through as often as wanted. Close it at the end, or forget it."""

    def __init__(self, memory_bytes: int = _MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._held: list[tuple[int, int, Chunk | tuple[int, int]]] = []
        self._held_bytes = 0
        self._end = 0

    def add(self, chunk: Chunk) -> None:
        """Takes *chunk* last."""
        with self._lock:
            fits = self._held_bytes + chunk.rows.nbytes <= self._memory_bytes
            if fits:
                self._held_bytes += chunk.rows.nbytes
                self._held.append((chunk.table_id, chunk.sequence, chunk))
        if fits:
            return
        # What is read again soon takes little time to pack; a store is to be small.
        body = chunk_body(chunk, "lz4")
        with self._lock:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="historian-")  # noqa: SIM115 closed with the spool
                weakref.finalize(self, self._file.close)
            self._file.seek(self._end)
            self._file.write(body)
            self._held.append((chunk.table_id, chunk.sequence, (self._end, len(body))))
            self._end += len(body)

    def __iter__(self) -> Iterator[bytes]:
        """The bodies, in the order of their chunks' sequence."""
        for held in self._in_order():
            yield chunk_body(held) if isinstance(held, Chunk) else self._read(*held)

    def chunks(self, table_id: int | None = None) -> Iterator[Chunk]:
        """The chunks, or those of one table, in that order."""
        for held in self._in_order(table_id):
            yield held if isinstance(held, Chunk) else chunk_of(self._read(*held))

    @property
    def held_bytes(self) -> int:
        """Of the chunks in memory, as Arrow."""
        return self._held_bytes

    def __len__(self) -> int:
        return len(self._held)

    def close(self) -> None:
        """Frees memory and file."""
        self._held = []
        if self._file is not None:
            with suppress(OSError):
                self._file.close()

    def _in_order(self, table_id: int | None = None) -> Iterator[Chunk | tuple[int, int]]:
        mine = (held for held in self._held if table_id is None or held[0] == table_id)
        return (chunk for _, _, chunk in sorted(mine, key=lambda held: held[1]))

    def _read(self, at: int, size: int) -> bytes:
        assert self._file is not None  # noqa: S101 something was put there
        with self._lock:
            self._file.seek(at)
            return self._file.read(size)
