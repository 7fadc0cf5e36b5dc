"""The classes of attack by name: each is a module with ``script(rng, server)``, a :class:`~adversary.script.Script`.

A module may name the servers that it is for in ``SERVERS``, each with a word of :data:`OPTIONS` behind a plus, and ask for a second server
with ``SECOND``, for Delta tables with ``SPARK``.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from databases.server_builds import BUILDS

__all__ = ["CLASSES", "OPTIONS", "servers_of"]

CLASSES: dict[str, ModuleType] = {
    found.name: importlib.import_module(f"{__name__}.{found.name}")
    for found in pkgutil.iter_modules(__path__)
    if not found.name.startswith("_")
}

OPTIONS = {"lower": ("lower_case_table_names=1",), "second": ()}
"""What servers are started with, by the word behind the plus of their name."""


def servers_of(attack: str) -> list[str]:
    """The servers that a class is for."""
    return list(getattr(CLASSES[attack], "SERVERS", BUILDS))
