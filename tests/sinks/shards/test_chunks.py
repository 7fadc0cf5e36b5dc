"""Chunks of shards as those of their one table."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from historian.changelog.chunks import Chunk
from historian.changelog.missing_columns import ABSENT, lacking, marked
from historian.changelog.operations import physical_name
from historian.plans.shards import SHARD_IDS
from lakes.sink_lab import INT, Lab, text
from sinks.contract.chunks import head_of
from sinks.contract.local_chunks import LocalChunks
from sinks.delta import DeltaSettings
from sinks.delta.schema.decisions import evolved_locations
from sinks.shards.chunks import grouped_chunks
from sinks.shards.plans import Grouped, grouped_plan

SETTINGS = DeltaSettings(path="lake", tables=(("shop_*.t", (("into", ("shop.t", (("shard", "{database}"),))),)),))


def grouped(lab: Lab, chunk: Any = lambda one: one) -> tuple[Grouped, list[Chunk], LocalChunks]:
    """The lab's last plan, and its chunks, each before changed by *chunk*."""
    plan = lab.cut()
    found = grouped_plan({}, plan, SETTINGS.for_table)
    assert evolved_locations({}, plan, SETTINGS)[1].shards == found.notes[1]
    chunks = LocalChunks()
    chunks.fill([lambda: [chunk(one) for one in lab.chunks[plan.number]]])
    seen = grouped_chunks(chunks, found.routes, found.shards, found.hidden)
    assert isinstance(seen, LocalChunks)
    return found, sorted(seen.map(list), key=lambda one: one.sequence), seen


def lab_of_two() -> Lab:
    lab = Lab()
    lab.create("shop_a.t", {"id": INT, "n": INT})
    lab.create("shop_b.t", {"note": text(), "N": INT, "ID": INT}, key=("ID",))
    lab.insert("shop_a.t", {"id": 1, "n": 10})
    lab.insert("shop_b.t", {"ID": 1, "N": 20, "note": "x"})
    return lab


def told(one: Chunk) -> Chunk:
    """With marks of values that were none: of its last column but one, and of its first."""
    names = [name for name in one.rows.schema.names if name.startswith("h")]
    marks = {
        "nulled": json.dumps({names[-2]: 1}),
        "dead_letters": json.dumps([[0, names[0], "ff", "?", "invalid_text"]]),
    }
    return replace(one, rows=one.rows.replace_schema_metadata(marks))


def test_rows_have_the_one_tables_columns_and_heads_tell_of_them() -> None:
    found, (first, second), seen = grouped(lab_of_two(), told)
    table = found.plan.tables[0]
    snapshot = table.versions[-1].snapshot
    assert snapshot is not None
    assert [c.name for c in snapshot.columns] == ["shard", "note", "id", "n"]
    assert snapshot.primary_key == (SHARD_IDS + 1, 1)
    names = [physical_name(c.id) for c in snapshot.columns]
    assert [first.rows.to_pylist()[0][name] for name in (names[0], "h1", "h2")] == ["shop_a", 1, 10]
    assert [second.rows.to_pylist()[0][name] for name in names] == ["shop_b", "x", 1, 20]
    assert {one.table_id for one in (first, second)} == {table.table_id}
    assert {one.version for one in (first, second)} <= {version.version for version in table.versions}
    for head, one in zip(seen.heads, (first, second), strict=True):
        made = head_of(one)
        assert replace(head, size_bytes=0) == replace(made, size_bytes=0)
    assert json.loads(seen.heads[1].nulled) == {"h2": 1}
    assert [one["column"] for one in json.loads(seen.heads[1].dead_letters)] == [3]


def test_absent_columns_stay_with_their_columns() -> None:
    lab = lab_of_two()
    lab.update_part("shop_b.t", {"ID": 1}, N=21)
    found, chunks, seen = grouped(lab)
    snapshot = found.plan.tables[0].versions[-1].snapshot
    assert snapshot is not None
    assert [sorted(head.missing) for head in seen.heads] == [sorted(lacking(one.rows)) for one in chunks]
    partial = next(one for one in chunks if ABSENT in one.rows.schema.names)
    bits = marked(partial.rows, ABSENT, len(snapshot.columns))
    absent = [[c.name for c, bit in zip(snapshot.columns, row, strict=True) if bit] for row in bits]
    assert absent[-2:] == [["note", "n"], ["note"]]


def test_a_chunk_that_stops_its_shard_stops_the_one_table() -> None:
    _, chunks, seen = grouped(
        lab_of_two(), lambda one: replace(one, stopped="why", rows=one.rows.slice(0, 0)) if one.table_id == 2 else one
    )
    assert len(chunks) == 1
    assert [(head.table_id, head.stopped) for head in seen.heads] == [(1, ""), (1, "shard shop_b.t: why")]
    assert pa.types.is_string(chunks[0].rows.schema.field(physical_name(SHARD_IDS + 1)).type)


@pytest.mark.parametrize("on", ["shop_a.t", "shop_b.t"])
def test_of_a_table_that_stopped_nothing_is_seen(on: str) -> None:
    lab = lab_of_two()
    lab.add(on, "shard", INT)
    found, chunks, _ = grouped(lab)
    assert chunks == []
    assert "called like a shard column" in found.stops[1]
