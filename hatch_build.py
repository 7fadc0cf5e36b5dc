"""Puts compiled kernels into a wheel, which is then one for a Python and a platform: ``make wheel-kernels``.

The environment variable HISTORIAN_KERNELS names the directory that has them. Without it the wheel is a plain one.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["KernelsHook"]


class KernelsHook(BuildHookInterface[Any]):
    """As the module says."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before each build; an editable installation compiles its own."""
        kernels = os.environ.get("HISTORIAN_KERNELS")
        if self.target_name != "wheel" or version != "standard" or not kernels:
            return
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["force_include"][kernels] = "historian/shipped"
        # Nothing of the platform's C library is in the code: numba brings what it calls.
        build_data["tag"] = f"{python}-{python}-manylinux_2_17_x86_64"
        build_data["pure_python"] = False
