"""The one decorator of all kernels: compiled once, kept on disk, released from the GIL."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config

__all__ = ["kernel", "kernel_with_gil"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "boundscheck": False}


def kernel(function: _Function) -> _Function:
    """Compiles *function* on its first call; later processes load it from disk.

    The compiled code lies beside the package, else in the user's cache directory, else (both read-only) in the system's
    temporary directory, where it serves the machine until that is cleared.
    """
    return _compiled(function, nogil=True)


def _compiled(function: _Function, *, nogil: bool) -> _Function:
    try:
        compiled: Any = numba.njit(nogil=nogil, **_OPTIONS)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        writable: Any = config
        writable.CACHE_DIR = str(Path(tempfile.gettempdir()) / "pyspark-historian-kernels")
        compiled = numba.njit(nogil=nogil, **_OPTIONS)(function)
    # numba looks only at the file that holds the function. A kernel compiled with other helpers or constants than
    # today's would give wrong rows in silence, so the stamp is the content of all. A copied package stays warm, too.
    compiled._cache._cache_file._source_stamp = _STAMP  # noqa: SLF001
    return compiled  # type: ignore[no-any-return]


def kernel_with_gil(function: _Function) -> _Function:
    """Like :func:`kernel`, for an entry that calls into the interpreter."""
    return _compiled(function, nogil=False)


def _content() -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


_STAMP = _content()
