"""A command on a pseudo terminal, and what a person would see there: pyte's emulation of one."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import pyte

__all__ = ["Screen", "on_a_screen"]

LONGEST_S = 60


class Screen:
    """A terminal that a process writes to, as xterm would show it. Lines are without the blanks at their ends."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int, columns: int, lines: int) -> None:
        self._process = process
        self._terminal = terminal
        self._screen = pyte.HistoryScreen(columns, lines, history=10_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self.raw = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # so Linux tells that nobody has the terminal open any more
            while data := os.read(self._terminal, 65536):
                with self._lock:
                    self.raw += data
                    self._stream.feed(data)

    def lines(self) -> list[str]:
        """What the screen shows."""
        with self._lock:
            return [line.rstrip() for line in self._screen.display]

    def text(self) -> str:
        """What the screen shows, and above it what has left it."""
        with self._lock:
            columns = self._screen.columns
            left = ["".join(line[at].data for at in range(columns)) for line in self._screen.history.top]
            return "\n".join(line.rstrip() for line in [*left, *self._screen.display])

    @property
    def has_cursor(self) -> bool:
        """Whether the cursor is to be seen."""
        with self._lock:
            return not self._screen.cursor.hidden

    def wait(self, is_there: Callable[[str], bool]) -> list[str]:
        """The screen's lines as soon as *is_there* says so of their text."""
        deadline_s = time.monotonic() + LONGEST_S
        while not is_there("\n".join(lines := self.lines())):
            assert time.monotonic() < deadline_s, self.text()
            assert self._process.poll() is None, self.text()
            time.sleep(0.05)
        return lines

    def resize(self, columns: int) -> None:
        """Gives the terminal another width; what stands there already is cut, as in xterm."""
        with self._lock:
            self._screen.resize(columns=columns)
            _set_size(self._terminal, columns, self._screen.lines)

    def type(self, keys: bytes) -> None:
        """Types, such as the byte 3 for Ctrl-C."""
        os.write(self._terminal, keys)

    def end(self, longest_s: float = LONGEST_S) -> int:
        """The exit code of the process, when all that it wrote is on the screen."""
        code = self._process.wait(longest_s)
        self._reader.join(LONGEST_S)
        return code


def _set_size(terminal: int, columns: int, lines: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


@contextmanager
def on_a_screen(
    command: Sequence[str], *, columns: int = 100, lines: int = 30, environment: Mapping[str, str] | None = None
) -> Iterator[Screen]:
    """Runs *command* with a terminal of its own as its three streams; it is killed behind the ``with``."""
    terminal, mine = os.openpty()
    _set_size(mine, columns, lines)
    settings = {**os.environ, "TERM": "xterm-256color", **(environment or {})}
    for name in ("COLUMNS", "LINES"):
        settings.pop(name, None)
    process = subprocess.Popen(["setsid", "--ctty", *command], stdin=mine, stdout=mine, stderr=mine, env=settings)
    os.close(mine)
    try:
        yield Screen(process, terminal, columns, lines)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(terminal)
