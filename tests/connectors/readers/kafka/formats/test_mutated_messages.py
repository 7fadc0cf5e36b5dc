"""Messages with parts changed at random: rows, or an error of our own, and never another one."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from connectors.readers.kafka.avro.writers import Writers
from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.decoders import FORMATS, decoder_for, decoder_of
from connectors.readers.kafka.messages.events import Decoder, Event
from connectors.readers.kafka.rows import ChunkMaker
from historian.errors import HistorianError
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.schema.snapshots import Column, ColumnType, Snapshot
from logs.mutated_messages import mutated, recorded
from logs.topic_messages import body, recorded_writers

GOLDENS = Path(__file__).parent / "goldens"
BYTES = (
    "debezium_avro",
    "debezium_json_schema",
    "avro_upsert",
    "ticdc_avro",
    "ticdc_open_protocol",
    "ticdc_simple_avro",
)
"""Formats whose messages are bytes."""

TEXTS = [name for name in FORMATS if name not in BYTES]
CASES = int(os.environ.get("MESSAGES", "100000"))
SEED = int(os.environ.get("SEED", "6"))
_HERE = "a part is replaced here"


def cases(name: str) -> list[Any]:
    found = []
    for case in recorded(GOLDENS):
        if case["format"] == name and "registry" not in case:
            found += [parsed(message) for message in case["messages"]]
    return found


def parsed(message: Any) -> Any:
    """A message with the texts of its key and value as JSON, where they are."""
    if isinstance(message, dict) and message.keys() <= {"key", "value", "partition"}:
        return {part: parsed(each) for part, each in message.items()}
    try:
        return json.loads(message) if isinstance(message, str) and message.startswith("{") else message
    except json.JSONDecodeError:
        return message


@lru_cache
def message_schema(name: str) -> str:
    """The schema of messages that neither have it nor name it."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(GOLDENS.glob(f"{name}.json"))]
    return next(
        (json.dumps(case["message_schema"]) for text in texts if "message_schema" in (case := json.loads(text))), ""
    )


@lru_cache
def schemas(name: str) -> list[bytes]:
    """The messages of a format that tell schemas of others."""
    if name == "ticdc_simple_avro":
        first = json.loads((GOLDENS / f"{name}.json").read_text(encoding="utf-8"))["messages"][0]
        return [bytes.fromhex(first["value"]["hex"])]
    return [
        json.dumps(each).encode() for each in cases(name) if isinstance(each, dict) and each.get("type") == "BOOTSTRAP"
    ]


def told(name: str, writers: Writers | None) -> Decoder:
    """A decoder that was told what schemas there are."""
    settings = KafkaSettings(
        brokers="",
        topics=("t",),
        format=name,
        message_schema=message_schema(name),
        tombstones="ignore" if name == "debezium_unwrapped" else "delete",  # its rows name several tables
    )
    decoder = decoder_for(settings, "t", writers)
    for message in schemas(name):
        decoder.events(None, message, "t:0:0")
    return decoder


def taken(name: str, key: bytes | None, value: bytes | None, writers: Writers | None = None) -> None:
    """Reads a message twice, for its schema and for its rows under the types that it tells."""
    for event in told(name, writers).events(key, value, "t:0:0"):
        if not isinstance(event, Event):
            continue
        columns = tuple(
            Column(
                id=number,
                name=field.column.name,
                type=field.column.type if field.column.type.name != "mixed" else ColumnType(name="json"),
            )
            for number, field in enumerate(event.schema.fields, 1)
        )
        snapshot = Snapshot(table_id=1, name=event.table, columns=columns, charset="utf8mb4", collation="utf8mb4_bin")
        part = PartitionRange(
            topic="t", partition=0, start=0, end=1, bytes_read=1, passages=(Passage(table_id=1, version=1, offset=0),)
        )
        version = PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot, segment=0)
        maker = ChunkMaker(
            part, [PlannedTable(table_id=1, versions=(version,))], sequence=0, as_text=False, stops=False
        )
        reader = decoder_of(name, tells=False, writers=writers, topic="t", message_schema=message_schema(name))
        for read in reader.events(key, value, "t:0:0"):
            if isinstance(read, Event):
                list(maker.take(0, as_if_whole(read)))
        list(maker.rest())


def as_if_whole(event: Event) -> Event:
    """*event* as a state of its table would complete it."""
    op = "c" if event.op == "u" and event.before is None else event.op
    return replace(event, op=op, keyed=False, unknown=())


def tried(name: str, count: int, seed: int) -> tuple[int, int]:
    """How many messages were read, and how many refused."""
    numbers, messages, read = random.Random(seed), cases(name), 0
    for _ in range(count):
        message = numbers.choice(messages)
        whole = (
            message
            if isinstance(message, dict) and message.keys() <= {"key", "value", "partition"}
            else {"value": message}
        )
        value = whole.get("value")
        # Debezium's converter writes no blanks, by which its schema is found.
        text = value if isinstance(value, str) else json.dumps(mutated(value, numbers), separators=(",", ":"))
        body = text.encode("utf-8", "surrogatepass")
        if numbers.randrange(10) == 0:
            at = numbers.randrange(len(body) + 1)
            body = body[:at] + bytes([numbers.randrange(256)]) + body[at + numbers.randrange(3) :]
        key = json.dumps(mutated(whole["key"], numbers), separators=(",", ":")).encode() if whole.get("key") else None
        try:
            taken(name, key, body)
            read += 1
        except HistorianError:
            pass
    return read, count - read


@pytest.mark.parametrize("name", TEXTS)
def test_mutated_messages_are_rows_or_refused(name: str) -> None:
    read, refused = tried(name, 400, 5)

    assert read > 20
    assert refused > 20


@pytest.mark.parametrize("name", TEXTS)
def test_values_that_are_nested_deep_are_rows_or_refused(name: str) -> None:
    """In the place of each part of a message, or as the whole of it."""
    refused = 0
    for deep in ("[" * 200_000, "[" * 5_000 + "]" * 5_000, '{"a":' * 900 + "1" + "}" * 900):
        for message in cases(name)[:3]:
            whole = message.get("value", message) if isinstance(message, dict) else message
            texts = [
                deep,
                *(json.dumps(each, separators=(",", ":")).replace(f'"{_HERE}"', deep) for each in parts(whole)),
            ]
            for text in texts[:40]:
                try:
                    taken(name, None, text.encode())
                except HistorianError:
                    refused += 1

    assert refused > 9


def parts(message: Any) -> Iterator[Any]:
    """*message* with each of its parts in turn, down to three levels, replaced by :data:`_HERE`."""
    for path in paths(message, 3):
        changed = held = copy.deepcopy(message)
        for key in path[:-1]:
            held = held[key]
        held[path[-1]] = _HERE
        yield changed


def paths(message: Any, levels: int) -> Iterator[tuple[Any, ...]]:
    keys = message if isinstance(message, dict) else range(len(message)) if isinstance(message, list) else ()
    for key in keys if levels else ():
        yield (key,)
        yield from ((key, *rest) for rest in paths(message[key], levels - 1))


@pytest.mark.soak
@pytest.mark.parametrize("name", TEXTS)
def test_many_mutated_messages_are_rows_or_refused(name: str) -> None:
    print(name, *tried(name, CASES, SEED))


def tried_bytes(name: str, count: int, seed: int) -> tuple[int, int]:
    """As :func:`tried`, of a binary format: with bytes changed, taken away and added."""
    numbers, read = random.Random(seed), 0
    goldens = [case for case in recorded(GOLDENS) if case["format"] == name]
    writers = [recorded_writers(golden) or recorded_writers({"registry": {}}) for golden in goldens]
    for _ in range(count):
        at = numbers.randrange(len(goldens))
        message = numbers.choice(goldens[at]["messages"])
        whole = message if isinstance(message, dict) and "value" in message else {"value": message}
        registry = goldens[at].get("registry", {})
        key, value = (bytearray(body(whole.get(part), registry) or b"") for part in ("key", "value"))
        for changed in numbers.choices((key, value), (1, 5), k=numbers.randrange(3)):
            start = numbers.randrange(len(changed) + 1)
            changed[start : start + numbers.randrange(3)] = numbers.randbytes(numbers.randrange(3))
        try:
            taken(name, bytes(key) or None, bytes(value), writers[at])
            read += 1
        except HistorianError:
            pass
    return read, count - read


@pytest.mark.parametrize("name", BYTES)
def test_mutated_bytes_are_rows_or_refused(name: str) -> None:
    read, refused = tried_bytes(name, 400, 5)

    assert read > 20
    assert refused > 20


@pytest.mark.soak
@pytest.mark.parametrize("name", BYTES)
def test_many_mutated_bytes_are_rows_or_refused(name: str) -> None:
    print(name, *tried_bytes(name, CASES, SEED))
