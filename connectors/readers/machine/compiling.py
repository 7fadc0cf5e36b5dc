"""Compiling kernels that take numbers and addresses only before they are called, and whether that was done."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import registry

__all__ = ["compile_kernel", "is_compiled"]


def compile_kernel(kernel: Any) -> None:
    """Compiles or loads a kernel."""
    kernel.compile(_arguments(kernel))


def is_compiled(kernel: Any) -> bool:
    """Whether its code is there, in this process or on disk for this processor."""
    arguments = _arguments(kernel)
    if arguments in kernel.overloads:
        return True
    cache = kernel._cache  # noqa: SLF001 - numba does not tell without loading it
    target: Any = registry.cpu_target.target_context
    return cache._index_key(arguments, target.codegen()) in cache._cache_file._load_index()  # noqa: SLF001


def _arguments(kernel: Any) -> tuple[Any, ...]:
    count: int = kernel.py_func.__code__.co_argcount
    return (types.int64,) * count
