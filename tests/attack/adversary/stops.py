"""The stops that docs/reference/stops.md names: the beginning of each reason, by name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

__all__ = ["named_stops", "stop_of"]

_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "stops.md"
_NAME = "…"
"""What a reason begins with that begins with a table's name."""
_ROW = re.compile(r"^\| `(?P<name>[a-z_]+)` \| (?P<begin>.+?) \| ", re.MULTILINE)


@cache
def named_stops() -> dict[str, tuple[str, ...]]:
    """Each stop's name with how its reasons begin, as docs/reference/stops.md lists them."""
    found: dict[str, tuple[str, ...]] = {}
    for row in _ROW.finditer(_PAGE.read_text(encoding="utf-8")):
        found[row["name"]] = (*found.get(row["name"], ()), row["begin"])
    return found


def stop_of(reason: str) -> str | None:
    """The name of the stop that a reason is of; None where no page names it."""
    fits = [
        (len(begin), name)
        for name, begins in named_stops().items()
        for begin in begins
        if reason.startswith(begin) or (begin[0] == _NAME and begin[1:] in reason.split("\n", maxsplit=1)[0])
    ]
    return max(fits)[1] if fits else None
