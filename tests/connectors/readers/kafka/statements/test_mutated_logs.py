"""Logs of rows and statements, of which some messages are damaged: rows as they are, dead letters, or an error of our own."""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.located import batches as located_batches
from connectors.readers.kafka.messages.partitions import Partition
from connectors.readers.kafka.reader import KafkaReader
from historian.changelog.operations import physical_name
from historian.errors import HistorianError
from historian.plans.plans import PartitionRange, Plan
from historian.store import Store
from logs.source_logs import STATED, SourceLog, Topics, compact, reader_of, tracker_of
from logs.topic_streams import Message

FORMS = ("debezium_json", "debezium_json_schema", "debezium_avro")
MESSAGES = int(os.environ.get("MESSAGES", "100000"))
SEED = int(os.environ.get("SEED", "6"))
COUNT = 80
"""Of a log's messages."""
STRANGE: dict[str, tuple[Any, ...]] = {
    "file": ("", "binlog", "binlog.", "binlog.999999999999999999", "binlog.9999999999999999999", "é.000001", "binlog.\u0661"),
    "pos": (0, -1, 1 << 32, 1 << 40, (1 << 63) - 1, -(1 << 63)),
    "server_id": (0, -1, 4, 1 << 40, (1 << 63) - 1),
    "gtid": ("", "u:1", "u", "u:0", "u:99999999999999999999", "\u0000:7"),
    "ts_ms": (0, -1, 10**10, 10**15, (1 << 63) - 1, -(1 << 63)),
    "db": ("", "other", "sh\u0000op"),
    "row": (-1, 1 << 20, (1 << 31) - 1),
}  # fmt: skip
"""Values of their types: the writer of Avro takes no others."""


OF_JSON: tuple[Any, ...] = (None, True, 10**30, -(10**30), 1.5, 1e300, "x", "7", [], {}, [{}], "9" * 400)
"""Values of any type."""


def with_strange_source(message: Message, numbers: random.Random, of_all: tuple[Any, ...]) -> Message:
    """*message* with one or two parts of its source replaced, some by values of *of_all*."""
    key, value = message
    found = json.loads(value or b"")
    source = found.get("payload", found)["source"]
    for name in numbers.sample(sorted(STRANGE), numbers.randrange(1, 3)):
        source[name] = numbers.choice(of_all if of_all and numbers.random() < 0.5 else STRANGE[name])
    return key, compact(found)


def with_other_bytes(message: Message, numbers: random.Random) -> Message:
    """*message* with bytes of its value changed, taken away and added."""
    key, changed = message[0], bytearray(message[1] or b"")
    start = numbers.randrange(len(changed) + 1)
    changed[start : start + numbers.randrange(4)] = numbers.randbytes(numbers.randrange(4))
    return key, bytes(changed)


def rows_of(reader: KafkaReader, plan: Plan) -> Iterator[tuple[Partition, int, set[Any]] | None]:
    """Of each row of a plan the place of its message and its values; None for messages that cannot be read."""
    versions = {(each.table_id, one.version): one.snapshot for each in plan.tables for one in each.versions}
    for planned in plan.ranges:
        assert isinstance(planned, PartitionRange)
        for chunk in reader.read(planned, plan.tables):
            snapshot = versions.get((chunk.table_id, chunk.version))
            if snapshot is None:
                yield None
                continue
            names = [physical_name(each.id) for each in snapshot.columns]
            # Times may be such as Python does not have.
            for row in chunk.rows.select(["sequence", *names]).to_pylist():
                yield (planned.topic, planned.partition), row["sequence"], {row[name] for name in names}


def damaged_log(name: str, numbers: random.Random) -> tuple[KafkaReader, Topics, dict[tuple[Partition, int], int]]:
    """A reader of topics with a log of which some messages are damaged, and by places of all that are not their numbers."""
    log, damaged = SourceLog(numbers, COUNT), set[int]()
    for at, (partition, message) in enumerate(log.events[1:], 1):
        if numbers.random() < 0.03:
            damaged.add(at)
            log.events[at] = (
                partition,
                with_strange_source(message, numbers, () if name == "debezium_avro" else OF_JSON),
            )
    keeps_unread = numbers.random() < 0.8
    settings = KafkaSettings(brokers="", topics=("t*",), schema_topic=STATED, format=name, keeps_unread=keeps_unread)
    reader, topics = reader_of(settings, log)
    for at, (partition, message) in enumerate(log.events[1:], 1):
        if numbers.random() < 0.03:
            damaged.add(at)
            log.events[at] = partition, with_other_bytes(message, numbers)
    topics.send_others(log.events)
    offsets, places = Counter[Partition](), dict[tuple[Partition, int], int]()
    for at, (partition, _) in enumerate(log.events):
        if at not in damaged:
            places[partition, offsets[partition]] = at
        offsets[partition] += 1
    return reader, topics, places


def read(name: str, seed: int) -> Counter[str]:
    """Reads such a log to its end, or an error of our own; counts what became of its messages.

    A row that is not damaged has its own values, and comes once.
    """
    numbers, told, seen = random.Random(seed), Counter[str](), set[int]()
    reader, topics, places = damaged_log(name, numbers)
    with contextlib.closing(Store.open("sqlite://")) as store:
        tracker, number = tracker_of(reader, store), 0
        try:
            while not topics.is_sent():
                topics.send(numbers.randrange(1, 60))
                while (plan := tracker.plan_after(number)) is not None:
                    number = plan.number
                    for found in rows_of(reader, plan):
                        told["dead letters"] += found is None
                        at = None if found is None else places.get(found[:2])
                        if found is not None and at is not None:
                            assert {at + 10} <= found[2] <= {at + 10, None}, (seed, at, found)
                            assert at not in seen, (seed, at)
                            seen.add(at)
        except HistorianError:
            told["errors"] += 1
        told["stopped"] += len(store.stopped())
    told["rows"] += len(seen)
    return told


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("fewest_located", [0, 1_000_000], ids=["located", "one by one"])
def test_damaged_messages_among_rows_and_statements_are_rows_dead_letters_or_refused(
    name: str, fewest_located: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(located_batches, "FEWEST_LOCATED", fewest_located)

    told = sum((read(name, seed) for seed in range(12)), Counter[str]())

    assert told["rows"] > 100
    assert told["dead letters"] > 0
    assert 0 < told["errors"] < 12


@pytest.mark.soak
@pytest.mark.parametrize("name", FORMS)
def test_many_damaged_messages_among_rows_and_statements(name: str) -> None:
    print(name, sum((read(name, 1000 * SEED + each) for each in range(MESSAGES // COUNT)), Counter[str]()))
