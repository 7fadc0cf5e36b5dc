"""The edit by which the rows of one shard go."""

from __future__ import annotations

from dataclasses import dataclass

from historian.schema.edits import TruncateTable

__all__ = ["ClearShard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearShard(TruncateTable):
    """The rows of one shard go, by a TRUNCATE or DROP of its table; those of the others stay.

    Attributes:
        values: id of each shard column, with what it holds in the rows that go.
        edit: the kind of edit that it was at the source, as :data:`historian.plans.evolution.RULES` has it.
        shard: the table that it was.
    """

    values: tuple[tuple[int, str], ...]
    edit: str
    shard: str
