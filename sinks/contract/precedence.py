"""Work that goes before other work of the same process, which may come later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Precedence"]

_LOOK_S = 0.05


class Precedence:
    """Lets work that nobody waits for yet wait while other work has all cores.

    The one is done when the other leaves cores idle: rows of the next plan are decoded while a plan is committed, not while its files are written.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way = 0

    @contextmanager
    def first(self) -> Iterator[None]:
        """Work that goes first is under way inside."""
        with self._changed:
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def wait(self, gives_up: Callable[[], bool]) -> bool:
        """Waits until no work that goes first is under way; false where who waits *gives_up*, which is asked again and again."""
        with self._changed:
            while not (is_over := gives_up()) and self._under_way:
                self._changed.wait(_LOOK_S)
            return not is_over
