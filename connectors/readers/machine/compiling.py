"""Compiling kernels that take numbers and addresses only before they are called, and whether that was done."""

from __future__ import annotations

from typing import Any

from numba import types

from historian.jit import has_code

__all__ = ["compile_kernel", "is_compiled"]


def compile_kernel(kernel: Any) -> None:
    """Compiles or loads a kernel."""
    kernel.compile(_arguments(kernel))


def is_compiled(kernel: Any) -> bool:
    """Whether its code is there, in this process or on disk for this processor."""
    return has_code(kernel, _arguments(kernel))


def _arguments(kernel: Any) -> tuple[Any, ...]:
    count: int = kernel.py_func.__code__.co_argcount
    return (types.int64,) * count
