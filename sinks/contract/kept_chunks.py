"""Chunks that a worker of Spark's has decoded, kept for later looks at them, so that the log is not read again.

They lie in a file without a name: it is there as long as the worker is, or until its connector has a next plan. All workers of the
same machine read it, by the number that it has in that process. Who cannot read it reads the log.
"""

from __future__ import annotations

import mmap
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO

import pyarrow as pa

from historian.changelog.chunks import Chunk

__all__ = ["KEPT_BYTES", "Keeper", "KeptChunks"]

KEPT_BYTES = 1 << 30
"""So much a worker keeps, of all plans together: the oldest of another owner gives place."""

_ALIGNMENT = 64
_NO_ROWS = pa.RecordBatch.from_arrays([], names=[])


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptChunks:
    """Where the chunks of a part lie.

    Attributes:
        process, descriptor: of the worker, and of the file in it.
        token: what the file begins with. Another process may have come by the number, or it is one of another machine.
        chunks: without their rows; where those begin as an Arrow IPC stream, and how many bytes it has.
    """

    process: int
    descriptor: int
    token: bytes
    chunks: tuple[tuple[Chunk, int, int], ...]

    def opened(self) -> Iterator[Chunk] | None:
        """The chunks, in order, whose rows are not copied; None where the file is not to be had."""
        path = f"/proc/{self.process}/fd/{self.descriptor}"
        try:
            # What has that number elsewhere may be a pipe, which waits for somebody.
            if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 a number, no name
                return None
            with open(path, "rb") as file:  # noqa: PTH123 same
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        if mapped[: len(self.token)] != self.token:
            return None
        body = memoryview(mapped)
        return (
            replace(chunk, rows=pa.ipc.open_stream(pa.py_buffer(body[at : at + size])).read_next_batch())
            for chunk, at, size in self.chunks
        )


class Keeper:
    """Keeps chunks of one part in this process.

    Args:
        owner: whose plan it is: what is kept of an earlier one of the same is given up.
        token: of the plan, at random.
    """

    def __init__(self, owner: str, token: bytes) -> None:
        self._file = _file_of(owner, token)
        self._chunks: list[tuple[Chunk, int, int]] = []

    def add(self, chunk: Chunk) -> None:
        """Takes the part's next chunk."""
        if self._file is not None:
            place = self._file.put(chunk.rows) if _has_place(self._file, chunk.rows.nbytes) else None
            if place is None:
                self._file = None
            else:
                self._chunks.append((replace(chunk, rows=_NO_ROWS), *place))

    def kept(self) -> KeptChunks | None:
        """All that were taken; None where there was no place for one of them."""
        if self._file is None:
            return None
        return KeptChunks(
            process=os.getpid(),
            descriptor=self._file.descriptor,
            token=self._file.token,
            chunks=tuple(self._chunks),
        )


class _File:
    """A file without a name, that begins with *token*, and its size in bytes. Raises :class:`OSError` where it cannot be made."""

    def __init__(self, token: bytes) -> None:
        self.token = token
        self._held: IO[bytes] = tempfile.TemporaryFile(prefix="historian-", dir=_directory())  # noqa: SIM115 closed with a next plan
        self.descriptor = self._held.fileno()
        try:
            # Arrow writes by itself, without a copy and without the interpreter.
            self._sink = pa.OSFile(f"/proc/self/fd/{self.descriptor}", "ab")
            self._sink.write(token.ljust(_ALIGNMENT, b"\0"))
        except BaseException:
            self._held.close()
            raise
        self.size = _ALIGNMENT

    def put(self, rows: pa.RecordBatch) -> tuple[int, int] | None:
        """Where *rows* begin, and how many bytes they have there; None: there is no place."""
        at, self.size = self.size, KEPT_BYTES  # A write that ends half way says nothing of where a next one begins.
        try:
            with pa.ipc.new_stream(self._sink, rows.schema) as writer:
                writer.write_batch(rows)
            upto = os.fstat(self.descriptor).st_size
            self._sink.write(bytes(-upto % _ALIGNMENT))
        except OSError:
            return None
        self.size = upto + -upto % _ALIGNMENT
        return at, upto - at

    def close(self) -> None:
        """Frees the place; who has it mapped goes on."""
        with suppress(OSError):
            self._sink.close()
        with suppress(OSError):
            self._held.close()


_FILES: dict[str, _File] = {}
"""Of this process, by owner."""


def _file_of(owner: str, token: bytes) -> _File | None:
    held = _FILES.get(owner)
    if held is not None and held.token == token:
        return held
    if held is not None:
        _FILES.pop(owner).close()
    try:
        made = _FILES[owner] = _File(token)
    except OSError:
        return None
    return made


def _has_place(file: _File, more: int) -> bool:
    """Whether *file* may grow by so many bytes; others that are older give place to it."""
    while sum(each.size for each in _FILES.values()) + more > KEPT_BYTES:
        oldest = next(iter(_FILES), None)
        if oldest is None or _FILES[oldest] is file:
            return False
        _FILES.pop(oldest).close()
    return file in _FILES.values()


def _directory() -> str:
    """Where Spark's executors put what they spill."""
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return next((place for place in places if place and os.path.isdir(place)), tempfile.gettempdir())  # noqa: PTH112 a plain string
