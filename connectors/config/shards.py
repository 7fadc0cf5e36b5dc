"""What is refused of tables that are to be one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from historian.plans.shards import IntoSettings, evolution_problems, group_problems

__all__ = ["refuse_shards", "refuse_shared"]


def refuse_shards(glob: str, chosen: Mapping[str, Any]) -> None:
    """Raises ValueError where what is *chosen* of tables that match *glob* makes them no one table."""
    into = chosen.get("into")
    if into is None:
        return
    problems = [*group_problems(glob, into), *evolution_problems(chosen["evolution"])]
    if chosen.get("key"):
        problems.append(f"expected no key of their own, where into is set @ $.key (got {', '.join(chosen['key'])})")
    if chosen.get("keyless") == "rows":
        problems.append("expected changelog, where into is set @ $.keyless (got rows)")
    for problem in problems:
        expected, _, place = problem.partition(" @ $.")
        key, _, got = place.partition(" ")
        raise ValueError(f"{key}: {expected} {got} (of tables {glob})")


def refuse_shared(chosen: Mapping[str, IntoSettings]) -> None:
    """Raises ValueError where two globs name one table for what they match."""
    globs: dict[str, str] = {}
    for glob, (name, _) in chosen.items():
        other = globs.setdefault(name, glob)
        if other != glob:
            raise ValueError(f"into.name: expected another table than that of {other}, not {name} (of tables {glob})")
