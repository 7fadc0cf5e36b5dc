"""Normalisation as one would write it row by row, a state in memory, and chunks of rows to try both with."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS, Op, physical_name
from historian.names import TableName
from historian.normalizing.keys import KeyHashes
from historian.normalizing.states import KeyedState
from historian.plans.plans import PlannedTable, PlannedVersion
from historian.positions.places import Place
from historian.schema.edits import Edit
from historian.schema.snapshots import Column, ColumnType, Snapshot
from historian.values.arrow_types import arrow_type

__all__ = [
    "MemoryState",
    "Row",
    "chunk_of",
    "plainly",
    "planned",
    "random_rows",
    "rows_of",
    "snapshot_of",
    "version_of",
]

Row = tuple[Op, dict[str, Any]]
"""What a row does, and its values by column name."""


@dataclass
class MemoryState(KeyedState):
    """A state in a dictionary."""

    held: dict[tuple[int, int], bytes] = field(default_factory=dict)
    key: str = ""
    layout: str = ""

    def find(self, keys: KeyHashes) -> pa.Array:
        found = zip(keys.high.tolist(), keys.low.tolist(), strict=True)
        return pa.array([self.held.get(each) for each in found], pa.binary())

    def put(self, keys: KeyHashes, rows: pa.Array, *, key: str, layout: str) -> None:
        pairs = list(zip(keys.high.tolist(), keys.low.tolist(), strict=True))
        assert sorted(set(pairs)) == pairs
        for pair, row in zip(pairs, rows.to_pylist(), strict=True):
            if row is None:
                self.held.pop(pair, None)
            else:
                self.held[pair] = row
        self.key = key
        self.layout = layout if self.layout in ("", layout) else "several"

    def clear(self) -> None:
        self.held = {}
        self.key = self.layout = ""

    def rows(self) -> pa.Array:
        return pa.array(list(self.held.values()), pa.binary())


def snapshot_of(columns: dict[str, tuple[int, ColumnType]], key: Sequence[str] = ("id",), **more: Any) -> Snapshot:
    """A table with those columns, each an id and a type; *more*: column to what is told of it besides."""
    return Snapshot(
        table_id=7,
        name=TableName("shop", "t"),
        columns=tuple(
            replace(Column(id=number, name=name, type=kind), **more.get(name, {}))
            for name, (number, kind) in columns.items()
        ),
        primary_key=tuple(columns[name][0] for name in key),
        charset="utf8mb4",
        collation="utf8mb4_bin",
    )


def version_of(number: int, snapshot: Snapshot | None, *edits: Edit, segment: int = 0) -> PlannedVersion:
    """A version of a plan; one with edits has a place."""
    place = Place(gtid="", file="t:0", offset=number, ordinal=0) if edits else None
    return PlannedVersion(version=number, place=place, edits=edits, snapshot=snapshot, segment=segment)


def planned(*versions: PlannedVersion) -> PlannedTable:
    """The table in a plan."""
    return PlannedTable(table_id=7, versions=versions)


def chunk_of(rows: Iterable[Row], version: PlannedVersion, sequence: int = 0) -> Chunk:
    """*rows* under a version. A column that one does not name is NULL; each has its own time and place."""
    snapshot = version.snapshot
    assert snapshot is not None
    rows = list(rows)
    numbers = np.arange(len(rows)) + 1000 * sequence
    arrays = [
        pa.array([int(op) for op, _ in rows], pa.uint8()),
        pa.array(numbers, pa.timestamp("us", tz="UTC")),
        pa.array(np.full(len(rows), -1, np.int16)),
        pa.array(numbers),
        pa.array(np.ones(len(rows), np.int32)),
        *(pa.array([row.get(c.name) for _, row in rows], arrow_type(c.type)) for c in snapshot.columns),
    ]
    names = [*(each.name for each in CHUNK_COLUMNS), *(physical_name(c.id) for c in snapshot.columns)]
    return Chunk(
        table_id=7,
        version=version.version,
        segment=version.segment,
        sequence=sequence,
        file="t:0",
        first_position="t:0:0",
        last_position="t:0:0",
        sources=(),
        rows=pa.RecordBatch.from_arrays(arrays, names=names),
    )


def rows_of(chunks: Iterable[Chunk], snapshot: Snapshot) -> list[Row]:
    """The rows of chunks that are all written under one schema."""
    names = {physical_name(column.id): column.name for column in snapshot.columns}
    return [
        (Op(row["op"]), {name: row[physical] for physical, name in names.items()})
        for chunk in chunks
        for row in chunk.rows.to_pylist()
    ]


def plainly(rows: Iterable[Row], held: dict[Any, dict[str, Any]], key: str = "id") -> list[Row]:
    """What normalisation makes of rows under one schema; *held* goes on with them."""
    found: list[Row] = []
    for op, row in rows:
        before = held.get(row[key])
        if op == Op.CORRECT_FROM or (op == Op.RETRACT and before is None):
            continue
        if op == Op.RETRACT:
            assert before is not None
            found.append((Op.RETRACT, before))
            del held[row[key]]
        elif before is None:
            found.append((Op.APPEND, row))
            held[row[key]] = row
        elif before != row:
            found += [(Op.CORRECT_FROM, before), (Op.CORRECT_TO, row)]
            held[row[key]] = row
    return found


def random_rows(numbers: random.Random, count: int, keys: int) -> list[Row]:
    """Rows of ``id``, ``n`` and ``s``: inserts, changes with and without the row before, deletes by key, moved keys."""
    rows: list[Row] = []
    for _ in range(count):

        def row() -> dict[str, Any]:
            return {
                "id": numbers.randrange(keys),
                "n": numbers.choice([None, 1, 2]),
                "s": numbers.choice([None, "", "aé"]),
            }

        kind = numbers.randrange(5)
        if kind == 0:
            rows.append((Op.APPEND, row()))
        elif kind == 1:
            rows.append((Op.CORRECT_TO, row()))
        elif kind == 2:
            rows.append((Op.RETRACT, {"id": numbers.randrange(keys), "n": None, "s": None}))
        elif kind == 3:
            after = row()
            rows += [(Op.CORRECT_FROM, {**row(), "id": after["id"]}), (Op.CORRECT_TO, after)]
        else:
            rows += [(Op.RETRACT, row()), (Op.APPEND, row())]
    return rows
