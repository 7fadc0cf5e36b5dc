"""Compiling with numba, for packages of kernels: kept on disk, and never older than its source."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config

__all__ = ["compiled", "content_stamp"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "boundscheck": False}


def compiled(function: _Function, *, stamp: str, nogil: bool, inlined: bool = False) -> _Function:
    """Compiles *function* on its first call; later processes load it from disk where *stamp* is the same.

    The compiled code lies beside the package, else in the user's cache directory, else (both read-only) in the system's
    temporary directory, where it serves the machine until that is cleared.
    """
    try:
        made: Any = numba.njit(nogil=nogil, forceinline=inlined, **_OPTIONS)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        writable: Any = config
        writable.CACHE_DIR = str(Path(tempfile.gettempdir()) / "pyspark-historian-kernels")
        made = numba.njit(nogil=nogil, forceinline=inlined, **_OPTIONS)(function)
    # numba looks only at the file that holds the function. A kernel compiled with other helpers or constants than
    # today's would give wrong rows in silence, so the stamp is the content of all. A copied package stays warm, too.
    made._cache._cache_file._source_stamp = stamp  # noqa: SLF001
    return made  # type: ignore[no-any-return]


def content_stamp(package: Path) -> str:
    """A digest of all modules of a package of kernels, and of how this module compiles them."""
    digest = hashlib.blake2b(digest_size=16)
    for path in (Path(__file__), *sorted(package.glob("*.py"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
