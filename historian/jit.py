"""Compiling with numba, for packages of kernels: kept on disk, never older than its source, and said when it takes time.

Compiled code lies beside the package, else in the user's cache directory. Where both are read-only it lies in a directory of the user's
own in the system's temporary directory, until that is cleared. Where NUMBA_CACHE_DIR is set it lies there, under names that
do not depend on where the package is installed. Such a directory, filled by ``python -m connectors.compile``, serves any
machine with the same release, Python and processor. With NUMBA_CPU_NAME=generic on both sides any processor of the family.
Where it is not set, code that came with the wheel serves too (:mod:`historian.shipped_code`).
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config, event, registry

from historian.shipped_code import knows, look_there

__all__ = ["compiled", "content_stamp", "has_code", "is_kept_in", "kept_code"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "boundscheck": False}
_SAID_FROM_S = 1.0
_SAID_DIRECTORY: str = vars(config)["CACHE_DIR"]
"""What the user says by NUMBA_CACHE_DIR, "" for nothing: later it may be a directory of ours."""
_log = logging.getLogger(__name__)


def compiled(function: _Function, *, stamp: str, nogil: bool, inlined: bool = False) -> _Function:
    """Compiles *function* on its first call; later processes load it from disk where *stamp* is the same.

    The first compilation of a process that finds nothing on disk is logged as a warning, since it takes a while.
    """
    settings: Any = config
    try:
        made: Any = numba.njit(nogil=nogil, forceinline=inlined, **_OPTIONS)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        settings.CACHE_DIR = str(_own_directory())
        made = numba.njit(nogil=nogil, forceinline=inlined, **_OPTIONS)(function)
    # What was shipped is still looked for where it was said to be.
    wanted = _SAID_DIRECTORY or settings.CACHE_DIR
    # numba looks only at the file that holds the function. A kernel compiled with other helpers or constants than
    # today's would give wrong rows in silence, so the stamp is the content of all. A copied package stays warm, too.
    cache = made._cache  # noqa: SLF001
    cache._cache_file._source_stamp = stamp  # noqa: SLF001
    if wanted:
        _keep_in(cache, Path(wanted) / function.__module__)
    if not _SAID_DIRECTORY:
        look_there(cache, function.__module__)
    _listener.kernels.add(made)
    return made  # type: ignore[no-any-return]


def content_stamp(*packages: Path) -> str:
    """A digest of all modules of packages of kernels, and of how this module compiles them."""
    digest = hashlib.blake2b(digest_size=16)
    for path in (Path(__file__), *(path for package in packages for path in sorted(package.rglob("*.py")))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def has_code(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether code of *kernel* for these types is there, in this process or on disk for this processor. Loads none."""
    if arguments in kernel.overloads:
        return True
    cache = kernel._cache  # noqa: SLF001 - numba does not tell without loading it
    target: Any = registry.cpu_target.target_context
    return knows(cache._cache_file, cache._index_key(arguments, target.codegen()))  # noqa: SLF001


def kept_code() -> Iterator[tuple[str, Path]]:
    """Files of code that was compiled for kernels which are imported by now, each with its name under NUMBA_CACHE_DIR.

    What is no use there any more is among them; numba passes it by.
    """
    for kernel in _listener.kernels:
        cache = kernel._cache  # noqa: SLF001
        stem = Path(cache._cache_file._index_name).stem  # noqa: SLF001
        for path in sorted(Path(cache.cache_path).glob(f"{stem}.*")):
            yield f"{kernel.py_func.__module__}/{path.name}", path


def is_kept_in(kernel: Any, directory: Path) -> bool:
    """Whether *directory*, given as NUMBA_CACHE_DIR, has code of *kernel* by now."""
    name: str = kernel._cache._cache_file._index_name  # noqa: SLF001
    path: Path = directory / kernel.py_func.__module__ / name
    return path.exists()


def _own_directory() -> Path:
    """A place in the temporary directory that this user alone can write to: what lies there is run."""
    path = Path(tempfile.gettempdir()) / f"pyspark-historian-kernels-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return path if is_ours else Path(tempfile.mkdtemp(prefix=f"{path.name}-"))


def _keep_in(cache: Any, folder: Path) -> None:
    """Has numba keep a kernel's code in *folder*, or only look there where nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # numba has found another place
    file = cache._cache_file  # noqa: SLF001
    cache._cache_path = file._cache_path = str(folder)  # noqa: SLF001
    file._index_path = str(folder / file._index_name)  # noqa: SLF001
    if not os.access(folder, os.W_OK):
        file.save = lambda key, data: None  # noqa: ARG005 - nowhere to save it


class _Listener(event.Listener):
    """Says what is compiled; numba tells of compilations only, not of code that is loaded from disk."""

    def __init__(self) -> None:
        self.kernels: set[Any] = set()
        self._began: list[tuple[Any, float]] = []
        self._is_said = False

    def on_start(self, event: Any) -> None:
        """A compilation begins, perhaps inside another one."""
        kernel = event.data["dispatcher"]
        if kernel not in self.kernels:
            return
        self._began.append((kernel, time.monotonic()))
        if not self._is_said:
            self._is_said = True
            _log.warning(
                "compiling kernels, which takes about a minute once on each machine; the code is kept in %s",
                kernel._cache.cache_path,  # noqa: SLF001
            )

    def on_end(self, event: Any) -> None:
        """It ends; the outermost one is what was called."""
        kernel = event.data["dispatcher"]
        if kernel not in self.kernels or not self._began:
            return
        _, began_s = self._began.pop()
        spent_s = time.monotonic() - began_s
        if not self._began and spent_s >= _SAID_FROM_S:
            _log.warning("compiled %s in %.1f s", kernel.py_func.__name__, spent_s)


_listener = _Listener()
_register: Any = event.register
_register("numba:compile", _listener)
