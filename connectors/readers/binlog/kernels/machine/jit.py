"""The one decorator of all kernels of logs."""

from __future__ import annotations

from pathlib import Path

from connectors.readers.machine.jit import decorators

__all__ = ["inlined", "kernel", "kernel_with_gil"]

_made = decorators(Path(__file__).parent.parent)
kernel, kernel_with_gil, inlined = _made.kernel, _made.kernel_with_gil, _made.inlined
