"""Rows by compiled code and rows one by one are the same, whatever messages are."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.readers.kafka import rows
from connectors.readers.kafka.located import batches
from connectors.readers.kafka.rows import ChunkMaker
from historian.changelog.chunks import Chunk
from historian.errors import HistorianError
from historian.names import TableName
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.schema.snapshots import Column, ColumnType, Snapshot
from logs.taken_messages import taken
from logs.topic_streams import Message, streams


def plan_of(table: Snapshot, renamed_at: int) -> tuple[PartitionRange, list[PlannedTable]]:
    """Of `t`, and of `u` that has the name `t` from an offset on."""
    other = replace(table, table_id=2, name=TableName("shop", "u"))
    passages = [Passage(table_id=1, version=3, offset=0), Passage(table_id=2, version=4, offset=0)]
    passages.append(Passage(table_id=2, version=5, offset=renamed_at))
    part = PartitionRange(topic="t", partition=0, start=0, end=99, bytes_read=1, passages=tuple(passages))
    snapshots = {3: table, 4: other, 5: replace(table, table_id=2)}
    versions = {
        number: PlannedVersion(version=number, place=None, edits=(), snapshot=snapshot, segment=0)
        for number, snapshot in snapshots.items()
    }
    return part, [
        PlannedTable(table_id=1, versions=(versions[3],)),
        PlannedTable(table_id=2, versions=(versions[4], versions[5])),
    ]


def chunks(
    name: str, messages: list[Message], table: Snapshot, cuts: list[int] | None, *, renamed_at: int, stops: bool
) -> list[Chunk] | str:
    """What comes of messages: one by one, or of batches that end at *cuts*."""
    part, tables = plan_of(table, renamed_at)
    maker = ChunkMaker(part, tables, sequence=0, as_text=False, stops=stops)
    try:
        return taken(maker, name, messages, cuts)
    except HistorianError as error:
        return type(error).__name__  # of several tables that fail, which one does first may differ


def compared(found: list[Chunk] | str) -> Any:
    """What is the same by both paths: chunks with their numbers and rows, dead letters, errors."""
    if isinstance(found, str):
        return found
    return [(replace(chunk, rows=None), chunk.rows.to_pylist(), chunk.rows.schema) for chunk in found]  # type: ignore[arg-type]


FORMS = ("debezium_json", "debezium_json_schemaless", "canal_json")


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many messages are not understood, the others are located; chunks are short."""
    monkeypatch.setattr(batches, "_MOST_SLOW", 0)
    monkeypatch.setattr(batches, "FEWEST_LOCATED", 0)
    monkeypatch.setattr(rows, "_CHUNK_ROWS", 4)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), stops=st.booleans())
def test_messages_are_the_same_rows_by_both_paths(form: str, data: st.DataObject, stops: bool) -> None:
    table, messages = data.draw(streams(form))
    renamed_at = data.draw(st.integers(1, len(messages)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=2)))

    one_by_one = chunks(form, messages, table, None, renamed_at=renamed_at, stops=stops)
    located = chunks(form, messages, table, cuts, renamed_at=renamed_at, stops=stops)

    assert compared(one_by_one) == compared(located)


def inserted(table: str, number: int) -> Message:
    """A row of Canal's."""
    change = {"data": [{"long": str(number)}], "database": "shop", "table": table, "type": "INSERT", "es": 1000}
    return None, json.dumps({**change, "isDdl": False, "mysqlType": {"long": "bigint"}, "pkNames": ["long"]}).encode()


TABLE = Snapshot(
    table_id=1,
    name=TableName("shop", "t"),
    columns=(Column(id=1, name="long", type=ColumnType(name="bigint")),),
    primary_key=(1,),
    charset="utf8mb4",
    collation="c",
)


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_tables_that_take_turns_and_of_one_that_is_renamed_are_the_same_chunks(seed: int) -> None:
    numbers = random.Random(seed)
    messages = [inserted(numbers.choice("tu"), number) for number in range(90)]
    cuts = sorted(numbers.sample(range(90), numbers.randrange(4)))

    one_by_one = chunks("canal_json", messages, TABLE, None, renamed_at=40, stops=True)
    located = chunks("canal_json", messages, TABLE, cuts, renamed_at=40, stops=True)

    assert len(one_by_one) > 15
    assert compared(one_by_one) == compared(located)


def test_a_plan_that_calls_a_table_by_its_database_is_refused_by_both_paths() -> None:
    source = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "t", "ts_ms": 1000}
    change = {"before": None, "after": {"long": 1}, "source": source, "op": "c"}
    messages: list[Message] = [(None, json.dumps(change).encode())] * 3

    for cuts in (None, [], [1]):
        found = chunks("debezium_json_schemaless", messages, TABLE, cuts, renamed_at=50, stops=False)
        assert found == "SourceError", cuts
