"""``historian_repairs``: where targets were compared with the rows of the source, why, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from historian.changelog.operations import Op
from historian.plans.plans import Plan
from sinks.delta.lake.appending import append_once
from sinks.delta.log.columns import plain_schema
from sinks.delta.log.kernel import Kernel

__all__ = ["REPAIRS", "REPAIRS_SCHEMA", "RepairRecord", "record_repairs"]

REPAIRS = "historian_repairs"
REPAIRS_SCHEMA = plain_schema(
    plan="long",
    table_id="integer",
    table="string",
    reason="string",
    position="string",
    system_time="timestamp",
    rows_read="long",
    rows_changed="long",
    appended="long",
    retracted="long",
    corrected="long",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRecord:
    """What a repair found.

    Attributes:
        table: its name.
        rows_read: of the source, in the shape of the lake.
        operations: changelog rows that it gave, by operation.
    """

    table_id: int
    table: str
    reason: str
    rows_read: int
    operations: Mapping[Op, int]


def record_repairs(kernel: Kernel, path: str, plan: Plan, records: Sequence[RepairRecord]) -> None:
    """Appends *records* of *plan*, once, to the table at *path*, which is made with the first one. Retryable."""
    if records:
        rows = pa.Table.from_pylist([_row(plan, record) for record in records], REPAIRS_SCHEMA.arrow())
        append_once(kernel, path, REPAIRS_SCHEMA, plan, rows)


def _row(plan: Plan, record: RepairRecord) -> dict[str, Any]:
    appended, retracted, corrected = (record.operations[op] for op in (Op.APPEND, Op.RETRACT, Op.CORRECT_TO))
    return {
        "plan": plan.number,
        "table_id": record.table_id,
        "table": record.table,
        "reason": record.reason,
        "position": str(plan.end),
        "system_time": _EPOCH + timedelta(microseconds=plan.system_time_us),
        "rows_read": record.rows_read,
        "rows_changed": appended + retracted + corrected,
        "appended": appended,
        "retracted": retracted,
        "corrected": corrected,
    }
