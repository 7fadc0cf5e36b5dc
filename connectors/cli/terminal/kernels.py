"""Kernels of a new installation: compiled before a command reads a log, with a bar."""

from __future__ import annotations

import time
from functools import partial

from connectors.cli.terminal.progress import Progress, can_be_live, progress

__all__ = ["compile_first"]


def compile_first() -> None:
    """Compiles what has no code on this machine yet, where a terminal shows how far that is; elsewhere each kernel is compiled when it is called."""
    if not can_be_live():
        return
    from connectors.readers.binlog.compiling import about_s, missing_kernels
    from connectors.readers.machine.compiling import compile_kernel

    # Short ones first: they tell how fast this machine is.
    missing = sorted(missing_kernels(), key=about_s)
    if not missing:
        return
    with progress("compiling kernels, once on this machine", sum(map(about_s, missing))) as told:
        reached_s = 0.0
        for kernel in missing:
            told.look = partial(_look, told, reached_s, about_s(kernel), time.monotonic())
            compile_kernel(kernel)
            reached_s += about_s(kernel)
        told.look = None


def _look(told: Progress, reached_s: float, about_s: float, begun_s: float) -> None:
    """Draws that a kernel is being compiled: as far as the time says that it takes, and no further."""
    told.reach(reached_s + min(about_s, time.monotonic() - begun_s))
