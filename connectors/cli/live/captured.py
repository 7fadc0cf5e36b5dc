"""What a process writes to its terminal, line by line, while something else is drawn there.

Python's prints, log records, Java and other processes that are started write to the same two descriptors. So those are
what is taken hold of: nothing goes past a picture that stands on the terminal, and nothing is lost.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

__all__ = ["captured"]

_MARK = b"\0historian: the picture ends here\0"
_CHUNK_BYTES = 65536
_LONGEST_S = 5.0


@contextmanager
def captured(descriptors: Sequence[int], write: Callable[[str], None]) -> Iterator[None]:
    """Gives *write* the lines that come to *descriptors* inside the ``with``, one or several at once, without the last line's end.

    It is called from one thread of its own. What processes that live on write later goes where it went before.
    """
    kept = {descriptor: os.dup(descriptor) for descriptor in descriptors}
    reading, writing = os.pipe()
    carrier = _Carrier(reading, os.dup(descriptors[-1]), write)
    carrier.start()
    _flush()
    for descriptor in descriptors:
        os.dup2(writing, descriptor)
    os.close(writing)
    try:
        yield
    finally:
        _flush()
        # A pipe keeps the order: behind the mark all that was written before has been seen.
        os.write(descriptors[-1], _MARK)
        for descriptor, before in kept.items():
            os.dup2(before, descriptor)
            os.close(before)
        carrier.is_through.wait(_LONGEST_S)
        carrier.end()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


class _Carrier(threading.Thread):
    """Reads a pipe until everybody has closed it."""

    def __init__(self, reading: int, real: int, write: Callable[[str], None]) -> None:
        super().__init__(name="historian terminal", daemon=True)
        self._reading = reading
        self._looked_at = os.dup(reading)
        self._real = real
        self._write = write
        self.is_through = threading.Event()

    def run(self) -> None:
        """As of :class:`threading.Thread`."""
        waiting = b""
        while data := os.read(self._reading, _CHUNK_BYTES):
            if self.is_through.is_set():
                self._pass_on(data)
                continue
            before, mark, behind = (waiting + data).partition(_MARK)
            whole, _, waiting = (before, b"", b"") if mark else before.rpartition(b"\n")
            if whole:
                self._show(whole)
            if mark:
                self.is_through.set()
                self._pass_on(behind)
        os.close(self._reading)
        os.close(self._real)

    def end(self) -> None:
        """Waits for the thread, unless a process that lives on can still write."""
        # A thread that Python's own end finds between two calls can abort the whole process.
        looked_at = select.poll()
        looked_at.register(self._looked_at, select.POLLHUP)
        if any(event & select.POLLHUP for _, event in looked_at.poll(0)):
            self.join(_LONGEST_S)
        os.close(self._looked_at)

    def _show(self, lines: bytes) -> None:
        try:
            self._write(lines.removesuffix(b"\n").decode(errors="backslashreplace"))
        except Exception:  # noqa: BLE001 a pipe that nobody reads would block the run at its next print
            self._pass_on(lines.removesuffix(b"\n") + b"\n")

    def _pass_on(self, data: bytes) -> None:
        with suppress(OSError):  # a terminal that is gone has no more to show
            while data:
                data = data[os.write(self._real, data) :]
