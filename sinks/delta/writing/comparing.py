"""What the targets of a lake hold, compared with the rows of the source: a repair that writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from historian.changelog.chunks import Chunk
from historian.errors import SinkError
from historian.plans.key_ranges import NOT_BY_RANGES
from historian.plans.plans import Plan
from sinks.contract.chunks import Chunks
from sinks.contract.parts import count_rows, parts_of
from sinks.delta.lake.repair_records import RepairRecord
from sinks.delta.repairs.new_keys import with_new_keys
from sinks.delta.repairs.repairing import Repairing
from sinks.delta.settings import DeltaSettings
from sinks.delta.writing.sink import DeltaSink
from sinks.shaping.plans import Shaper
from sinks.shards.chunks import grouped_chunks
from sinks.shards.plans import grouped_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.schema.snapshots import Snapshot

__all__ = ["ComparedTable", "NotByRanges", "NotComparable", "compared", "newest_held"]


class NotComparable(SinkError):
    """The targets of a table cannot be compared with its source."""


class NotByRanges(NotComparable):
    """Those of a table cannot be compared by ranges of its key: as a whole they may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """How the targets of a table differ from its source.

    Attributes:
        record: how many rows were read, and what differs by operation.
        chunks: the changelog rows that would lead from the targets to the source, under ``snapshot``.
    """

    record: RepairRecord
    chunks: Sequence[Chunk]
    snapshot: Snapshot


def newest_held(spark: SparkSession, settings: DeltaSettings) -> Plan | None:
    """The newest plan that every target of the lake holds, whoever writes it meanwhile; None where there is none."""
    state = DeltaSink(spark, settings).reading()
    if state is None or state.last is None:
        return None
    return state.plan(state.last.number if state.holds_last() else state.last.previous)


@contextmanager
def compared(
    spark: SparkSession, settings: DeltaSettings, plan: Plan, chunks: Chunks, *, pinned: bool = False
) -> Iterator[ComparedTable]:
    """How the lake differs from the rows of a plan of one table, to be used inside the ``with``.

    Args:
        plan: behind the last one of the lake; it repairs the table, and is not written.
        chunks: its rows.
        pinned: the plan before, which all targets hold, need not be the last one: targets are read as they were with it. So the
            lake may be written meanwhile.

    Raises:
        SinkError: there is no lake, or it does not hold the plan before.
        NotComparable: the table cannot be compared, or has stopped in the lake.
        LeftBehind: a target lacks changes that its changelog has; nothing is written here.
    """
    state = DeltaSink(spark, settings).reading()
    is_there = state is not None and state.last is not None and state.last.number == plan.previous
    if pinned and state is not None:
        is_there = state.go_back(plan.previous)
    if state is None or not is_there:
        raise SinkError(
            "the lake does not hold what the source is compared with",
            where=settings.path or settings.catalog,
            expected=f"plan {plan.previous}",
            found="no lake" if state is None or state.last is None else f"plan {state.last.number}",
            next_step="`historian run --once` brings it there",
        )
    (table,) = plan.tables
    held = state.locations.get(table.table_id)
    if held is None or held.stopped or held.quarantined:
        reason = "" if held is None else held.stopped or held.quarantined
        raise NotComparable("a table has no targets that go on", where=f"table id {table.table_id}", found=reason)
    locations = state.assigned(plan)
    grouped = grouped_plan(state.locations, plan, settings.for_table)
    seen = grouped_chunks(chunks, grouped.routes, grouped.shards, grouped.hidden)
    shaped = Shaper(spark, settings.rules_of).shaped(grouped.plan, locations, seen, first=False)
    try:
        shown = replace(shaped, plan=with_new_keys(shaped.plan, locations))
        rows, stops, partial = count_rows(shown.chunks)
        for reason in {**shown.stops, **grouped.stops, **stops}.values():
            raise NotComparable("a table cannot be compared", where=held.name, found=reason)
        parts = parts_of(shown.plan, locations, rows, partial)
        with closing(Repairing(spark, state, settings, shown.plan, _refuse, brings_back=False)) as repairing:
            found = repairing.repaired(parts, shown.chunks)
            last = found.parts[-1].last if found.parts else None
            if last is None or not found.records:
                raise NotComparable("a table has no targets to compare", where=held.name)
            differing = sorted(found.chunks.map(list), key=lambda chunk: chunk.sequence)
            yield ComparedTable(record=found.records[0], chunks=differing, snapshot=last)
    finally:
        shaped.release()


def _refuse(table_id: int, reason: str, plan: int) -> None:  # noqa: ARG001 as the state's own
    kind = NotByRanges if reason.startswith(NOT_BY_RANGES) else NotComparable
    raise kind("a table cannot be compared", where=f"table id {table_id}", found=reason)
