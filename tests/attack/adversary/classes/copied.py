"""Tables that hold rows before the connector is there, which copies them while any other class goes on."""

from __future__ import annotations

import importlib
import random
from dataclasses import replace
from types import ModuleType

from adversary.classes.captured import untold_labels
from adversary.script import Follow, Script

SPARK = True
_OTHERS = (
    "cascades",
    "charsets",
    "engines",
    "expressions",
    "indirect",
    "keys",
    "literals",
    "logs",
    "moves",
    "names",
    "recreate",
    "settings",
    "shards",
    "swaps",
    "temporary",
    "transactions",
    "versioned",
    "wrappers",
    "zones",
)


def script(rng: random.Random, server: str) -> Script:
    """Another class's script; the connector begins with ``start: initial`` behind some of its steps."""
    able = [module for name in _OTHERS if server in getattr(module := _class(name), "SERVERS", (server,))]
    other: Script = rng.choice(able).script(rng, server)
    begin = rng.randrange(len(other.steps))
    steps = [step for at, step in enumerate(other.steps) if at >= begin or not isinstance(step, Follow)]
    # What a foreign key changes without a trace in the log is read from the source.
    stops = (other.stops - {"cascade"}) | untold_labels(server)
    return replace(other, steps=steps, start="initial", stops=stops, fails=other.fails - {"cascades into c_a."})


def _class(name: str) -> ModuleType:
    return importlib.import_module(f"adversary.classes.{name}")
