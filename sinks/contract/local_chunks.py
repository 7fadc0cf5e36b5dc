"""Chunks of a plan in this process: made and gone through by threads, held in memory, beyond a limit in a temporary file."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import IO, TypeVar

import pyarrow as pa

from historian.changelog.chunks import NO_TABLE, Chunk, ipc_stream
from sinks.contract.chunks import ChunkHead, Chunks, head_of
from sinks.contract.storage import writing

__all__ = ["MEMORY_BYTES", "LocalChunks"]

MEMORY_BYTES = 384 << 20
"""Rows beyond this size go to a file. Those of a plan of the default size are fewer, as a rule."""

_Result = TypeVar("_Result")
_Given = TypeVar("_Given")
_Held = tuple[ChunkHead, Callable[[], Chunk]]


class LocalChunks(Chunks):
    """Chunks in memory and in a file of their own. Close it at the end.

    Args:
        threads: that work side by side; kernels and Parquet's encoders leave the interpreter to others.
        memory_bytes: of rows that are held in memory.
    """

    def __init__(self, *, threads: int = 1, memory_bytes: int = MEMORY_BYTES) -> None:
        self._threads = threads
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._held: list[_Held] = []
        self._held_bytes = 0
        self._file: IO[bytes] | None = None
        self._file_bytes = 0

    def fill(self, sources: Sequence[Callable[[], Iterable[Chunk]]]) -> None:
        """Takes all chunks of *sources*, which are gone through side by side. Raises what one of them raises."""

        def take(source: Callable[[], Iterable[Chunk]]) -> None:
            for chunk in source():
                self._add(chunk)

        self._run(take, sources)
        self._held.sort(key=lambda held: held[0].sequence)

    @property
    def heads(self) -> tuple[ChunkHead, ...]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        return tuple(head for head, _ in self._held)

    def map(self, task: Callable[[Iterator[Chunk]], Iterable[_Result]], *, by_table: bool = False) -> list[_Result]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        held = [(head, chunk) for head, chunk in self._held if not head.stopped and head.table_id != NO_TABLE]
        if by_table:
            held.sort(key=lambda each: (each[0].table_id, each[0].sequence))
        if self.is_small:
            parts = [held]
        elif by_table:
            parts = [list(table) for _, table in groupby(held, lambda each: each[0].table_id)]
        else:
            parts = _cut(held, self._threads)
        done = self._run(lambda part: list(task(chunk() for _, chunk in part)), parts)
        return [result for results in done for result in results]

    def seen_as(self, head: Callable[[ChunkHead], ChunkHead | None], chunk: Callable[[Chunk], Chunk]) -> LocalChunks:
        """These as others, as long as they are open: what *chunk* makes of each, with the head that *head* gives; None: it is left out."""

        def seen(load: Callable[[], Chunk]) -> Callable[[], Chunk]:
            return lambda: chunk(load())

        others = LocalChunks(threads=self._threads, memory_bytes=self._memory_bytes)
        heads = ((head(held), load) for held, load in self._held)
        others._held = [(made, seen(load)) for made, load in heads if made is not None]
        return others

    def of_table(self, table_id: int) -> Iterator[Chunk]:
        """The chunks of a table, in order of sequence."""
        return (load() for head, load in self._held if head.table_id == table_id)

    def with_tables(self, made: Mapping[int, Callable[[], Iterable[Chunk]]]) -> LocalChunks:
        """These, as long as they are open, with others in the place of all chunks of some tables. Close what comes of it, too.

        Those of a table are made when the ones of the table before are taken, so no more than one table's are in memory beside the limit.
        """
        others = LocalChunks(threads=self._threads, memory_bytes=self._memory_bytes)
        try:
            others.fill([lambda: (chunk for make in made.values() for chunk in make())])
        except BaseException:
            others.close()
            raise
        others._held += [(head, load) for head, load in self._held if head.table_id not in made]
        others._held.sort(key=lambda held: held[0].sequence)
        return others

    def close(self) -> None:
        """Frees memory and file."""
        self._held = []
        if self._file is not None:
            # What a full disk did not take is nobody's any more, and was told.
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _run(self, work: Callable[[_Given], _Result], given: Sequence[_Given]) -> list[_Result]:
        if len(given) < 2 or self._threads < 2:
            return [work(each) for each in given]
        pool = ThreadPoolExecutor(self._threads, "chunks")
        try:
            return list(pool.map(work, given))
        finally:
            pool.shutdown(cancel_futures=True)

    def _add(self, chunk: Chunk) -> None:
        head = head_of(chunk)
        with self._lock:
            fits = self._held_bytes + head.size_bytes <= self._memory_bytes
            if fits:
                self._held_bytes += head.size_bytes
                self._held.append((head, lambda: chunk))
        if not fits:
            self._put_out(head, chunk)

    def _put_out(self, head: ChunkHead, chunk: Chunk) -> None:
        body = ipc_stream(chunk.rows)
        bare = replace(chunk, rows=_NO_ROWS)
        size = body.size
        with writing(tempfile.gettempdir()):
            with self._lock:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(prefix="historian-")  # noqa: SIM115 closed with the chunks
                file, at = self._file.fileno(), self._file_bytes
                self._file_bytes += size
            # Each thread at a place of its own: the system takes bytes of several at once.
            view, put = memoryview(body), 0
            while put < size:
                put += os.pwrite(file, view[put:], at + put)
        with self._lock:
            self._held.append((head, lambda: replace(bare, rows=self._read(at, size))))

    def _read(self, at: int, size: int) -> pa.RecordBatch:
        assert self._file is not None  # noqa: S101 open as long as there are chunks
        body = bytearray(size)
        view, got = memoryview(body), 0
        while got < size:
            got += os.preadv(self._file.fileno(), [view[got:]], at + got)
        return pa.ipc.open_stream(pa.py_buffer(body)).read_next_batch()


_NO_ROWS = pa.RecordBatch.from_arrays([], names=[])


def _cut(held: Sequence[_Held], count: int) -> list[list[_Held]]:
    """*held* in order, cut into *count* parts of about the same size."""
    total = sum(head.size_bytes for head, _ in held)
    parts: list[list[_Held]] = [[] for _ in range(count)]
    before = 0
    for each in held:
        parts[min(count - 1, before * count // max(1, total))].append(each)
        before += each[0].size_bytes
    return [part for part in parts if part]
