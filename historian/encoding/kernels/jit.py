"""The decorator of this package's kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from historian.jit import compiled, content_stamp

__all__ = ["kernel"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_STAMP = content_stamp(Path(__file__).parent)


def kernel(function: _Function) -> _Function:
    """Compiles *function* on its first call (see :func:`historian.jit.compiled`)."""
    return compiled(function, stamp=_STAMP, nogil=True)
