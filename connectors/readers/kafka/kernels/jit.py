"""The one decorator of all kernels of messages."""

from __future__ import annotations

from pathlib import Path

from connectors.readers.machine.jit import decorators

__all__ = ["inlined", "kernel"]

_made = decorators(Path(__file__).parent)
kernel, inlined = _made.kernel, _made.inlined
