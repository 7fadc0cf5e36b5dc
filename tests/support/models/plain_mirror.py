"""What plans and chunks make of tables, in plain Python: the slow and simple twin of a sink's mirror."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from historian.changelog.chunks import Chunk
from historian.changelog.operations import Op, physical_name
from historian.names import TableName
from historian.plans.key_ranges import KeyRange
from historian.plans.plans import Plan, PlannedTable, PlannedVersion
from historian.plans.row_values import rows_with
from historian.schema.edits import TruncateTable
from historian.schema.snapshots import Column, Snapshot
from historian.values.arrow_types import arrow_type
from historian.values.texts import initial_value
from sinks.delta.repairs.ranges import RangeOfKeys

__all__ = ["PlainMirror"]

Values = tuple[Any, ...]


class _Table:
    """Rows under one snapshot, each as values in its columns' order, with how often it is there."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.rows: Counter[Values] = Counter()

    def move_to(self, snapshot: Snapshot) -> None:
        """Reads all rows under another version of the schema, by column id."""
        places = {column.id: at for at, column in enumerate(self.snapshot.columns)}
        moved: Counter[Values] = Counter()
        for row, count in self.rows.items():
            # Rows that differed in a dropped column only are the same row now.
            values = (_carried(row[places[c.id]], c) if c.id in places else initial_value(c) for c in snapshot.columns)
            moved[tuple(values)] += count
        self.rows = moved
        self.snapshot = snapshot

    def clear(self, planned: PlannedTable) -> None:
        """Takes away the rows that a repair compares: all of them, those in its range of keys, or those that it tells by values."""
        if planned.copy is not None and planned.copy.only:
            rows = list(self.rows)
            arrays = [
                pa.array([row[at] for row in rows], arrow_type(column.type))
                for at, column in enumerate(self.snapshot.columns)
            ]
            table = pa.table(arrays, names=[physical_name(column.id) for column in self.snapshot.columns])
            types = {column.id: column.type for column in self.snapshot.columns}
            for number in rows_with(table, planned.copy.only, types).nonzero()[0]:
                del self.rows[rows[number]]
            return
        if planned.copied == KeyRange():
            self.rows.clear()
            return
        columns = [column for key in planned.copy.key for column in self.snapshot.columns if column.id == key]  # type: ignore[union-attr]
        rows = list(self.rows)
        places = [self.snapshot.columns.index(column) for column in columns]
        keys = [pa.array([row[at] for row in rows], arrow_type(c.type)) for at, c in zip(places, columns, strict=True)]
        names = [physical_name(column.id) for column in columns]
        table = pa.table([*keys, pa.array(range(len(rows)))], names=[*names, "number"])
        within = RangeOfKeys(table=self.snapshot, columns=tuple(columns), keys=planned.copied)
        for number in within.of(table).column("number").to_pylist():
            del self.rows[rows[number]]

    def take(self, chunk: Chunk) -> None:
        """Adds and takes back the chunk's rows. One that is taken back but not there fails."""
        first = chunk.rows.num_columns - len(self.snapshot.columns)
        columns = [chunk.rows.column(first + at).to_pylist() for at in range(len(self.snapshot.columns))]
        for op, row in zip(chunk.rows.column("op").to_pylist(), zip(*columns, strict=True), strict=True):
            if op in (Op.APPEND, Op.CORRECT_TO):
                self.rows[row] += 1
            elif self.rows[row] > 1:
                self.rows[row] -= 1
            elif self.rows.pop(row, 0) != 1:
                raise AssertionError(f"{self.snapshot.name}: {Op(op).sign} of a row that is not there: {row}")


def _carried(value: Any, column: Column) -> Any:
    if column.type.name == "datetime" and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 a DATETIME has no zone
    return value


class PlainMirror:
    """All tables of a log. Apply plans in order."""

    def __init__(self) -> None:
        self._tables: dict[int, _Table] = {}

    def apply(self, plan: Plan, chunks: Iterable[Chunk]) -> None:
        """Moves on by one plan; *chunks* are all of its ranges'."""
        by_version: dict[tuple[int, int], list[Chunk]] = {}
        for chunk in chunks:
            by_version.setdefault((chunk.table_id, chunk.version), []).append(chunk)
        for table in plan.tables:
            if table.quarantine is not None:
                raise AssertionError(f"table {table.table_id} stopped: {table.quarantine}")
            self._apply_table(table, by_version)
        if by_version:
            raise AssertionError(f"chunks of versions that the plan does not have: {sorted(by_version)}")

    def _apply_table(self, table: PlannedTable, by_version: dict[tuple[int, int], list[Chunk]]) -> None:
        for version in table.versions:
            self._move(table.table_id, version)
            if table.repairs and version.snapshot is not None:
                self._tables[table.table_id].clear(table)
            for chunk in by_version.pop((table.table_id, version.version), ()):
                self._tables[table.table_id].take(chunk)

    def _move(self, table_id: int, version: PlannedVersion) -> None:
        if version.snapshot is None:
            self._tables.pop(table_id, None)
            return
        held = self._tables.setdefault(table_id, _Table(version.snapshot))
        if any(isinstance(edit, TruncateTable) and edit.table_id == table_id for edit in version.edits):
            held.rows.clear()
        if held.snapshot != version.snapshot:
            held.move_to(version.snapshot)

    def forget(self, table_id: int) -> None:
        """Drops a table that stopped: its rows are not followed any more."""
        self._tables.pop(table_id, None)

    def snapshots(self) -> dict[TableName, Snapshot]:
        """The schemas that tables have now."""
        return {table.snapshot.name: table.snapshot for table in self._tables.values()}

    def rows(self, name: TableName) -> pa.Table:
        """A table's rows, with their column names and the types of :mod:`historian.values.arrow_types`."""
        table = next(table for table in self._tables.values() if table.snapshot.name == name)
        rows = list(table.rows.elements())
        arrays = {
            column.name: pa.array([row[at] for row in rows], arrow_type(column.type))
            for at, column in enumerate(table.snapshot.columns)
        }
        return pa.table(arrays)
