"""What plans and chunks make of histories, in plain Python: the slow and simple twin of a sink's history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from historian.changelog.chunks import Chunk
from historian.changelog.operations import Op, physical_name
from historian.plans.plans import Plan, PlannedVersion
from historian.schema.edits import DropTable, TruncateTable
from historian.schema.snapshots import Snapshot
from historian.values.texts import initial_value

__all__ = ["PlainHistory", "PlainInterval"]


@dataclass
class PlainInterval:
    """A row with where it begins and ends; ``values`` by column id, without NULLs."""

    from_offset: int
    to_offset: int | None
    valid_from: datetime
    valid_to: datetime | None
    values: dict[int, Any]


@dataclass
class _Place:
    """One history: of a table, and of those of its name that come when it is dropped."""

    next_offset: int = 0
    rows: list[PlainInterval] = field(default_factory=list)
    open: dict[tuple[Any, ...], PlainInterval] = field(default_factory=dict)

    def end(self, key: tuple[Any, ...], time: datetime) -> None:
        interval = self.open.pop(key, None)
        if interval is not None:
            interval.to_offset, interval.valid_to = self.next_offset, time
        self.next_offset += 1


class PlainHistory:
    """All histories of a log. Apply plans in order."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._of: dict[int, _Place] = {}
        self._last: dict[int, Snapshot] = {}

    def apply(self, plan: Plan, chunks: Iterable[Chunk]) -> None:
        """Moves on by one plan."""
        rows = list(chunks)
        for table in sorted(plan.tables, key=lambda table: table.versions[0].version):
            for version in table.versions:
                self._move(table.table_id, version)
                for chunk in rows:
                    if (chunk.table_id, chunk.version) == (table.table_id, version.version):
                        self._take(chunk, self._last[table.table_id])

    def rows(self, name: str) -> list[PlainInterval]:
        """The history that a table of that name began, by where its rows begin."""
        return self._places[name].rows

    def _move(self, table_id: int, version: PlannedVersion) -> None:
        snapshot, before = version.snapshot, self._last.get(table_id)
        if before is not None and any(isinstance(edit, TruncateTable | DropTable) for edit in version.edits):
            place = self._of[table_id]
            time = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=version.event_time_us)
            for key in sorted(place.open):
                place.end(key, time)
        if snapshot is None:
            return
        if table_id not in self._of:
            self._of[table_id] = self._places.setdefault(str(snapshot.name), _Place())
        for column in snapshot.columns:
            if before is not None and before.column_by_id(column.id) is None and column.initial is not None:
                for interval in self._of[table_id].open.values():
                    interval.values[column.id] = initial_value(column)
        if before is not None and before.primary_key != snapshot.primary_key:
            place = self._of[table_id]
            place.open = {tuple(map(row.values.get, snapshot.primary_key)): row for row in place.open.values()}
        self._last[table_id] = snapshot

    def _take(self, chunk: Chunk, snapshot: Snapshot) -> None:
        place = self._of[chunk.table_id]
        for row in chunk.rows.to_pylist():
            key = tuple(row[physical_name(column_id)] for column_id in snapshot.primary_key)
            if row["op"] in (Op.RETRACT, Op.CORRECT_FROM):
                place.end(key, row["event_time"])
                continue
            values = {c.id: row[physical_name(c.id)] for c in snapshot.columns if row[physical_name(c.id)] is not None}
            interval = PlainInterval(place.next_offset, None, row["event_time"], None, values)
            place.rows.append(interval)
            place.open[key] = interval
            place.next_offset += 1
