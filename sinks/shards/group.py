"""What a lake keeps of tables that are one table there: its schema, and which column of each is which of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from historian import codec
from historian.names import TableName
from historian.schema.snapshots import Snapshot

__all__ = ["Group", "GroupStates", "Member"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One shard.

    Attributes:
        name: with which it came.
        values: what the shard columns hold in its rows, in their order.
        columns: id of each of its columns to the id of the group's.
        dropped: ids of columns of the group that it has dropped.
    """

    name: TableName
    values: tuple[str, ...]
    columns: Mapping[int, int]
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Shards and the one table that they are.

    Attributes:
        number: version of the history that led to the schema.
        snapshot: the schema; shard columns are its first, also of its key. Its table id is the first shard's, its columns' ids
            are those of the shards that brought them.
        members: by table id; without those that were dropped.
        previous: column id to names that it had before.
    """

    number: int
    snapshot: Snapshot
    members: Mapping[int, Member]
    previous: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStates:
    """A group after the last plan that changed it, and before it, for a replay of that plan.

    Attributes:
        plan: its number.
        before: None: there was none.
    """

    plan: int
    before: Group | None
    after: Group

    @classmethod
    def parse(cls, text: str) -> GroupStates:
        """What :meth:`text` gave."""
        return _parsed(text)

    def text(self) -> str:
        """As :attr:`sinks.contract.locations.TableLocation.shards` keeps it."""
        return codec.dump_short(GroupStates, self)

    def at(self, plan: int) -> Group | None:
        """The group as *plan*, not before the last one that changed it, finds it."""
        return self.before if plan == self.plan else self.after


@lru_cache(maxsize=16)
def _parsed(text: str) -> GroupStates:
    """Asked for several times a plan."""
    return codec.load(GroupStates, text)
