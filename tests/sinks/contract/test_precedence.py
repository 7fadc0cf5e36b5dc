"""Work that goes first is waited for, by whoever does not give up."""

from __future__ import annotations

import threading
from contextlib import suppress

from sinks.contract.precedence import Precedence

WAIT_S = 60


def _in_thread(precedence: Precedence, gives_up: threading.Event) -> tuple[threading.Thread, threading.Event]:
    """A thread that waits, and whether it has asked if it gives up, which it does while it waits alone."""
    asked = threading.Event()

    def is_given_up() -> bool:
        asked.set()
        return gives_up.is_set()

    thread = threading.Thread(target=precedence.wait, args=(is_given_up,))
    thread.start()
    return thread, asked


def test_who_goes_first_is_waited_for() -> None:
    precedence = Precedence()
    with precedence.first():
        with precedence.first():
            thread, asked = _in_thread(precedence, threading.Event())
            assert asked.wait(WAIT_S)
        assert thread.is_alive(), "one of two is still under way"
    thread.join(WAIT_S)
    assert not thread.is_alive()


def test_who_gives_up_waits_no_longer() -> None:
    precedence, gives_up = Precedence(), threading.Event()
    with precedence.first():
        thread, asked = _in_thread(precedence, gives_up)
        assert asked.wait(WAIT_S)
        gives_up.set()
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_nobody_waits_where_nothing_goes_first_any_more() -> None:
    precedence = Precedence()
    with suppress(ValueError), precedence.first():
        raise ValueError("the work")
    assert precedence.wait(lambda: False)
