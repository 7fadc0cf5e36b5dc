"""Recorded messages with parts changed at random are the same rows, dead letters and stops by compiled code as one by one."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from connectors.readers.kafka import rows
from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.located import batches
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.rows import ChunkMaker
from historian.changelog.chunks import dead_letters
from historian.errors import HistorianError
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.schema.snapshots import Column, ColumnType, Snapshot
from logs.mutated_messages import mutated, recorded
from logs.taken_messages import taken
from logs.topic_messages import body
from logs.topic_streams import Message

GOLDENS = Path(__file__).parents[1] / "formats" / "goldens"
LOCATED = (
    "debezium_json",
    "debezium_json_schemaless",
    "ticdc_debezium",
    "maxwell",
    "canal_json",
    "ticdc_canal_json",
)
"""Formats of JSON that compiled code reads."""
MESSAGES = int(os.environ.get("MESSAGES", "100000"))
SEED = int(os.environ.get("SEED", "6"))
COUNT = 30
"""Of a batch's messages."""


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many messages are not understood, the others are located; chunks are short."""
    monkeypatch.setattr(batches, "_MOST_SLOW", 0)
    monkeypatch.setattr(batches, "FEWEST_LOCATED", 0)
    monkeypatch.setattr(rows, "_CHUNK_ROWS", 4)


def table_of(name: str, messages: list[Message]) -> Snapshot | None:
    """The table of the first row among *messages*, as that tells it."""
    decoder = decoder_of(name)
    for key, value in messages:
        try:
            events = [each for each in decoder.events(key, value, "t:0:0") if isinstance(each, Event)]
        except HistorianError:
            continue
        for event in events:
            types = [field.column.type for field in event.schema.fields]
            if not all(kind.name for kind in types):
                continue  # of which no version is made
            columns = tuple(
                Column(
                    id=number, name=field.column.name, type=kind if kind.name != "mixed" else ColumnType(name="json")
                )
                for number, (field, kind) in enumerate(zip(event.schema.fields, types, strict=True), 1)
            )
            keys = tuple(column.id for column in columns if column.name in (event.schema.key or ()))
            return Snapshot(
                table_id=1, name=event.table, columns=columns, primary_key=keys, charset="utf8mb4", collation="c"
            )
    return None


def chunks(name: str, messages: list[Message], table: Snapshot, cuts: list[int] | None, *, stops: bool) -> Any:
    """What comes of messages: one by one, or of batches that end at *cuts*. Errors by their kind; what is told of a table that stops, others have to say."""
    part = PartitionRange(topic="t", partition=0, start=0, end=len(messages), bytes_read=1)
    part = replace(part, passages=(Passage(table_id=1, version=3, offset=0),))
    version = PlannedVersion(version=3, place=None, edits=(), snapshot=table, segment=0)
    maker = ChunkMaker(part, [PlannedTable(table_id=1, versions=(version,))], sequence=0, as_text=False, stops=stops)
    try:
        found = taken(maker, name, messages, cuts)
    except HistorianError as error:
        return type(error).__name__
    if any(each.stopped for each in found):
        return "stopped"
    # No number is equal to itself that is none.
    return [(replace(each, rows=None), values(each.rows), each.rows.schema, dead_letters(each)) for each in found]  # type: ignore[arg-type]


def values(found: pa.RecordBatch) -> str:
    """Of all columns; times as numbers, since there may be some that Python does not have."""
    is_time = [pa.types.is_temporal(column.type) for column in found.columns]
    arrays = [
        column.view(pa.int32() if pa.types.is_date32(column.type) else pa.int64()) if plain else column
        for column, plain in zip(found.columns, is_time, strict=True)
    ]
    return repr(pa.RecordBatch.from_arrays(arrays, names=found.schema.names).to_pylist())


def tried(name: str, count: int, seed: int) -> Counter[str]:
    """What became of so many messages, by both paths."""
    numbers, told = random.Random(seed), Counter[str]()
    goldens = [case for case in recorded(GOLDENS) if case["format"] == name and "registry" not in case]
    while told["messages"] < count:
        whole = [
            each
            if isinstance(each, dict) and each.keys() <= {"key", "value", "partition", "topic"}
            else {"value": each}
            for each in numbers.choice(goldens)["messages"]
        ]
        plain = [(body(each.get("key"), {}), body(each.get("value"), {})) for each in whole]
        table = table_of(name, plain)
        if table is None:
            told["messages"] += 1
            continue
        messages = [changed(numbers.choice(plain), numbers) for _ in range(numbers.randrange(1, COUNT))]
        cuts, stops = sorted(numbers.sample(range(len(messages)), min(2, len(messages)))), numbers.random() < 0.5
        one_by_one = chunks(name, messages, table, None, stops=stops)
        located = chunks(name, messages, table, cuts, stops=stops)
        assert one_by_one == located, (name, seed, table, messages)
        told["messages"] += len(messages)
        told["errors" if isinstance(located, str) else "batches"] += 1
        told["rows"] += 0 if isinstance(located, str) else sum(each[1].count("sequence") for each in located)
    return told


def changed(message: Message, numbers: random.Random) -> Message:
    """*message* as it is, or with parts or bytes changed."""
    key, value = message
    kind = numbers.randrange(6)
    if value is None or kind < 3:
        return message
    try:
        text = json.dumps(mutated(json.loads(value), numbers), separators=(",", ":"), ensure_ascii=kind == 3)
    except ValueError:
        text = value.decode("utf-8", "replace")
    found = bytearray(text.encode("utf-8", "surrogatepass"))
    if kind == 5:
        start = numbers.randrange(len(found) + 1)
        found[start : start + numbers.randrange(3)] = numbers.randbytes(numbers.randrange(3))
    return key, bytes(found)


@pytest.mark.parametrize("name", LOCATED)
def test_mutated_messages_are_the_same_by_both_paths(name: str) -> None:
    told = tried(name, 2_000, 5)

    assert told["rows"] > 100
    assert told["batches"] > 20


@pytest.mark.soak
@pytest.mark.parametrize("name", LOCATED)
def test_many_mutated_messages_are_the_same_by_both_paths(name: str) -> None:
    print(name, tried(name, MESSAGES, SEED))
