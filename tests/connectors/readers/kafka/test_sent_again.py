"""Rows that a producer sends again about a change of their schema."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping

from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.messages.batch import Batch
from connectors.readers.kafka.messages.partitions import Partition
from connectors.readers.kafka.reader import KafkaReader
from connectors.tracking.tracker import Tracker
from historian.store import Store
from logs.topic_streams import Message, batch_of

BEFORE, AFTER = ("id", "a"), ("id", "a", "b")


def row(number: int, second: int, columns: tuple[str, ...]) -> Message:
    """Debezium's message of an inserted row with its schema, the transaction of that *number*."""
    fields = [{"type": "int32", "optional": name != "id", "field": name} for name in columns]
    source = {
        "connector": "mysql",
        "db": "shop",
        "table": "t",
        "ts_ms": 1000 * second,
        "ts_us": 1_000_000 * second + 123,
    }
    source |= {"server_id": 3, "gtid": f"u:{number}", "file": "binlog.000001", "pos": 100 * number, "row": 0}
    payload = {"before": None, "after": dict.fromkeys(columns, number), "source": source, "op": "c", "ts_ms": 1}
    value = {"schema": {"type": "struct", "fields": [{"type": "struct", "fields": fields, "field": "after"}]}}
    key = {"schema": {"type": "struct", "fields": fields[:1]}, "payload": {"id": number}}
    return json.dumps(key).encode(), json.dumps({**value, "payload": payload}).encode()


class Topic:
    """One partition that grows, in the place of brokers."""

    def __init__(self) -> None:
        self.held: list[Message] = []

    def partitions(self) -> tuple[Partition, ...]:
        return (("t", 0),)

    def bounds(self, _: Partition) -> tuple[int, int]:
        return 0, len(self.held)

    def topic_ids(self) -> dict[str, str]:
        return {}

    def batches(self, ranges: Mapping[Partition, tuple[int, int]]) -> Iterator[tuple[Partition, Batch]]:
        for partition, (begin, end) in ranges.items():
            if end > begin:
                yield partition, batch_of(self.held[begin:end], begin)

    def close(self) -> None:
        pass


def test_a_partition_is_back_in_its_schema_behind_rows_from_before_that_come_again() -> None:
    topic = Topic()
    reader = KafkaReader(KafkaSettings(brokers="", topics=("t",)))
    reader._client = reader._administration = topic  # type: ignore[assignment]
    plans = [
        [row(1, 100, BEFORE), row(2, 101, BEFORE), row(3, 102, AFTER)],
        [row(4, 103, AFTER), row(2, 101, BEFORE), row(3, 102, AFTER), row(5, 104, AFTER)],
    ]
    found: list[list[tuple[int, int]]] = []
    with contextlib.closing(Store.open("sqlite://")) as store:
        connector = store.connector("c")
        tracker = Tracker(reader=reader, store=store, connector=connector, captured=lambda _: True, revision="")
        number = 0
        for messages in plans:
            topic.held += messages
            plan = tracker.plan_after(number)
            assert plan is not None
            number = plan.number
            for planned in plan.ranges:
                rows = [
                    (chunk.version, each["h1"])
                    for chunk in reader.read(planned, plan.tables)
                    for each in chunk.rows.to_pylist()
                ]
                found.append(rows)
    assert found == [[(2, 1), (2, 2), (3, 3)], [(3, 4), (3, 5)]]
