"""How far a command is: a bar with the time left, on the terminal that standard error is; elsewhere nothing."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from connectors.cli.terminal.aside import present, standing
from connectors.cli.terminal.logs import writes_lines
from connectors.cli.terminal.plain_text import one_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

__all__ = ["Progress", "can_be_live", "drawing", "is_in_front", "progress"]

_EVERY_S = 0.25
_STDERR = 2
_WITHOUT_A_CURSOR = ("dumb", "unknown", "")


def can_be_live() -> bool:
    """Whether standard error is a terminal on which something can be drawn, and people are told lines.

    A shell's job in the background draws nothing: the terminal is somebody else's then.
    """
    try:
        is_terminal = os.isatty(sys.stderr.fileno()) and sys.stderr.fileno() == _STDERR
    except (OSError, ValueError, AttributeError):  # as of what stands in for it in tests and notebooks
        return False
    has_cursor = os.environ.get("TERM", "").lower() not in _WITHOUT_A_CURSOR
    return is_terminal and has_cursor and writes_lines() and is_in_front(_STDERR)


def is_in_front(terminal: int) -> bool:
    """Whether the terminal is given to this process' job; where that cannot be told, as in some containers, it is."""
    try:
        return os.tcgetpgrp(terminal) in (0, os.getpgrp())
    except OSError:
        return True


@contextmanager
def drawing(draw: Callable[[], None], *, name: str) -> Iterator[None]:
    """Inside the ``with`` *draw* is called a few times a second, in a thread of that *name*."""
    stops = threading.Event()

    def draw_often() -> None:
        while not stops.wait(_EVERY_S):
            draw()

    thread = threading.Thread(target=draw_often, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stops.set()
        thread.join()


class Progress:
    """How far a command is. It may be told at any pace, and is drawn a few times a second.

    Attributes:
        what: is done at the moment.
        total: units of work, None: not known yet.
        done: of them.
        is_hidden: nothing is drawn for now.
        look: is called before each drawing, to bring the others up to date; None: they are told.
    """

    def __init__(self, what: str, total: float | None = None) -> None:
        self.what = what
        self.total = total
        self.done = 0.0
        self.is_hidden = False
        self.look: Callable[[], None] | None = None

    def reach(self, units: float) -> None:
        """So much is done."""
        self.done = units


@contextmanager
def progress(what: str, total: float | None = None) -> Iterator[Progress]:
    """Draws how far a command is inside the ``with``. Nothing is left of the bar behind it, and nothing is drawn without a terminal.

    What is written to the terminal meanwhile is to be written inside :func:`connectors.cli.terminal.aside.aside`, as ``say`` and ``tell`` do.
    """
    told = Progress(what, total)
    if present() or not can_be_live():
        yield told
        return
    bar = _Drawing(told)
    with standing(bar), bar.drawn():
        yield told


class _Drawing:
    """A bar at the end of what is written to the terminal. A terminal that is gone ends nothing but the bar."""

    def __init__(self, told: Progress) -> None:
        self._told = told
        self._bars = _bars()
        self._task = self._bars.add_task("", total=None)
        self._lock = threading.RLock()

    @contextmanager
    def drawn(self) -> Iterator[None]:
        self._draw()
        try:
            with drawing(self._draw, name="historian progress"):
                yield
        finally:
            with self._lock:
                self._erase()

    @contextmanager
    def erased(self) -> Iterator[None]:
        with self._lock:
            self._erase()
            yield

    def _erase(self) -> None:
        with suppress(OSError):
            self._bars.stop()

    def _draw(self) -> None:
        if not is_in_front(_STDERR):
            return
        told = self._told
        if told.is_hidden:
            with self._lock:
                self._erase()
            return
        look = told.look
        if look is not None:
            with suppress(Exception):  # what it asks may be gone, as Spark's process: the command itself tells
                look()
        with self._lock, suppress(OSError):
            # What is estimated may turn out to be more; a bar that stands at its end says that nothing is left.
            done = told.done if told.total is None else min(told.done, told.total)
            if done < self._bars.tasks[0].completed:  # another round of the same work
                self._bars.reset(self._task)
            self._bars.update(self._task, description=one_line(told.what), total=told.total, completed=done)
            self._bars.start()
            self._bars.refresh()


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    class WithCursor(Console):
        """A signal may end the process at any moment, and nobody would give the cursor back."""

        def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002, FBT001, FBT002 as rich has it
            return False

    return Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=WithCursor(stderr=True, highlight=False, markup=False, emoji=False),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
