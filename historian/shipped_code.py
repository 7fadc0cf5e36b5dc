"""Compiled kernels that came with the wheel: for one Python and one numba, and every processor from a baseline on.

``make wheel-kernels`` makes such a wheel. Where Python, numba, source or processor are others, its code is passed by and kernels are
compiled as ever.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba.core import config
from numba.core.caching import IndexDataCacheFile

__all__ = ["BASELINE", "DIRECTORY", "knows", "look_there"]

BASELINE = "x86-64-v3"
"""LLVM's name of the processors: Intel's since Haswell, AMD's since Excavator."""
DIRECTORY = Path(__file__).with_name("shipped")
"""Where a wheel has its code, as it stands under NUMBA_CACHE_DIR."""
_NEEDED = ("cx16", "sahf", "popcnt", "sse4.2", "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")


def look_there(cache: Any, module: str) -> None:
    """Has numba's *cache* of a kernel in *module* look at shipped code behind its own."""
    if _can_run():
        own = cache._cache_file  # noqa: SLF001
        cache._cache_file = _WithShipped(own, cache._impl.filename_base, module)  # noqa: SLF001


def knows(file: IndexDataCacheFile, key: Any) -> bool:
    """Whether a cache's *file* has code for *key*, or would take shipped code."""
    own: bool = key in file._load_index()  # noqa: SLF001
    return own or (isinstance(file, _WithShipped) and file.is_shipped(key))


class _WithShipped(IndexDataCacheFile):
    """A kernel's own file, and the one that was shipped, which is only read."""

    def __init__(self, own: IndexDataCacheFile, name: str, module: str) -> None:
        super().__init__(own._cache_path, name, own._source_stamp)  # type: ignore[no-untyped-call]  # noqa: SLF001
        self._shipped = IndexDataCacheFile(str(DIRECTORY / module), name, own._source_stamp)  # noqa: SLF001

    def load(self, key: Any) -> Any:
        """As numba has it: what is compiled, None where nothing is."""
        found = super().load(key)  # type: ignore[no-untyped-call]
        return self._shipped.load(_shipped_key(key)) if found is None else found

    def is_shipped(self, key: Any) -> bool:
        """Whether there is shipped code for *key*."""
        return _shipped_key(key) in self._shipped._load_index()  # noqa: SLF001


def _shipped_key(key: Any) -> Any:
    """Under what code stands in a shipped index that would stand under *key* if it were this processor's own."""
    signature, (triple, _, _), content = key
    return signature, (triple, BASELINE, ""), content


@cache
def _can_run() -> bool:
    """Whether there is shipped code, nobody asks for other code, and this processor can run it."""
    settings: Any = config
    if not DIRECTORY.is_dir() or settings.CPU_NAME is not None or platform.machine() != "x86_64":
        return False
    found = llvm.get_host_cpu_features()
    return all(found.get(name, False) for name in _NEEDED)
