"""Which seeds a run uses: ``HISTORIAN_SEEDS=5,9`` names them, ``SEEDS=10`` says how many, else the test does."""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["seeds"]


def seeds(usual: Sequence[int]) -> list[int]:
    """The seeds to run; *usual* where the environment names none."""
    named, count = os.environ.get("HISTORIAN_SEEDS", ""), os.environ.get("SEEDS", "")
    if named:
        return [int(seed) for seed in named.split(",")]
    return list(range(1, int(count) + 1)) if count else list(usual)
