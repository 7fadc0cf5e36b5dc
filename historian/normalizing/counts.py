"""What normalisation met."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NormalCounts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalCounts:
    """What was met that a source whose changes come once and in order does not send.

    Attributes:
        unchanged: rows that are as their key's row was: they came again, or nothing changed. They are passed over.
        seen_inserts: inserts of a key that has a row: they are changes.
        unseen_updates: changes of a key that has none: they are inserts.
        unseen_deletes: deletes of a key that has none. They are passed over.
    """

    unchanged: int = 0
    seen_inserts: int = 0
    unseen_updates: int = 0
    unseen_deletes: int = 0

    def __add__(self, other: NormalCounts) -> NormalCounts:
        return NormalCounts(
            unchanged=self.unchanged + other.unchanged,
            seen_inserts=self.seen_inserts + other.seen_inserts,
            unseen_updates=self.unseen_updates + other.unseen_updates,
            unseen_deletes=self.unseen_deletes + other.unseen_deletes,
        )
