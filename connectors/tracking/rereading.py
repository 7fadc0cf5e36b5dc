"""The log behind a position read once more, for some tables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from connectors.readers.base import Bound
from connectors.tracking.prepared_transactions import find_prepared
from connectors.tracking.topics.met_schemas import MetSchemas
from connectors.tracking.topics.statement_times import tell_statements
from connectors.tracking.walk import Walk
from historian.history.prefix import covers
from historian.names import TableName
from historian.positions import KAFKA
from historian.store import Store

if TYPE_CHECKING:
    from connectors.readers.base import Reader
    from connectors.tracking.tracker import Tracker
    from historian.plans.passages import Passages
    from historian.positions import LogPosition

__all__ = ["passages_before", "walked_again"]


def walked_again(
    tracker: Tracker,
    reader: Reader,
    wanted: Callable[[TableName], bool],
    base: int,
    start: LogPosition,
    until: LogPosition | None,
) -> tuple[Walk, list[Bound]]:
    """A walk from *start* up to *until*, or the log's present end, and its bounds; *tracker* and its store learn nothing of it.

    Args:
        reader: of the tracker's log.
        wanted: names of the tables.
        base: number of the last timeline entry at or before *start*.

    Raises:
        LogPurged: the log behind *start* is gone.
    """
    # What stopped a table once is not to stop it in the connector's own store again.
    tell_statements(reader, lambda: tracker.history)
    with closing(Store.open("sqlite://")) as scratch:
        walk = Walk(
            tracker.history,
            base,
            scratch,
            wanted,
            reader.flavor,
            start,
            tracker.online_changes,
            accept_cascades=tracker.accept_cascades,
            find_prepared=find_prepared(reader, start),
            topics=MetSchemas(tracker.history, passages_before(tracker, start)) if reader.flavor == KAFKA else None,
        )
        bounds, at = list[Bound](), start
        while until is None or not covers(at, until):
            found = [bound for item in reader.scan(at, until=until) if (bound := walk.take(item)) is not None]
            bounds += found
            # A scan of topics ends behind a watermark, and rows may follow it.
            if until is None or reader.flavor != KAFKA or not found:
                break
            at = found[-1].position
    return walk, bounds


def passages_before(tracker: Tracker, start: LogPosition) -> Passages:
    """Passages of partitions before *start*: what lies behind is met again."""
    return {
        (part, table_id): tuple(each for each in found if start.offsets.contains_gtid(f"{part}:{each.offset}"))
        for (part, table_id), found in tracker.store.passages().items()
    }
