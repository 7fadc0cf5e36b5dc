"""How many messages of topics came again, may have done so, or came late, in all plans."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from historian.plans.plans import DOUBTFUL, LATE, REPEATED, PartitionRange, Plan
from historian.store.facts import fact, set_fact

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["held_counts", "record_counts"]

_NAME = "messages"
_KINDS = (REPEATED, DOUBTFUL, LATE)


def record_counts(connection: Connection, plan: Plan) -> None:
    """Adds those of *plan*, in its transaction. One that reads a table again meets what was counted before."""
    if any(table.behind is not None for table in plan.tables):
        return
    found = Counter[str]()
    for part in plan.ranges:
        if isinstance(part, PartitionRange):
            found.update({kind: count for kind, count in part.passed_over if kind in _KINDS})
    if found:
        set_fact(connection, _NAME, json.dumps(Counter(held_counts(connection)) + found, sort_keys=True))


def held_counts(connection: Connection) -> dict[str, int]:
    """By kind, as plans name them; of those that there are."""
    found: dict[str, int] = json.loads(fact(connection, _NAME) or "{}")
    return found
