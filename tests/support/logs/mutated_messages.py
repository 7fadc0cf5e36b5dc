"""Recorded messages with parts changed at random."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

__all__ = ["mutated", "recorded"]

STRANGE: list[Any] = [
    None, True, False, 0, -1, 10**30, 1.5, 1e300, "", "x", "2024-13-45", "0x", "\u0000", "\ud83d", [], {}, [None], [[]], {"a": 1}, [{"id": None}],
    "9" * 400, "-" , "1e999999999", "NaN",
]  # fmt: skip


def recorded(directory: Path) -> list[dict[str, Any]]:
    """The goldens of *directory*."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(directory.glob("*.json"))]


def mutated(message: Any, numbers: random.Random) -> Any:
    """*message* with one part replaced, taken away, or with a name that is another's."""
    changed = copy.deepcopy(message)
    parts: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            parts.append((value, key))
            walk(value[key])

    walk(changed)
    if not parts:
        return numbers.choice(STRANGE)
    held, key = numbers.choice(parts)
    kind = numbers.randrange(3)
    if kind == 0 and isinstance(held, dict):
        del held[key]
    elif kind == 1:
        held[key] = copy.deepcopy(numbers.choice(parts)[0])
    else:
        held[key] = copy.deepcopy(numbers.choice(STRANGE))
    return changed
