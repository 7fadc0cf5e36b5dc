"""Changelog rows become intervals, whatever the order of changes and wherever a plan ends."""

from __future__ import annotations

from itertools import accumulate
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from historian.changelog.chunks import Chunk
from historian.changelog.operations import physical_name
from lakes.sink_lab import INT, Lab, text
from models.plain_history import PlainHistory, PlainInterval
from sinks.contract.parts import Part, parts_of
from sinks.contract.tables import assign
from sinks.delta import DeltaSettings
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.targets.history import history_after
from sinks.rows.intervals import IntervalRows, close

SETTINGS = DeltaSettings(path="lake", history="{database}_{table}_history")


class _ArrowHistory:
    """A history of one table that is kept in memory."""

    def __init__(self) -> None:
        self.schema: DeltaSchema | None = None
        self.rows = pa.table({})
        self.next_offset = 0

    def apply(self, part: Part, chunks: list[Chunk]) -> None:
        self.schema = history_after(part, self.schema, "plain")
        assert self.schema is not None
        assert part.last is not None
        schema = self.schema.arrow()
        arrays = [
            self.rows.column(f.name) if f.name in self.rows.column_names else pa.nulls(self.rows.num_rows, f.type)
            for f in schema
        ]
        self.rows = pa.Table.from_arrays(arrays, schema=schema)
        key, added = part.last.primary_key, () if part.base is None else part.added
        ends = schema.empty_table()
        opened = schema.empty_table()
        if part.rows:
            intervals = IntervalRows(schema, key, part.added)
            offsets = accumulate([chunk.rows.num_rows for chunk in chunks], initial=self.next_offset)
            for chunk, offset in reversed(list(zip(chunks, offsets, strict=False))):
                intervals.add(
                    chunk,
                    written=part.written[chunk.version],
                    carried=part.carried[chunk.version],
                    first_offset=offset,
                )
            opened, ends = intervals.finish()
        still, closed = close(self.rows, ends, key, added)
        self.rows = pa.concat_tables([still, closed, opened])
        self.next_offset += part.rows

    def intervals(self) -> list[PlainInterval]:
        own = ("from_offset", "to_offset", "valid_from", "valid_to")
        ids = {physical_name(f.column_id): f.column_id for f in (self.schema or DeltaSchema(())).fields if f.column_id}
        found = [
            PlainInterval(
                **{name: row[name] for name in own},
                values={ids[name]: value for name, value in row.items() if name in ids and value is not None},
            )
            for row in self.rows.to_pylist()
        ]
        return sorted(found, key=lambda interval: interval.from_offset)


def _act(lab: Lab, random: Random, number: int) -> None:
    """One random change of rows or columns."""
    snapshot = next(iter(lab.catalog.tables.values()))
    rows, names = lab.rows("shop.t"), [c.name for c in snapshot.columns if c.name != "id"]
    what = random.choice(["insert"] * 4 + ["update"] * 6 + ["delete"] * 3 + ["key", "add", "drop", "rename"])
    fresh = {"id": random.randrange(12), **dict.fromkeys(names, number)}
    taken = {row["id"] for row in rows}
    if what == "insert" and fresh["id"] not in taken:
        lab.insert("shop.t", fresh)
    elif what == "add":
        lab.add("shop.t", f"c{number}", INT, initial=random.choice([None, str(-number)]))
    elif what == "drop" and len(names) > 1:
        lab.drop_column("shop.t", random.choice(names))
    elif what == "rename" and names:
        lab.rename_column("shop.t", random.choice(names), f"r{number}")
    elif rows and what in ("update", "delete", "key"):
        row = random.choice(rows)
        if what == "delete":
            lab.delete("shop.t", row)
        elif what == "update":
            lab.update("shop.t", row, **{random.choice(names): -number})
        elif fresh["id"] not in taken:
            lab.update("shop.t", row, id=fresh["id"])


@pytest.mark.parametrize("seed", range(20))
def test_random_changes_are_the_intervals_that_a_plain_reading_finds(seed: int) -> None:
    random, lab = Random(seed), Lab()
    lab.create("shop.t", {"id": INT, "a": INT, "b": INT})
    plain, arrow, locations = PlainHistory(), _ArrowHistory(), {}
    for number in range(1, 150):
        _act(lab, random, number)
        if random.random() < 0.1:
            lab.flush()
        if random.random() < 0.15 or number == 149:
            plan = lab.cut()
            locations = assign(locations, plan, SETTINGS)
            chunks = lab.chunks[plan.number]
            counts = {(1, 0): {chunk.sequence: chunk.rows.num_rows for chunk in chunks}}
            for part in parts_of(plan, locations, counts):
                arrow.apply(part, chunks)
            plain.apply(plan, chunks)
            assert arrow.intervals() == plain.rows("shop.t"), f"plan {plan.number}"


def test_rows_that_the_log_does_not_bring_leave_no_row_open_twice() -> None:
    """A row that was there before the log, and one that went without a trace."""
    lab = Lab()
    lab.create("shop.t", {"id": INT, "a": text()})
    history = _ArrowHistory()

    def apply() -> None:
        plan = lab.cut()
        chunks = lab.chunks[plan.number]
        (part,) = parts_of(plan, assign({}, plan, SETTINGS), {(1, 0): {c.sequence: c.rows.num_rows for c in chunks}})
        history.apply(part, chunks)

    lab.update("shop.t", {"id": 1, "a": "unseen"}, a="seen")
    lab.delete("shop.t", {"id": 2, "a": "unseen"})
    lab.insert("shop.t", {"id": 3, "a": "lost"})
    lab.insert("shop.t", {"id": 3, "a": "anew"})
    apply()
    lab.insert("shop.t", {"id": 3, "a": "once more"})
    apply()

    found: list[Any] = [(i.from_offset, i.to_offset, i.values[2]) for i in history.intervals()]
    assert found == [(1, None, "seen"), (3, 4, "lost"), (4, 5, "anew"), (5, None, "once more")]
