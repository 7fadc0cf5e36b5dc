"""The same statement as different people write it."""

from __future__ import annotations

import random
import re

__all__ = ["spelled"]

_QUOTED = re.compile(r"(`[^`]*`|'(?:[^'\\]|\\.|'')*')")
COMMENTS = ("", "", "", "/* app:checkout, user's */ ", "-- drop table `orders`\n", "# it's late\n")


def spelled(sql: str, rng: random.Random) -> str:
    """*sql* with letter case, white space and comments by chance; names and texts stay."""
    style = rng.choice((str, str, str.lower, str.capitalize))
    wide = rng.random() < 0.2
    parts = _QUOTED.split(sql)
    for at in range(0, len(parts), 2):
        part = style(parts[at])
        parts[at] = part.replace(" ", "\n\t ") if wide else part
    return rng.choice(COMMENTS) + "".join(parts)
