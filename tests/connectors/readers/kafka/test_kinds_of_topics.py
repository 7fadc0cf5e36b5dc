"""Topics that brokers keep in other ways than most: compacted ones, and such with very long messages."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from connectors.readers.base import Bound
from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.reader import KafkaReader
from connectors.tracking.first_schema import origin_of
from databases.kafka import Kafka
from historian.names import TableName
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.positions import KAFKA, parse_position
from historian.schema.snapshots import Column, ColumnType, Snapshot
from workload.waiting import wait_until

TABLE = Snapshot(
    table_id=1,
    name=TableName("shop", "t"),
    columns=(
        Column(id=1, name="id", type=ColumnType(name="int")),
        Column(id=2, name="v", type=ColumnType(name="longtext", charset="utf8mb4")),
    ),
    charset="utf8mb4",
    collation="utf8mb4_bin",
)
DAY_MS = 86_400_000
BEGUN_MS = 1_700_000_000_000


def row(number: int, text: str) -> bytes:
    message = {
        "database": "shop",
        "table": "t",
        "type": "INSERT",
        "isDdl": False,
        "es": BEGUN_MS,
        "pkNames": ["id"],
        "mysqlType": {"id": "int", "v": "longtext"},
        "data": [{"id": str(number), "v": text}],
        "old": None,
    }
    return json.dumps(message, ensure_ascii=False).encode()


def reader_of(kafka: Kafka, topic: str) -> KafkaReader:
    return KafkaReader(KafkaSettings(brokers=kafka.brokers, topics=(topic,), format="canal_json"))


def rows(reader: KafkaReader, bound: object) -> list[tuple[int, str]]:
    assert isinstance(bound, Bound)
    version = PlannedVersion(version=1, place=None, edits=(), snapshot=TABLE, segment=0)
    found: list[tuple[int, str]] = []
    for part in bound.partitions:
        assert isinstance(part, PartitionRange)
        passed = replace(part, passages=(Passage(table_id=1, version=1, offset=0),))
        for chunk in reader.read(passed, [PlannedTable(table_id=1, versions=(version,))]):
            found += zip(chunk.rows["h1"].to_pylist(), chunk.rows["h2"].to_pylist(), strict=True)
    return found


def test_offsets_that_compaction_has_emptied_are_passed_over(kafka: Kafka) -> None:
    topic = "kinds.compacted"
    kafka.make_topic(topic, cleanup_policy="compact", min_cleanable_dirty_ratio="0.001")
    producer = Producer({"bootstrap.servers": kafka.brokers})
    sent = [
        ("a", row(1, "gone")),
        ("b", row(2, "kept")),
        ("a", row(1, "gone")),
        ("c", row(3, "gone")),
        ("c", row(3, "newer")),
    ]
    # A message that is dated so much later begins another file, and files but for the last one are compacted.
    for number, (key, value) in enumerate([*sent, ("a", row(1, "new")), ("d", row(4, "last"))]):
        producer.produce(topic, value, key, partition=0, timestamp=BEGUN_MS + number * 30 * DAY_MS)
        assert not producer.flush(30)
    client = Client(KafkaSettings(brokers=kafka.brokers, topics=(topic,)))

    def offsets() -> list[int]:
        return [at for _, batch in client.batches({(topic, 0): (0, 7)}) for at in batch.offsets.tolist()]

    with contextlib.closing(client):
        wait_until(lambda: offsets() == [1, 4, 5, 6], 60)
    with contextlib.closing(reader_of(kafka, topic)) as reader:
        *_, bound = reader.scan(reader.start())
        within = [
            reader.scan(parse_position(f"{topic}:0:{start}", KAFKA), until=parse_position(f"{topic}:0:{end}", KAFKA))
            for start, end in ((2, 4), (0, 3), (3, 6))
        ]
        bounds = [list(found)[-1] for found in within]
        assert [(2, "kept"), (3, "newer"), (1, "new"), (4, "last")] == rows(reader, bound)
        assert [[], [(2, "kept")], [(3, "newer"), (1, "new")]] == [rows(reader, each) for each in bounds]

    assert [f"{topic}:0:{end}" for end in (7, 4, 3, 6)] == [str(each.position) for each in (bound, *bounds)]  # type: ignore[union-attr]


def test_a_message_of_ten_megabytes_is_a_row_as_others_are(kafka: Kafka) -> None:
    topic, text = "kinds.long", "x\u00e9" * 3_500_000
    kafka.make_topic(topic, max_message_bytes="12000000")
    producer = Producer({"bootstrap.servers": kafka.brokers, "message.max.bytes": 12_000_000})
    for number, value in enumerate(("before", text, "behind")):
        producer.produce(topic, row(number, value), partition=0)
    assert not producer.flush(60)

    with contextlib.closing(reader_of(kafka, topic)) as reader:
        *_, bound = reader.scan(reader.start())
        found = rows(reader, bound)

    assert [(0, "before"), (2, "behind")] == [found[0], found[2]]
    assert found[1] == (1, text)


@pytest.mark.parametrize("start,offsets", [("latest", (2, 1)), ("earliest", (0, 0)), ("{}:0:1", (1, 0))])
def test_a_start_is_an_offset_of_each_partition(kafka: Kafka, start: str, offsets: tuple[int, int]) -> None:
    topic = f"kinds.start.{sum(offsets)}"
    kafka.make_topic(topic, 2)
    for partition in (0, 0, 1):
        kafka.produce(topic, [(None, row(1, "x"))], partition)

    with contextlib.closing(reader_of(kafka, topic)) as reader:
        found = str(origin_of(reader, start.format(topic)))

    assert f"{topic}:0:{offsets[0]},{topic}:1:{offsets[1]}" == found
