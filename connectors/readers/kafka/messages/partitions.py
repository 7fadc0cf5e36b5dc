"""What a partition is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from historian.positions.places import Place

__all__ = ["Partition", "partition_of"]

Partition = tuple[str, int]
"""A topic's name and the number of one of its partitions."""


def partition_of(place: Place) -> Partition:
    """The partition of a message's place, whose file is the topic's name and the number."""
    topic, _, number = place.file.rpartition(":")
    return topic, int(number)
