"""Up to which place in the log rows have proven a table's schema."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from historian.positions import KAFKA, LogPosition, parse_gtids

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.positions.places import Place
    from historian.store import Store

__all__ = ["known_until", "with_transaction"]


def known_until(history: History, store: Store, table_id: int) -> LogPosition | None:
    """Up to where plans have proven the table's schema by its rows.

    Without such a plan, where the history's last version of it began; None for a table that has none.
    """
    plan = store.last_plan()
    while plan is not None:
        proven = next((table.proven for table in plan.tables if table.table_id == table_id), None)
        if proven is not None:
            return proven
        plan = store.plan(plan.previous)
    versions = history.versions_of(table_id)
    return versions[-1].entry.position if versions else None


def with_transaction(position: LogPosition, place: Place) -> LogPosition:
    """*position* and the transaction behind it, by GTID; file and offset, where that has no end yet, stay before it."""
    if not place.gtid or position.flavor == KAFKA:
        return position
    before, own = position.gtid_set, parse_gtids(place.gtid, position.flavor)
    return replace(position, gtids=str(before.union(own)))  # type: ignore[arg-type]  # both of one flavor
