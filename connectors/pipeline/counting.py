"""What a plan's chunks say of themselves, counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from connectors.monitoring.observer import WrittenPlan
from historian.changelog.operations import Op, column_id

if TYPE_CHECKING:
    from historian.plans.plans import Plan
    from sinks.contract.chunks import ChunkHead

__all__ = ["written_plan"]


def written_plan(plan: Plan, heads: Sequence[ChunkHead]) -> WrittenPlan:
    """How many rows and values of what kind a plan's chunks have; those of tables that stop in it are left out."""
    rows: Counter[tuple[int, Op]] = Counter()
    going = [head for head in heads if not head.stopped]
    compared = {table.table_id for table in plan.tables if table.repairs}  # their rows are not those of the changelog
    for head in [head for head in going if head.table_id not in compared]:
        for code, count in enumerate(json.loads(head.operations)):
            if count:
                rows[head.table_id, Op(code)] += count
    return WrittenPlan(
        plan=plan,
        stopped={},
        rows=dict(rows),
        nulled=_nulled(heads),
        dead_letters=sum(len(json.loads(head.dead_letters)) for head in going if head.dead_letters),
    )


def _nulled(heads: Iterable[ChunkHead]) -> dict[tuple[int, int], int]:
    """How many values became NULL that cannot be represented, by table id and column id."""
    nulled_counts: dict[tuple[int, int], int] = {}
    for head in heads:
        for name, count in json.loads(head.nulled or "{}").items():
            key = (head.table_id, column_id(name))
            nulled_counts[key] = nulled_counts.get(key, 0) + count
    return nulled_counts
