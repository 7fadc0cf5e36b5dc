"""Those who look at a run from beside, each in a process of its own: a watcher of the status, and one who asks the endpoint."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["PATHS", "Watcher", "asking", "taken_s"]

ROOT = Path(__file__).parent.parent
PATHS = ("/metrics", "/status", "/")


class Watcher:
    """`historian status --watch` beside a run, which looks while it is let."""

    def __init__(self, config: Path) -> None:
        from command_line import HISTORIAN

        command = [*HISTORIAN, "status", str(config), "--watch"]
        # Nobody sees what it draws, but it draws it as on a terminal.
        environment = os.environ | {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)

    def let(self, *, look: bool) -> None:
        """Goes on, or stands still."""
        self._process.send_signal(signal.SIGCONT if look else signal.SIGSTOP)

    @property
    def cpu_s(self) -> float:
        """What it has taken of the processor."""
        return taken_s(self._process.pid)

    def close(self) -> None:
        """Ends it."""
        if self._process.poll() is not None:
            raise SystemExit(f"who watches the status has ended with {self._process.returncode}")
        self._process.kill()
        self._process.wait()


def taken_s(process: int | None) -> float:
    """What a process that runs has taken of the processor."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def asking() -> Iterator[Callable[[int], None]]:
    """A process that asks once for each of :data:`PATHS` when it is told a port, as others do that look at a run."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        told = process.stdin
        assert told is not None

        def ask(port: int) -> None:
            print(port, file=told, flush=True)

        yield ask
        told.close()
        if process.wait() != 0:
            raise SystemExit("who asks has failed")


def _ask() -> None:
    for line in sys.stdin:
        for path in PATHS:
            connection = http.client.HTTPConnection("127.0.0.1", int(line), timeout=30)
            connection.request("GET", path)
            connection.getresponse().read()
            connection.close()


if __name__ == "__main__":
    _ask()
