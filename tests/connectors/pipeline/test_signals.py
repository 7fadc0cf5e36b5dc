"""SIGHUP is a wish, but for one that comes since the terminal is gone; the end of a run wakes up who waits for a file, whenever he came."""

from __future__ import annotations

import gc
import os
import select
import signal
import threading
from collections.abc import Iterator

import pytest

from connectors.pipeline import signals as module
from connectors.pipeline.signals import Stopping, hangups


@pytest.fixture(autouse=True)
def _as_a_terminal_starts_it() -> Iterator[None]:
    """These tests may run below nohup."""
    held = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, held)


def _told(monkeypatch: pytest.MonkeyPatch, *, before: bool, after: bool) -> list[str]:
    told: list[str] = []
    monkeypatch.setattr(module, "_has_terminal", lambda: before)
    with hangups(lambda: told.append("reload"), lambda: told.append("stop")) as listens:
        assert listens
        monkeypatch.setattr(module, "_has_terminal", lambda: after)
        os.kill(os.getpid(), signal.SIGHUP)
    return told


def test_a_terminal_that_is_gone_ends_what_was_started_there(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        _told(monkeypatch, before=before, after=after)
        for before, after in ((True, True), (True, False), (False, False))
    ]
    assert [["reload"], ["stop"], ["reload"]] == found


def test_what_outlives_its_terminal_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    held = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert ["reload"] == _told(monkeypatch, before=True, after=False)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, held)


def _is_readable(stopping: Stopping, timeout_s: float = 0) -> bool:
    poll = select.poll()
    poll.register(stopping, select.POLLIN)
    return bool(poll.poll(1000 * timeout_s))


def test_who_polls_is_woken_when_it_is_set_and_so_are_those_who_come_later() -> None:
    stopping = Stopping()
    assert not _is_readable(stopping)
    woken: list[bool] = []
    threads = [threading.Thread(target=lambda: woken.append(_is_readable(stopping, 60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        stopping.set()
    for thread in threads:
        thread.join()

    assert ([True] * 3, True, True) == (woken, stopping.is_set(), _is_readable(stopping))


def test_what_is_set_more_often_than_a_pipe_holds_blocks_nobody() -> None:
    stopping = Stopping()
    for _ in range(100_000):
        stopping.set()
    assert _is_readable(stopping)


def test_its_files_are_closed_with_it() -> None:
    stopping = Stopping()
    file = stopping.fileno()
    del stopping
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)
