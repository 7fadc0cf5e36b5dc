"""The one decorator of all kernels: compiled once, kept on disk, released from the GIL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from historian.jit import compiled, content_stamp

__all__ = ["inlined", "kernel", "kernel_with_gil"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_STAMP = content_stamp(Path(__file__).parent.parent)


def kernel(function: _Function) -> _Function:
    """Compiles *function* on its first call (see :func:`historian.jit.compiled`)."""
    return compiled(function, stamp=_STAMP, nogil=True)


def kernel_with_gil(function: _Function) -> _Function:
    """Like :func:`kernel`, for an entry that calls into the interpreter."""
    return compiled(function, stamp=_STAMP, nogil=False)


def inlined(function: _Function) -> _Function:
    """Like :func:`kernel`, for a helper whose code is wanted in the place of each call."""
    return compiled(function, stamp=_STAMP, nogil=True, inlined=True)
