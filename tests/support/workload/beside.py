"""Work in a thread beside a test, whose failure is the test's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["beside"]


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """While *work* runs in a thread. It ends once the event is set; what it raises fails the test."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work(ended)
        except BaseException as error:  # noqa: BLE001 told below, in the test's thread
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert [] == failures
