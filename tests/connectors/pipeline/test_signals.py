"""SIGHUP is a wish, but for one that comes since the terminal is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from connectors.pipeline import signals as module
from connectors.pipeline.signals import hangups


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
