"""Windows made in a thread of their own, so that one is decoded while the next one is read and verified."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator

from connectors.readers.binlog.transport.read_buffer import FRAME_BYTES, FRAMES
from connectors.readers.binlog.transport.window import Window

__all__ = ["prefetched"]

_READY = FRAMES - 2
_LOOK_S = 0.05


def prefetched(windows: Iterator[Window], stop: Callable[[], None]) -> Generator[Window, None, None]:
    """*windows*, one by one, each valid until the next one is asked for.

    Reading and the kernels release the interpreter's lock, so both sides run at the same time. An error of the other side
    is raised here. Behind a window of a large event nothing is read before it was used. Where the generator is closed early, *stop* makes the other side end that may be waiting for bytes.
    """
    ready: queue.Queue[Window | BaseException | None] = queue.Queue(_READY)
    is_over, used = threading.Event(), threading.Semaphore(0)

    def make() -> None:
        last: BaseException | None = None
        in_use = 0
        try:
            for window in windows:
                ready.put(window)
                in_use += 1
                while len(window.buffer) > FRAME_BYTES and in_use and not is_over.is_set():
                    in_use -= used.acquire(timeout=_LOOK_S)
                if is_over.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - raised by who takes the windows
            last = error
        ready.put(last)

    maker = threading.Thread(target=make, name="historian-windows", daemon=True)
    maker.start()
    try:
        while (found := ready.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found
            used.release()
    finally:
        is_over.set()
        if maker.is_alive():
            stop()
        while maker.is_alive():
            # It may be about to hand over one more, or its last word.
            while not ready.empty():
                ready.get_nowait()
            maker.join(0.001)
