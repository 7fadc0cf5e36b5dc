"""The lake's own tables: their columns, and plans and schema changes as rows of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from historian import codec
from historian.changelog.operations import Op
from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan
from historian.positions import GtidSet, TopicOffsets
from historian.schema.edits import Edit
from sinks.contract.chunks import ChunkHead
from sinks.contract.locations import TableLocations
from sinks.contract.parts import ChunkRows
from sinks.delta.log.columns import plain_schema

__all__ = [
    "CHANGES",
    "PLANS",
    "STATE_SCHEMAS",
    "TABLES",
    "Links",
    "RecordedPlan",
    "change_row",
    "operation_counts",
    "plan_row",
    "recorded_plan",
    "row_counts",
]

Links = Mapping[str, int]
"""Target directory to the transaction version that it has when it holds the plan."""

_EDITS = tuple[Edit, ...]

PLANS, CHANGES, TABLES = "historian_plans", "historian_schema_changes", "historian_tables"

STATE_SCHEMAS = {
    PLANS: plain_schema(
        plan="long",
        connector="string",
        start_gtids="string",
        start_file="string",
        start_offset="long",
        end_gtids="string",
        end_file="string",
        end_offset="long",
        server="string",
        gtids="string",
        version="long",
        schema_versions="string",
        rows="string",
        operations="string",
        links="string",
        system_time="timestamp",
        revision="string",
        plan_json="string",
    ),
    CHANGES: plain_schema(
        number="long",
        gtid="string",
        file="string",
        offset="long",
        ordinal="integer",
        server="string",
        position="string",
        statement="string",
        database="string",
        edits="string",
        event_time="timestamp",
        entry_json="string",
    ),
    TABLES: plain_schema(
        table_id="integer",
        name="string",
        changelog="string",
        mirror="string",
        history="string",
        since="long",
        dropped="long",
        stopped="string",
        stopped_in="long",
        quarantined="string",
        former_mirror="string",
        former_history="string",
        former_why="string",
        came_database="string",
        came_table="string",
        shape="string",
        key="string",
        columns="string",
        evolved="string",
        shards="string",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlan:
    """What the lake has recorded of a plan beside the plan: when it was made, its rows by table id, what it leaves in targets."""

    number: int
    made_us: int
    rows: Mapping[int, int]
    links: Links


def plan_row(plan: Plan, rows: str, links: Links, operations: str) -> dict[str, Any]:
    """A row of ``historian_plans``; *rows* and *operations* as :func:`row_counts` and :func:`operation_counts` give them."""
    versions = {
        str(snapshot.name): [v.version for v in table.versions]
        for table in plan.tables
        for snapshot in [v.snapshot for v in table.versions if v.snapshot is not None][-1:]
    }
    return {
        "plan": plan.number,
        "connector": plan.connector,
        "start_gtids": plan.start.gtids,
        "start_file": plan.start.file,
        "start_offset": plan.start.offset,
        "end_gtids": plan.end.gtids,
        "end_file": plan.end.file,
        "end_offset": plan.end.offset,
        "server": plan.end.server,
        "gtids": _gtids_between(plan),
        "version": plan.version,
        "schema_versions": _canonical(versions),
        "rows": rows,
        "operations": operations,
        "links": _canonical(links),
        "system_time": _time(plan.system_time_us),
        "revision": plan.revision,
        "plan_json": codec.dump(Plan, plan),
    }


def recorded_plan(row: Mapping[str, Any]) -> RecordedPlan:
    """What a row of ``historian_plans`` tells, of which no more is needed than its number, time, rows and links."""
    return RecordedPlan(
        number=row["plan"],
        made_us=(row["system_time"] - _EPOCH) // timedelta(microseconds=1),
        rows={int(table_id): count for table_id, count in json.loads(row["rows"]).items()},
        links=json.loads(row["links"]),
    )


_EPOCH = datetime.fromtimestamp(0, timezone.utc)


def _gtids_between(plan: Plan) -> str:
    """The transactions of *plan*: a GTID set; for MariaDB by domain the first sequence number and the last.

    Of topics: by partition the first offset and the last.
    """
    start, end = plan.start.read, plan.end.read
    if isinstance(start, TopicOffsets) and isinstance(end, TopicOffsets):
        read = (
            (topic, number, start.offset(topic, number) or 0, upto) for topic, number, upto in end.subtract(start).next
        )
        return ",".join(f"{topic}:{number}:{first}..{upto - 1}" for topic, number, first, upto in read)
    if isinstance(start, GtidSet) and isinstance(end, GtidSet):
        return str(end.subtract(start))
    before = {domain: sequence for domain, _, sequence in getattr(start, "last", ())}
    news = [(d, server, before.get(d, 0), s) for d, server, s in getattr(end, "last", ()) if s > before.get(d, 0)]
    return ",".join(f"{d}-{server}-{first + 1}..{last}" for d, server, first, last in news)


def change_row(entry: TimelineEntry) -> dict[str, Any]:
    """A row of ``historian_schema_changes``."""
    place = entry.place
    return {
        "number": entry.number,
        "gtid": "" if place is None else place.gtid,
        "file": entry.position.file if place is None else place.file,
        "offset": entry.position.offset if place is None else place.offset,
        "ordinal": 0 if place is None else place.ordinal,
        "server": entry.server,
        "position": str(entry.position),
        "statement": entry.statement,
        "database": entry.database,
        "edits": codec.dump(_EDITS, entry.edits),
        "event_time": _time(entry.event_time_us),
        "entry_json": codec.dump(TimelineEntry, entry),
    }


def row_counts(rows: ChunkRows) -> str:
    """Changelog rows by table id, as the log gave them; a replay must give the same."""
    counts: dict[str, int] = {}
    for (table_id, _), chunks in rows.items():
        counts[str(table_id)] = counts.get(str(table_id), 0) + sum(chunks.values())
    return _canonical(counts)


def operation_counts(heads: Iterable[ChunkHead], locations: TableLocations) -> str:
    """Changelog rows by table and operation (+A, -R, -C, +C), as the log gave them; operations without rows are left out."""
    counts: dict[str, dict[str, int]] = {}
    for head in heads:
        if head.table_id in locations and not head.stopped:
            mine = counts.setdefault(locations[head.table_id].name, {})
            for op, count in zip(Op, json.loads(head.operations), strict=False):
                if count:
                    mine[op.sign] = mine.get(op.sign, 0) + count
    return _canonical(counts)


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _time(us: int) -> datetime:
    return datetime.fromtimestamp(us // 1_000_000, tz=timezone.utc).replace(microsecond=us % 1_000_000)
