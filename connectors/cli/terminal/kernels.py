"""Kernels of a new installation: compiled before a command reads a log, with a bar."""

from __future__ import annotations

from connectors.cli.terminal.progress import can_be_live, progress

__all__ = ["compile_first"]


def compile_first() -> None:
    """Compiles what has no code on this machine yet, where a terminal shows how far that is; elsewhere each kernel is compiled when it is called."""
    if not can_be_live():
        return
    from connectors.compile import compile_kernel, missing_kernels

    missing = missing_kernels()
    if not missing:
        return
    # What is compiled is about as long as its Python code.
    sizes = [len(kernel.py_func.__code__.co_code) for kernel in missing]
    with progress("compiling kernels, once on this machine", sum(sizes)) as told:
        for at, kernel in enumerate(missing):
            told.reach(sum(sizes[:at]))
            compile_kernel(kernel)
