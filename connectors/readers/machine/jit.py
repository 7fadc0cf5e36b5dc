"""The decorators of a reader's kernels: compiled once, kept on disk, released from the GIL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from historian.jit import compiled, content_stamp

__all__ = ["Decorators", "decorators"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Decorators(NamedTuple):
    """The decorators of one package of kernels, whose code is compiled anew where a module of it changes.

    Attributes:
        stamp: of the package's content.
    """

    stamp: str

    def kernel(self, function: _Function) -> _Function:
        """Compiles *function* on its first call (see :func:`historian.jit.compiled`)."""
        return compiled(function, stamp=self.stamp, nogil=True)

    def kernel_with_gil(self, function: _Function) -> _Function:
        """Like :meth:`kernel`, for an entry that calls into the interpreter."""
        return compiled(function, stamp=self.stamp, nogil=False)

    def inlined(self, function: _Function) -> _Function:
        """Like :meth:`kernel`, for a helper whose code is wanted in the place of each call."""
        return compiled(function, stamp=self.stamp, nogil=True, inlined=True)


def decorators(package: Path) -> Decorators:
    """The decorators of the kernels in the directory *package*, which may use this room's."""
    return Decorators(content_stamp(package, Path(__file__).parent))
