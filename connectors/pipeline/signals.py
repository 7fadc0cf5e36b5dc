"""SIGINT and SIGTERM, as a word to what runs that it is to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["signals"]


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
