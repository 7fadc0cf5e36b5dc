"""Globs on names: ``*`` stands for any characters and ``?`` for one; letter case counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["is_exact", "matches"]


def matches(globs: Sequence[str], names: Sequence[str]) -> bool:
    """Whether each glob matches the name in its place, as far as there are globs.

    >>> matches(("shop", "*"), ("shop", "orders", "id")), matches(("shop", "a?"), ("shop", "a"))
    (True, False)
    """
    return all(_compiled(glob).fullmatch(name) for glob, name in zip(globs, names, strict=False))


def is_exact(glob: str) -> bool:
    """Whether only one name matches."""
    return not {"*", "?"}.intersection(glob)


@lru_cache(maxsize=256)
def _compiled(glob: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(c, re.escape(c)) for c in glob), re.DOTALL)
