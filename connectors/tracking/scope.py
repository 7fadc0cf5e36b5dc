"""Tables that come into view, or leave it, since the configuration takes in others than when the log was read last.

A plan says under which filter it was made, so that a change is noticed with the plan behind it, whoever kept the plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from connectors.config.filters import TableFilter
from historian.names import TableName
from historian.plans.plans import Plan, Quarantine
from historian.positions import KAFKA
from historian.positions.places import Place

if TYPE_CHECKING:
    from historian.positions import LogPosition
    from historian.schema.snapshots import Catalog

__all__ = ["filter_text", "is_noted", "place_at_end", "stops_by_filter"]


def filter_text(captured: Callable[[TableName], bool]) -> str:
    """*captured* as plans keep it; "" for what is no filter of a configuration."""
    return captured.text() if isinstance(captured, TableFilter) else ""


def is_noted(captured: Callable[[TableName], bool], plan: Plan | None) -> bool:
    """Whether *plan*, the last one, was made under that filter, or under none that is known."""
    return plan is None or not plan.captured or plan.captured == filter_text(captured)


def stops_by_filter(
    before: str, captured: Callable[[TableName], bool], catalog: Catalog, start: LogPosition
) -> Iterator[tuple[int, TableName, Quarantine]]:
    """The tables of *catalog* of which *captured* thinks otherwise than the filter *before* did: id, name, and why each stops.

    Args:
        before: as :func:`filter_text` gave it for the plan before.
        start: up to where the log was read under it.
    """
    former = TableFilter.parse(before)
    for name, snapshot in sorted(catalog.tables.items()):
        if former(name) == captured(name):
            continue
        is_in = captured(name)
        if is_in:
            reason = (
                f"the configuration takes it in from here on only: what it held by then is not known\n  at: {start}\n"
                "  `historian heal` lets its changelog go on from the present, with that gap"
            )
        else:
            reason = f"the configuration takes it in no more: its targets stand as they were\n  at: {start}"
        # What it is stays known while nobody wants its rows, so a look at the source brings it back where it is taken in again.
        stop = Quarantine(place=place_at_end(start), reason=reason, since=start, repairable=not is_in)
        yield snapshot.table_id, name, stop


def place_at_end(position: LogPosition) -> Place:
    """A place that lies at or before *position* on every server: by a transaction that it holds, where it holds some.

    Of topics: the last message that was read of the last partition.
    """
    if position.flavor == KAFKA:
        read = [each for each in position.offsets.next if each[2]]
        topic, number, upto = read[-1] if read else ("", 0, 0)
        gtid = f"{topic}:{number}:{upto - 1}" if read else ""
        return Place(gtid=gtid, file=f"{topic}:{number}", offset=max(0, upto - 1), ordinal=0)
    return Place(gtid=_last_gtid(position.gtids), file=position.file, offset=position.offset, ordinal=0)


def _last_gtid(gtids: str) -> str:
    """A GTID of a set as text: the last one of its last interval; of MariaDB's positions, that of the last domain."""
    source, *parts = gtids.rsplit(",", maxsplit=1)[-1].strip().split(":")
    if not parts:
        return source
    tags = [part for part in parts if not part[0].isdigit()]
    return ":".join((source, *tags[-1:], parts[-1].rpartition("-")[2]))
