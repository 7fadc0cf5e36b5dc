"""Signals as words to what runs: SIGINT and SIGTERM that it is to end, SIGHUP that it is to read its configuration again."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["Stopping", "hangups", "signals"]


class Stopping(threading.Event):
    """Set once, when what runs is to end: who waits for a file or a socket is woken by it too (:class:`connectors.readers.base.Wake`)."""

    def __init__(self) -> None:
        super().__init__()
        self._files = os.pipe()
        os.set_blocking(self._files[1], False)
        weakref.finalize(self, _close, self._files)

    def set(self) -> None:
        """Sets it. From any thread, and from handlers of signals."""
        super().set()
        # Nobody reads it: it is there for all who wait, and for those who come.
        with suppress(BlockingIOError):
            os.write(self._files[1], b"\0")

    def fileno(self) -> int:
        """As of :class:`connectors.readers.base.Wake`."""
        return self._files[0]


def _close(files: tuple[int, int]) -> None:
    for file in files:
        os.close(file)


@contextmanager
def signals(stop: Callable[[], None]) -> Iterator[None]:
    """Calls *stop* at each of the two inside the ``with``; outside the main thread nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def hangups(reload: Callable[[], None], stop: Callable[[], None]) -> Iterator[bool]:
    """Calls *reload* at SIGHUP inside the ``with``, which is given whether it does; outside the main thread nothing is changed.

    Where the signal comes since the terminal is gone that the process was started from, *stop* is called: nobody is there any more who
    wants it to run. One that was started to outlive its terminal goes on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield False
        return
    outlives = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or not _has_terminal()
    before = signal.signal(signal.SIGHUP, lambda *_: reload() if outlives or _has_terminal() else stop())
    try:
        yield True
    finally:
        signal.signal(signal.SIGHUP, before)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
