"""What is written to a terminal while a bar stands there: it goes aside for that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

__all__ = ["Erasable", "aside", "present", "standing"]


class Erasable(Protocol):
    """Something that is drawn on the terminal."""

    def erased(self) -> AbstractContextManager[None]:
        """Takes it away, and keeps it away inside the ``with``."""


_present: list[Erasable] = []


def present() -> bool:
    """Whether something stands on the terminal."""
    return bool(_present)


@contextmanager
def standing(drawn: Erasable) -> Iterator[None]:
    """Inside the ``with`` *drawn* is what stands on the terminal."""
    _present.append(drawn)
    try:
        yield
    finally:
        _present.remove(drawn)


@contextmanager
def aside() -> Iterator[None]:
    """Takes a bar away that is drawn, so that something else can be written inside the ``with``."""
    if not _present:
        yield
        return
    with _present[-1].erased():
        yield
