"""What partitions held back of a table that stopped: up to where its rows were delivered, and what they tell from there on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.readers.base import Bound, SchemaMet, Statement
from historian.history.prefix import covers
from historian.plans.plans import PartitionRange, Plan
from historian.positions import LogPosition, TopicOffsets
from historian.positions.places import Place

if TYPE_CHECKING:
    from connectors.tracking.tracker import Tracker

__all__ = ["Told", "delivered_of", "held_back", "position_of", "told_between"]

Told = tuple[list[SchemaMet | Statement], Bound]
"""What a scan tells, and where it ends."""


def delivered_of(first: Plan, table_id: int, place: Place) -> dict[str, int]:
    """Of partitions in the plan in which a table stopped, the offset up to which its rows were delivered."""
    found = {place.file: place.offset}
    for file in {part.file for part in first.ranges if isinstance(part, PartitionRange)} - {place.file}:
        parts = [part for part in first.ranges if isinstance(part, PartitionRange) and part.file == file]
        passages = {each for part in parts for each in part.passages if each.table_id == table_id}
        if any(each.is_read for each in passages):
            found[file] = max(part.end for part in parts)
            for passage in sorted(passages, key=lambda each: -each.offset):
                if passage.is_read:
                    break
                found[file] = passage.offset
    return found


def position_of(start: LogPosition, delivered: Mapping[str, int]) -> LogPosition:
    """*start* with partitions up to where rows were delivered."""
    offsets = dict(start.offsets)
    for file, offset in delivered.items():
        topic, _, number = file.rpartition(":")
        offsets[topic, int(number)] = max(offset, offsets.get((topic, int(number)), 0))
    return replace(start, gtids=str(TopicOffsets.of(offsets)))


def told_between(tracker: Tracker, first: Plan, last: Plan, before: LogPosition) -> Iterator[Told]:
    """What the topics tell from one plan to another one, by plans, so that it comes in the order in which it came.

    Args:
        before: behind it they tell something that is wanted: they may have lost what is before it.

    Raises:
        LogPurged: something behind *before* is gone.
    """
    plan = first
    at = first.start if covers(first.start, tracker.reader.start()) else before
    while True:
        # A plan may have more than one watermark, behind each of which a scan ends.
        while not covers(at, plan.end):
            found = list(tracker.reader.scan(at, until=plan.end))
            if not found:
                break
            bound = found[-1]
            assert isinstance(bound, Bound)  # noqa: S101 a scan of topics ends with it
            yield _whole([each for each in found if isinstance(each, SchemaMet | Statement)], bound, plan)
            at = bound.position
        if plan.number >= last.number:
            return
        plan = tracker.stored(plan.number + 1)


def _whole(items: list[SchemaMet | Statement], bound: Bound, plan: Plan) -> Told:
    """With what *plan* knows to have come before: a scan that begins earlier than the connector's own does not."""
    known = [part for part in plan.ranges if isinstance(part, PartitionRange)]
    parts = []
    for part in bound.partitions:
        repeats = [part.repeated, *(each.repeated for each in known if each.file == part.file)]
        parts.append(replace(part, repeated=_joined([each for found in repeats for each in found])))
    return items, replace(bound, partitions=tuple(parts))


def _joined(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    found = list[tuple[int, int]]()
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return tuple(found)


def held_back(told: tuple[Told, ...], delivered: Mapping[str, int]) -> tuple[PartitionRange, ...]:
    """What was not delivered; messages that are no rows were counted."""
    parts = (part for _, bound in told for part in bound.partitions)
    begun = (replace(part, start=max(part.start, delivered.get(part.file, 0)), passed_over=()) for part in parts)
    return tuple(part for part in begun if part.start < part.end)
