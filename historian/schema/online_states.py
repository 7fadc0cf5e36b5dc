"""The states that a column goes through while a database adds or drops it online, as data.

After F1 (Rae et al., Online, Asynchronous Schema Change in F1, VLDB 2013), which TiDB follows. Servers of one database may stand
at two neighbouring states at a time, never further apart. Then no value is left without its row, and no row that a reader
sees lacks a value that it must have.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

__all__ = [
    "ADD_OPTIONAL",
    "ADD_REQUIRED",
    "DROP_OPTIONAL",
    "DROP_REQUIRED",
    "RULES",
    "OnlineState",
    "Rules",
    "neighbours",
]


class OnlineState(Enum):
    """How far servers know of a column. WRITE_REORG is WRITE_ONLY while older rows are filled."""

    ABSENT = "absent"
    DELETE_ONLY = "delete_only"
    WRITE_ONLY = "write_only"
    WRITE_REORG = "write_reorg"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a server at a state does with the column's value.

    Attributes:
        deletes: the value goes when its row is deleted, and when its row is updated by a server that does not write it.
        writes: inserts and updates store a value: the user's where the column is read, else its default.
        reads: users see the column.
    """

    deletes: bool
    writes: bool
    reads: bool

    def stored_after(self, statement: str, *, stored: bool) -> bool:
        """Whether the column's value is stored after "insert", "update" or "delete" of its row."""
        if statement != "delete" and self.writes:
            return True
        return stored and not self.deletes


RULES: Mapping[OnlineState, Rules] = {
    OnlineState.ABSENT: Rules(deletes=False, writes=False, reads=False),
    OnlineState.DELETE_ONLY: Rules(deletes=True, writes=False, reads=False),
    OnlineState.WRITE_ONLY: Rules(deletes=True, writes=True, reads=False),
    OnlineState.WRITE_REORG: Rules(deletes=True, writes=True, reads=False),
    OnlineState.PUBLIC: Rules(deletes=True, writes=True, reads=True),
}

ADD_OPTIONAL = (OnlineState.ABSENT, OnlineState.DELETE_ONLY, OnlineState.PUBLIC)
"""A column that rows may lack: they read its default."""

ADD_REQUIRED = (
    OnlineState.ABSENT,
    OnlineState.DELETE_ONLY,
    OnlineState.WRITE_ONLY,
    OnlineState.WRITE_REORG,
    OnlineState.PUBLIC,
)
"""A column that every row must have; older rows are filled in WRITE_REORG."""

DROP_OPTIONAL = tuple(reversed(ADD_OPTIONAL))
DROP_REQUIRED = (OnlineState.PUBLIC, OnlineState.WRITE_ONLY, OnlineState.DELETE_ONLY, OnlineState.ABSENT)


def neighbours(path: tuple[OnlineState, ...]) -> tuple[tuple[OnlineState, OnlineState], ...]:
    """The pairs of states that servers stand at together on that path, in its order."""
    return tuple(itertools.pairwise(path))
