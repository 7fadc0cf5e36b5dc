"""Chunks on their way: in memory, beyond a limit in a temporary file."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from historian.changelog.chunks import Chunk, chunk_row, chunks_of, ipc_stream

__all__ = ["Spool", "chunk_body", "chunk_of"]

_MEMORY_BYTES = 128 << 20


def chunk_body(chunk: Chunk) -> bytes:
    """*chunk* as an Arrow IPC stream of one row of :data:`historian.changelog.chunks.CHUNK_STREAM`."""
    return bytes(ipc_stream(chunk_row(chunk)))


def chunk_of(body: bytes) -> Chunk:
    """The chunk that :func:`chunk_body` wrote."""
    (chunk,) = chunks_of(pa.ipc.open_stream(body).read_next_batch())
    return chunk


class Spool:
    """Bodies of chunks by the order of their sequence; threads may add to it. Gone through as often as wanted. Close it at the end."""

    def __init__(self, memory_bytes: int = _MEMORY_BYTES) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=memory_bytes, prefix="historian-")  # noqa: SIM115 closed with it
        self._lock = threading.Lock()
        self._places: list[tuple[int, int, int, int]] = []
        self._end = 0

    def add(self, chunk: Chunk) -> None:
        """Takes *chunk* last."""
        body = chunk_body(chunk)
        with self._lock:
            self._file.seek(self._end)
            self._file.write(body)
            self._places.append((chunk.table_id, chunk.sequence, self._end, len(body)))
            self._end += len(body)

    def __iter__(self) -> Iterator[bytes]:
        """The bodies, in the order of their chunks' sequence."""
        for _, _, at, size in sorted(self._places, key=lambda place: place[1]):
            yield self._read(at, size)

    def of_table(self, table_id: int) -> Iterator[Chunk]:
        """The chunks of one table, in order."""
        for table, _, at, size in sorted(self._places, key=lambda place: place[1]):
            if table == table_id:
                yield chunk_of(self._read(at, size))

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        """Frees memory and file."""
        with suppress(OSError):
            self._file.close()

    def _read(self, at: int, size: int) -> bytes:
        with self._lock:
            self._file.seek(at)
            return self._file.read(size)
