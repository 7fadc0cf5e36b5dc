"""What a tracker knows of a copier: who gives plans the rows that they copy from the source."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from historian.plans.plans import Plan

__all__ = ["Copier", "CopyingPlan"]


class CopyingPlan(Protocol):
    """A plan with what it copies."""

    @property
    def plan(self) -> Plan:
        """The plan, with how far its tables are copied. It is not stored."""

    @property
    def copied(self) -> Iterable[bytes]:
        """Its rows, chunk by chunk, to be stored with it. Can be gone through again."""

    @property
    def is_news(self) -> bool:
        """Whether a copy begins, comes further or ends with it."""

    def close(self) -> None:
        """Frees the rows."""


class Copier(Protocol):
    """Gives plans the rows that they copy."""

    @property
    def waits(self) -> bool:
        """Whether, as of the last plan, rows are left that can be copied."""

    @property
    def is_free(self) -> bool:
        """Whether they may be copied now, as the limits say."""

    def with_copies(self, plan: Plan, begun: Collection[int]) -> CopyingPlan:
        """*plan*, behind all that is stored, with what it copies; the copies of the tables *begun* begin with it.

        Raises:
            SourceError: rows cannot be read as of a position.
            ConnectionLost: the server does not answer.
        """
