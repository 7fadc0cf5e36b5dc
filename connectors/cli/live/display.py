"""The live display of a run: a picture on the terminal that standard error is, redrawn a few times a second."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TextIO

from connectors.cli.live.captured import captured
from connectors.cli.live.rendering import rendered
from connectors.cli.terminal.plain_text import without_controls
from connectors.cli.terminal.progress import drawing, is_in_front

if TYPE_CHECKING:
    from rich.console import Group

    from connectors.config import PipelineConfig
    from connectors.monitoring.picture import RunPicture
    from connectors.monitoring.watching import Watch

__all__ = ["live_display"]

_STDOUT, _STDERR = 1, 2


@contextmanager
def live_display(config: PipelineConfig) -> Iterator[Watch]:
    """Draws what its watch sees, inside the ``with``. Whatever is written to the terminal meanwhile stands above.

    The last picture stays, unless the run never began.
    """
    from connectors.monitoring.watching import watched

    # Its own way to the terminal: the usual ones are captured.
    with os.fdopen(os.dup(_STDERR), "w", encoding=sys.stderr.encoding, errors="backslashreplace") as terminal:
        screen = _Screen(terminal)
        streams = [_STDOUT, _STDERR] if os.isatty(_STDOUT) else [_STDERR]
        watch = None
        screen.begin()
        try:
            with (
                captured(streams, screen.write),
                watched(config) as watch,
                drawing(partial(screen.draw, watch), name="historian display"),
            ):
                yield watch
        finally:
            # Behind what was captured, so that the picture is the last.
            screen.end(watch)


class _Screen:
    """A picture at the end of what is written to a terminal. One that is gone ends nothing but the picture."""

    def __init__(self, terminal: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._descriptor = terminal.fileno()
        self._console = Console(file=terminal, highlight=False, markup=False, emoji=False)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._lock = threading.Lock()
        self._shown: tuple[tuple[int, int], RunPicture] | None = None

    def begin(self) -> None:
        """Hides the cursor."""
        with self._lock, suppress(OSError):
            self._live.start()

    def draw(self, watch: Watch) -> None:
        """Draws the last picture in the terminal's present size."""
        if not is_in_front(self._descriptor):
            return
        with self._lock, suppress(OSError):
            size = self._measure()
            picture = watch.picture
            if self._shown is None or self._shown[0] != size or self._shown[1] is not picture:
                self._shown = (size, picture)
                # The line of the cursor is left free: a terminal shows there what is typed, such as ^C.
                self._live.update(self._drawn(picture, ""), refresh=True)

    def write(self, lines: str) -> None:
        """Writes lines above the picture."""
        from rich.text import Text

        text = Text("\n".join(map(without_controls, lines.split("\n"))))
        with self._lock, suppress(OSError, ValueError):
            self._console.print(text, soft_wrap=True)

    def end(self, watch: Watch | None) -> None:
        """Draws a last time, or takes the picture away where there was nothing to show; gives the cursor back."""
        with self._lock, suppress(OSError):
            if watch is not None:
                self._measure()
                self._live.update(self._drawn(watch.picture), refresh=True)
            self._live.transient = watch is None or not watch.was_open
            self._live.stop()

    def _measure(self) -> tuple[int, int]:
        # What rich asks for its size may be captured, or no terminal.
        columns, lines = os.get_terminal_size(self._descriptor)
        if columns and lines:
            self._console.size = (columns, lines)
        return columns, lines

    def _drawn(self, picture: RunPicture, *below: str) -> Group:
        from rich.console import Group

        width, height = self._console.size
        is_plain = not self._console.encoding.lower().startswith("utf")
        # A line is left to those who write above.
        return Group(*rendered(picture, width, height - 1 - len(below), ascii_only=is_plain), *below)
