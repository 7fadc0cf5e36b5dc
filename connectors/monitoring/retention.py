"""How long the source keeps its log, beside what copies need: a run that is slower than the log is purged loses its place."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from connectors.config import ServerSource
from historian.errors import HistorianError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig

__all__ = ["KeptLog", "log_kept_s", "log_warnings"]

_EVERY_S = 300.0
_LONGEST_S = 1.0
"""Whoever ends waits so long for an answer that is on its way."""
_PART = 0.5
"""From this part of the time on that is left, what needs it is told."""


def log_kept_s(config: PipelineConfig) -> float | None:
    """For how many seconds the source keeps its log; None: until someone purges it, or the source is files.

    Raises:
        SourceError: the server cannot be asked.
    """
    from connectors.check.server import ServerView
    from connectors.check.settings import retention_s
    from connectors.tracking.sources import server_address

    if not isinstance(config.source, ServerSource):
        return None
    with closing(server_address(config.source).connect()) as connection:
        return retention_s(ServerView.of(config.source, connection, "%expire_logs%")) or None


class KeptLog:
    """What :func:`log_kept_s` says, asked now and then in a thread of its own, so that nobody waits for a server that is away.

    Args:
        ask: for the seconds.
        clock_s: a clock that never goes back.
    """

    def __init__(self, ask: Callable[[], float | None], *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._asked_s: float | None = None
        self._kept_s: float | None = None
        self._is_known = False
        self._thread: threading.Thread | None = None

    @classmethod
    def of(cls, config: PipelineConfig) -> KeptLog:
        """What the source of *config* says."""
        return cls(partial(log_kept_s, config))

    def __call__(self) -> float | None:
        """The last answer; None too while there is none. May be called from any thread; returns at once."""
        now_s = self._clock_s()
        with self._lock:
            is_old = self._asked_s is None or now_s - self._asked_s > _EVERY_S
            if is_old:
                self._asked_s = now_s
        if is_old:
            self._thread = threading.Thread(target=self._learn, name="historian retention", daemon=True)
            self._thread.start()
        return self._kept_s

    def known(self) -> float | None:
        """The same, of who can wait: where there is no answer yet, the source is asked now.

        Raises:
            SourceError: the source cannot be asked.
        """
        if not self._is_known:
            now_s = self._clock_s()
            with self._lock:
                self._asked_s = now_s
            self._kept_s, self._is_known = self._ask(), True
        return self()

    def close(self) -> None:
        """Waits a moment for an answer that is on its way: a thread that Python's own end finds in native code aborts the process."""
        if self._thread is not None:
            self._thread.join(_LONGEST_S)

    def _learn(self) -> None:
        try:
            self._kept_s, self._is_known = self._ask(), True
        except HistorianError:  # the run itself tells of a source that is away
            return


def log_warnings(
    kept_s: float | None, lag_s: float, copies: Iterable[tuple[str, int | None]], all_s: int | None = None
) -> Iterator[str]:
    """What to worry about long before log is purged that is needed, as sentences.

    Args:
        kept_s: for how long the source keeps its log; None: nothing is purged.
        lag_s: how old the log is that was not read yet.
        copies: tables, and in about how many seconds their copies end.
        all_s: in about how many all of them end, those among them that wait for their turn; None: not known.
    """
    if kept_s is None:
        return
    left_s = max(0.0, kept_s - lag_s)
    if left_s < kept_s * _PART:
        yield f"the log that was not read yet is kept for only {_text(left_s)} more, of {_text(kept_s)}"
    long = [(table, needs_s) for table, needs_s in copies if needs_s is not None and needs_s > left_s * _PART]
    for table, needs_s in long:
        yield f"{table} needs about {_text(needs_s)} more to be copied; the log from here on is kept for {_text(left_s)}"
    if not long and all_s is not None and all_s > left_s * _PART:
        yield f"all copies together need about {_text(all_s)} more; the log from here on is kept for {_text(left_s)}"


def _text(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
