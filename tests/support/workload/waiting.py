"""Waiting for what something beside a test does."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["wait_until"]


def wait_until(is_so: Callable[[], object], longest_s: float) -> None:
    """Until *is_so* says so, which is asked ten times a second; fails after *longest_s*."""
    until_s = time.monotonic() + longest_s
    while not is_so():
        assert time.monotonic() < until_s, is_so
        time.sleep(0.1)
