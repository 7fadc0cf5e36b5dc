"""The classes of attack by name: each is a module with ``script(rng, server)``, a :class:`~adversary.script.Script`."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

__all__ = ["CLASSES"]

CLASSES: dict[str, ModuleType] = {
    found.name: importlib.import_module(f"{__name__}.{found.name}")
    for found in pkgutil.iter_modules(__path__)
    if not found.name.startswith("_")
}
