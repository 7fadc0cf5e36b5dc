"""``historian_dead_letters``: values that no column could hold and messages that cannot be read, where a choice sends them there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from historian.changelog.chunks import NO_TABLE
from historian.plans.plans import Plan, has_unread
from historian.values.policies import REASONS, may_be_dead_letter
from sinks.contract.chunks import ChunkHead, Chunks
from sinks.delta.lake.appending import append_once
from sinks.delta.log.columns import plain_schema
from sinks.delta.log.kernel import Kernel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sinks.delta.lake.state import LakeState

__all__ = ["DEAD_LETTERS", "DEAD_LETTERS_SCHEMA", "DeadLetterColumn", "dead_letter_columns", "record_dead_letters"]

DEAD_LETTERS = "historian_dead_letters"
DEAD_LETTERS_SCHEMA = plain_schema(
    plan="long",
    table_id="integer",
    table="string",
    schema_version="long",
    column_id="integer",
    column="string",
    type="string",
    position="string",
    ordinal="integer",
    op="integer",
    event_time="timestamp",
    reason="string",
    text="string",
    raw="binary",
)
_UNREAD = "a message that cannot be read"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterColumn:
    """A column of a lake's table with values among the dead letters: how many, and by which choice."""

    table_id: int
    table: str
    column_id: int
    column: str
    choice: str
    values: int

    def __str__(self) -> str:
        return f"{self.table}.{self.column}: {self.values} dead letters ({REASONS[self.choice]})"


def dead_letter_columns(spark: SparkSession, state: LakeState) -> tuple[DeadLetterColumn, ...]:
    """The columns with values that the present targets lack, tables in order. Reads only."""
    path = state.path(DEAD_LETTERS)
    if state.kernel.view(path) is None:
        return ()
    letters = spark.read.format("delta").load(path)
    since = {location.table_id: location for location in state.locations.values() if not location.dropped}
    choices = {reason: choice for choice, reason in REASONS.items()}
    found: Counter[tuple[int, int, str]] = Counter()
    names: dict[int, str] = {}
    rows = letters.groupBy("table_id", "column_id", "reason", "plan").agg({"column": "max", "*": "count"}).collect()
    for row in sorted(rows, key=lambda row: row.plan):
        # Targets that were made anew have what came before under the plan that made them.
        if row.table_id in since and row.plan >= since[row.table_id].since:
            found[row.table_id, row.column_id, choices[row.reason]] += row["count(1)"]
            names[row.column_id] = row["max(column)"]
    return tuple(
        DeadLetterColumn(
            table_id=table_id,
            table=since[table_id].name,
            column_id=column_id,
            column=names[column_id],
            choice=choice,
            values=values,
        )
        for (table_id, column_id, choice), values in sorted(found.items())
    )


def record_dead_letters(kernel: Kernel, path: str, plan: Plan, chunks: Chunks) -> None:
    """Appends the letters of *plan*, once, to the table at *path*, which is made with the first one.

    Costs nothing where the plan has no column whose values may become letters, and no message that cannot be read.

    Args:
        chunks: of the plan.
    """
    versions = [version.snapshot for table in plan.tables for version in table.versions]
    columns = (column for found in versions if found is not None for column in found.columns)
    if (
        not has_unread(plan)
        and not any(head.table_id == NO_TABLE for head in chunks.heads)
        and not any(may_be_dead_letter(column.type) for column in columns)
    ):
        return
    rows = [row for head in chunks.heads if head.dead_letters for row in _rows(plan, head)]
    if not rows:
        return
    append_once(kernel, path, DEAD_LETTERS_SCHEMA, plan, pa.Table.from_pylist(rows, DEAD_LETTERS_SCHEMA.arrow()))


def _rows(plan: Plan, head: ChunkHead) -> Iterator[dict[str, Any]]:
    snapshot = next(
        (
            version.snapshot
            for table in plan.tables
            for version in table.versions
            if table.table_id == head.table_id and version.version == head.version
        ),
        None,
    )
    for letter in json.loads(head.dead_letters):
        column = None if snapshot is None else snapshot.column_by_id(letter["column"])
        yield {
            "plan": plan.number,
            "table_id": head.table_id,
            "table": "" if snapshot is None else str(snapshot.name),
            "schema_version": head.version,
            "column_id": letter["column"],
            "column": "" if column is None else column.name,
            "type": "" if column is None else str(column.type),
            "position": letter["position"],
            "ordinal": letter["ordinal"],
            "op": letter["op"],
            "event_time": _EPOCH + timedelta(microseconds=letter["event_time_us"]),
            "reason": _UNREAD if head.table_id == NO_TABLE else REASONS[letter["reason"]],
            "text": letter["text"],
            "raw": bytes.fromhex(letter["raw"]),
        }
