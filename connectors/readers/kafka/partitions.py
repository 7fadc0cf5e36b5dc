"""What a partition is called."""

from __future__ import annotations

__all__ = ["Partition"]

Partition = tuple[str, int]
"""A topic's name and the number of one of its partitions."""
