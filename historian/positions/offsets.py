"""Offsets of topics: up to where each partition of each topic has been read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from historian.errors import PositionError

__all__ = ["TopicOffsets"]

_PARTITION = re.compile(r"([a-zA-Z0-9._-]{1,249}):([0-9]{1,10}):([0-9]{1,19})")
_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """The next offset of each partition: all messages before it have been read.

    Topics and partitions share no order, so two vectors may not be ordered at all: there is ``covers()`` and no ``<``.

    Attributes:
        next: topic, partition and next offset, ascending. A partition at 0 is named where it is known to be there.
    """

    next: tuple[tuple[str, int, int], ...] = ()
    _by_partition: Mapping[tuple[str, int], int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_partition", {(topic, partition): at for topic, partition, at in self.next})

    def __getstate__(self) -> tuple[tuple[str, int, int], ...]:
        return self.next

    def __setstate__(self, state: tuple[tuple[str, int, int], ...]) -> None:
        object.__setattr__(self, "next", state)
        self.__post_init__()

    @classmethod
    def of(cls, offsets: Mapping[tuple[str, int], int]) -> TopicOffsets:
        """The vector of these next offsets, by topic and partition."""
        return cls(tuple((topic, partition, at) for (topic, partition), at in sorted(offsets.items())))

    @classmethod
    def parse(cls, text: str) -> TopicOffsets:
        """Parses ``topic:partition:offset,…``, each partition once; the empty text is the beginning of all topics.

        >>> str(TopicOffsets.parse("shop.b:0:7, shop.a:1:3"))
        'shop.a:1:3,shop.b:0:7'

        Raises:
            PositionError: with the part of the text that cannot be read.
        """
        found: dict[tuple[str, int], int] = {}
        for part in text.split(",") if text.strip() else ():
            match = _PARTITION.fullmatch(part.strip())
            at = None if match is None else (match[1], int(match[2]))
            if match is None or at is None or at in found or int(match[3]) > _MAX_OFFSET:
                raise PositionError(
                    "not offsets of topics",
                    where=text,
                    expected="TOPIC:PARTITION:OFFSET, comma separated, each partition once",
                    found=part,
                )
            found[at] = int(match[3])
        return cls.of(found)

    def __str__(self) -> str:
        return ",".join(f"{topic}:{partition}:{at}" for topic, partition, at in self.next)

    def __bool__(self) -> bool:
        return bool(self.next)

    def __iter__(self) -> Iterator[tuple[tuple[str, int], int]]:
        return iter(self._by_partition.items())

    def offset(self, topic: str, partition: int) -> int | None:
        """The next offset of a partition; None where the vector does not name it, so that nothing of it was read."""
        return self._by_partition.get((topic, partition))

    def contains_gtid(self, gtid: str) -> bool:
        """Whether the message ``topic:partition:offset``, which names itself by that as a transaction does by its GTID, was read."""
        named = TopicOffsets.parse(gtid).next
        if len(named) != 1:
            raise PositionError("not the place of a message", where=gtid, expected="TOPIC:PARTITION:OFFSET")
        topic, partition, offset = named[0]
        return offset < self._by_partition.get((topic, partition), 0)

    def covers(self, other: TopicOffsets) -> bool:
        """Whether each partition stands at or behind where *other* has it."""
        return all(self._by_partition.get(partition, 0) >= at for partition, at in other)

    def union(self, other: TopicOffsets) -> TopicOffsets:
        """The later offset of each partition."""
        joined = dict(self._by_partition)
        for partition, at in other:
            joined[partition] = max(at, joined.get(partition, 0))
        return TopicOffsets.of(joined)

    def subtract(self, other: TopicOffsets) -> TopicOffsets:
        """The partitions in which this vector stands behind *other*, where this one has them; empty where *other* covers it."""
        return TopicOffsets(tuple(each for each in self.next if each[2] > other._by_partition.get(each[:2], 0)))

    def since(self, start: TopicOffsets) -> int:
        """How many offsets lie between *start* and here. Gaps of compaction and transaction markers count: there is no telling them."""
        return sum(max(0, at - start._by_partition.get(partition, 0)) for partition, at in self)
