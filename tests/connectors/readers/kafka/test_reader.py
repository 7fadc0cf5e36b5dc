"""Topics of a real broker as a log: offsets, transactions, what is lost, and what is not the topic that was read."""

from __future__ import annotations

import contextlib
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer

from connectors.readers.base import Bound, CachedLog, PartitionLag, SchemaMet
from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.reader import KafkaReader
from connectors.tracking.continuity import Continuity
from connectors.tracking.first_schema import origin_of, place_of
from connectors.tracking.tracker import Tracker
from databases.kafka import Kafka
from historian.changelog.chunks import NO_TABLE, Chunk, dead_letters
from historian.errors import LogPurged, LogReplaced, PositionError, SourceError, UnsupportedEvent
from historian.names import TableName
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.positions import KAFKA, LogPosition, parse_position
from historian.schema.snapshots import Column, ColumnType, Snapshot
from historian.store import Store
from workload.waiting import wait_until

FIELDS = [{"type": "int32", "optional": False, "field": "id"}]
TABLE = Snapshot(
    table_id=1,
    name=TableName("shop", "t"),
    columns=(Column(id=1, name="id", type=ColumnType(name="int")),),
    charset="utf8mb4",
    collation="utf8mb4_bin",
)


def insert(number: int, table: str = "t", more: tuple[str, ...] = ()) -> bytes:
    fields = FIELDS + [{"type": "string", "optional": True, "field": name} for name in more]
    row = {"type": "struct", "fields": fields, "optional": True, "field": "after"}
    payload = {
        "before": None,
        "after": {"id": number},
        "source": {"db": "shop", "table": table, "ts_us": number},
        "op": "c",
    }
    value = {"schema": {"type": "struct", "fields": [row]}, "payload": payload}
    return json.dumps(value, separators=(",", ":")).encode()


def reader_settings(kafka: Kafka, *topics: str, **client: str) -> KafkaSettings:
    settings = {key.replace("_", "."): value for key, value in client.items()}
    return KafkaSettings(brokers=kafka.brokers, topics=topics, client=settings)


def reader_of(kafka: Kafka, *topics: str, **client: str) -> KafkaReader:
    return KafkaReader(reader_settings(kafka, *topics, **client))


def at(text: str) -> LogPosition:
    return parse_position(text, KAFKA)


def chunks_of(reader: KafkaReader, part: PartitionRange, log: Sequence[CachedLog] | None = None) -> list[Chunk]:
    version = PlannedVersion(version=1, place=None, edits=(), snapshot=TABLE, segment=0)
    table = PlannedTable(table_id=1, versions=(version,))
    return list(reader.read(replace(part, passages=(Passage(table_id=1, version=1, offset=0),)), [table], log=log))


def ids(reader: KafkaReader, part: PartitionRange, log: Sequence[CachedLog] | None = None) -> list[int]:
    return [number for chunk in chunks_of(reader, part, log) for number in chunk.rows["h1"].to_pylist()]


@pytest.fixture
def topic(kafka: Kafka, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"reader.{request.node.name.replace('[', '.').replace(']', '')}"[:200]
    kafka.make_topic(name, 2)
    yield name
    with contextlib.suppress(Exception):
        kafka.delete_topic(name)


def test_a_scan_tells_schemas_by_partition_in_the_sources_order_and_ends_where_the_topic_does(
    kafka: Kafka, topic: str
) -> None:
    kafka.produce(topic, [(None, insert(3)), (None, insert(5, more=("v",))), (None, None)], 0)
    kafka.produce(topic, [(None, insert(1)), (None, insert(2)), (None, insert(4, "u"))], 1)

    with contextlib.closing(reader_of(kafka, topic)) as reader:
        items = list(reader.scan(reader.start()))
        *met, bound = items
        found = [(str(m.place), str(m.table), [c.name for c in m.columns]) for m in met if isinstance(m, SchemaMet)]
        assert isinstance(bound, Bound)
        assert [] == list(reader.scan(bound.position))
        rows = {part.file: ids(reader, part) for part in bound.partitions}
        assert reader.end() == bound.position == reader.locate(bound.position)
        again = pickle.loads(pickle.dumps(reader))
        assert [3, 5] == ids(again, bound.partitions[0])
        again.close()

    assert [
        (f"{topic}:1:0", "shop.t", ["id"]),
        (f"{topic}:0:0", "shop.t", ["id"]),
        (f"{topic}:1:2", "shop.u", ["id"]),
        (f"{topic}:0:1", "shop.t", ["id", "v"]),
    ] == found
    assert {f"{topic}:0": [3, 5], f"{topic}:1": [1, 2]} == rows
    assert (f"{topic}:0:3,{topic}:1:3", 5) == (str(bound.position), bound.event_time_us)


def test_rows_of_a_scan_come_without_another_look_at_the_topic(kafka: Kafka, topic: str) -> None:
    kafka.produce(topic, [(None, insert(number)) for number in range(5)], 0)
    with contextlib.closing(reader_of(kafka, topic)) as reader:
        *_, bound = reader.scan(reader.start())
        assert isinstance(bound, Bound)
        (part,) = bound.partitions
        assert reader.cached(part) is None
        reader.keeps_scans = True
        list(reader.scan(reader.start()))
        kept = reader.cached(part)
        read = ids(reader, part)
    kafka.delete_topic(topic)
    with contextlib.closing(reader_of(kafka, topic)) as another:
        assert [0, 1, 2, 3, 4] == read == ids(another, part, kept)


def test_messages_of_a_partition_stand_in_memory_of_their_own(kafka: Kafka, topic: str) -> None:
    kafka.produce(topic, [(b"k", insert(number)) for number in range(50)], 0)
    kafka.produce(topic, [(b"k", insert(7))], 1)
    client = Client(reader_settings(kafka, topic))
    with contextlib.closing(client):
        batches = list(client.batches({(topic, 0): (0, 50), (topic, 1): (0, 1)}))
    bodies: dict[int, list[np.ndarray]] = {0: [], 1: []}
    for (_, number), batch in batches:
        bodies[number] += [batch.values.body, batch.keys.body]
    assert sum(len(batch) for _, batch in batches) == 51
    assert not any(np.shares_memory(one, other) for one in bodies[0] for other in bodies[1])


def test_each_partition_says_how_far_and_since_when_it_goes_on(kafka: Kafka, topic: str) -> None:
    kafka.produce(topic, [(None, insert(number)) for number in (1, 2, 3)], 0)
    kafka.produce(topic, [(None, insert(4))], 1)

    with contextlib.closing(reader_of(kafka, topic)) as reader:
        read, behind = reader.partition_lags(at(f"{topic}:0:1,{topic}:1:1")), reader.partition_lags(reader.start())
        (message,) = Client(reader_settings(kafka, topic)).first_messages({(topic, 0): (1, 2)})
        before = reader.waiting_bytes(reader.start())
        *_, bound = reader.scan(reader.start())
        assert isinstance(bound, Bound)
        after = reader.waiting_bytes(at(f"{topic}:0:1,{topic}:1:1"))

    assert (
        PartitionLag(partition=f"{topic}:0", messages=2, since_us=message.timestamp()[1] * 1000),
        PartitionLag(partition=f"{topic}:1", messages=0),
    ) == read
    assert [3, 1] == [each.messages for each in behind]
    assert (0, 2 * len(insert(1))) == (before, after)


def test_a_start_by_time_is_the_first_message_dated_then_or_later(kafka: Kafka, topic: str) -> None:
    kafka.produce(topic, [(None, insert(number)) for number in (1, 2, 3)], 0)
    ((_, dates),) = Client(reader_settings(kafka, topic)).batches({(topic, 0): (0, 3)})
    times_us = (dates.times_ms * 1000).tolist()
    with contextlib.closing(reader_of(kafka, topic)) as reader:
        found = [str(origin_of(reader, moment(us))) for us in (times_us[0], times_us[0] - 1, times_us[2] + 1)]

    assert [f"{topic}:0:0,{topic}:1:0"] * 2 + [f"{topic}:0:3,{topic}:1:0"] == found


def test_a_moment_without_a_zone_is_no_offset_of_a_topic(kafka: Kafka, topic: str) -> None:
    with contextlib.closing(reader_of(kafka, topic)) as reader, pytest.raises(PositionError, match="its zone"):
        place_of(reader, "2023-11-14T22:13:25")


def moment(us: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=us)).isoformat()


def test_messages_that_cannot_be_read_are_an_error_or_dead_letters_and_others_that_are_no_rows_are_counted(
    kafka: Kafka, topic: str
) -> None:
    heartbeat = b'{"schema":{"name":"io.debezium.connector.common.Heartbeat"},"payload":{"ts_ms":1}}'
    broken = insert(2).replace(b'"source"', b'"sauce"')
    former = insert(2).replace(b'"op":"c"', b'"op":"u"')
    bodies = [insert(1), b"\xff no JSON", heartbeat, None, broken, former, insert(3)]
    kafka.produce(topic, [(None, body) for body in bodies], 0)

    with contextlib.closing(reader_of(kafka, topic)) as strict, pytest.raises(UnsupportedEvent, match=f"{topic}:0:1"):
        list(strict.scan(strict.start()))
    settings = replace(reader_settings(kafka, topic), keeps_unread=True)
    with contextlib.closing(KafkaReader(settings)) as reader:
        *_, bound = reader.scan(reader.start())
        assert isinstance(bound, Bound)
        (part,) = bound.partitions
        *rows, letters = chunks = chunks_of(reader, part)
        # A plan that was made so is read so, whatever the configuration says by then.
        with contextlib.closing(reader_of(kafka, topic)) as strict:
            assert [str(each.rows) for each in chunks] == [str(each.rows) for each in chunks_of(strict, part)]

    assert (("no_row", 1), ("tombstone", 1), ("unreadable", 2)) == part.passed_over
    if rows[0].table_id == NO_TABLE:
        rows, letters = [letters], rows[0]
    assert [1, 3] == [number for chunk in rows for number in chunk.rows["h1"].to_pylist()]
    told = json.loads(dead_letters(letters))
    assert [(f"{topic}:0:{at}", bodies[at]) for at in (1, 4, 5)] == [
        (each["position"], bytes.fromhex(each["raw"])) for each in told
    ]
    assert (NO_TABLE, 0) == (letters.table_id, letters.rows.num_rows)
    assert "whole row" in told[2]["text"]


def test_a_scan_ends_at_a_limit_and_at_a_position(kafka: Kafka, topic: str) -> None:
    kafka.produce(topic, [(None, insert(n)) for n in range(10)], 0)

    with contextlib.closing(reader_of(kafka, topic)) as reader:
        start = reader.start()
        bound = list(reader.scan(start, until=at(f"{topic}:0:4,{topic}:1:0")))[-1]
        limited = list(reader.scan(start, limit_bytes=1))[-1]

    assert isinstance(bound, Bound)
    assert isinstance(limited, Bound)
    assert f"{topic}:0:4,{topic}:1:0" == str(bound.position)
    assert f"{topic}:0:1,{topic}:1:0" == str(limited.position)


def test_a_scan_of_short_messages_ends_at_their_number(kafka: Kafka, topic: str) -> None:
    kafka.produce(topic, [(b"k", None)] * 50, 0)
    with contextlib.closing(reader_of(kafka, topic)) as reader:
        (bound,) = reader.scan(reader.start(), limit_bytes=400)

    assert f"{topic}:0:10,{topic}:1:0" == str(bound.position)


def test_rows_of_transactions_come_when_they_are_committed_and_never_when_aborted(kafka: Kafka, topic: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.brokers, "transactional.id": topic})
    producer.init_transactions(30)

    def sent(*numbers: int) -> None:
        producer.begin_transaction()
        for number in numbers:
            producer.produce(topic, insert(number), partition=0)
        producer.flush(30)

    with contextlib.closing(reader_of(kafka, topic)) as reader:
        sent(1, 2)
        producer.abort_transaction(30)
        sent(3)
        producer.commit_transaction(30)
        sent(4)
        open_bound = list(reader.scan(reader.start()))[-1]
        producer.commit_transaction(30)
        wait_until(lambda: reader.end() != open_bound.position, 30)  # type: ignore[union-attr]
        rest = list(reader.scan(open_bound.position))[-1]  # type: ignore[union-attr]

        assert isinstance(open_bound, Bound)
        assert isinstance(rest, Bound)
        assert [[3], [4]] == [ids(reader, bound.partitions[0]) for bound in (open_bound, rest)]


def test_offsets_lost_to_retention_are_an_error_that_names_both(kafka: Kafka, topic: str) -> None:
    from confluent_kafka import TopicPartition

    kafka.produce(topic, [(None, insert(n)) for n in range(10)], 0)
    admin = kafka.admin()
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 6)]).values()
    deleted.result(30)

    with contextlib.closing(reader_of(kafka, topic)) as reader:
        with pytest.raises(LogPurged, match=rf"{topic}:0:2.*offset from 6 to 10"):
            list(reader.scan(at(f"{topic}:0:2,{topic}:1:0")))
        with pytest.raises(LogPurged, match=rf"{topic}:0:2.*offset from 6 to 10"):
            ids(reader, PartitionRange(topic=topic, partition=0, start=2, end=9, bytes_read=1))
        assert f"{topic}:0:6,{topic}:1:0" == str(reader.start())


def test_a_topic_that_ends_before_what_was_read_is_an_error(kafka: Kafka, topic: str) -> None:
    with contextlib.closing(reader_of(kafka, topic)) as reader, pytest.raises(LogReplaced, match="offsets 0 to 0"):
        list(reader.scan(at(f"{topic}:0:7,{topic}:1:0")))


def test_a_partition_that_is_gone_is_an_error_and_a_new_one_is_read_from_its_beginning(
    kafka: Kafka, topic: str
) -> None:
    with contextlib.closing(reader_of(kafka, topic)) as reader:
        with pytest.raises(LogPurged, match=rf"(?s){topic}:7.*partitions \[0, 1\]"):
            reader.locate(at(f"{topic}:7:1"))
        kafka.add_partitions(topic, 3)
        wait_until(lambda: len(reader.end().offsets.next) == 3, 30)
        kafka.produce(topic, [(None, insert(8))], 2)
        bound = list(reader.scan(at(f"{topic}:0:0,{topic}:1:0")))[-1]

    assert isinstance(bound, Bound)
    assert [(2, 0, 1)] == [(part.partition, part.start, part.end) for part in bound.partitions]


def test_a_topic_made_anew_is_known_by_its_id(kafka: Kafka, topic: str) -> None:
    kafka.produce(topic, [(None, insert(1))], 0)
    with contextlib.closing(reader_of(kafka, topic)) as reader, contextlib.closing(Store.open("sqlite://")) as store:
        Continuity(store, reader).note(reader.end())
        Continuity(store, reader).check()
        kafka.delete_topic(topic)
        wait_until(lambda: topic not in kafka.admin().list_topics(timeout=10).topics, 30)
        kafka.make_topic(topic, 2)
        kafka.produce(topic, [(None, insert(1))], 0)

        with pytest.raises(LogReplaced, match=rf"{topic}.*the topic of id .*one of id "):
            Continuity(store, reader).check()


def test_a_topic_made_anew_between_two_plans_is_no_more_of_the_one_that_was_read(kafka: Kafka, topic: str) -> None:
    kafka.produce(topic, [(None, insert(number)) for number in range(3)], 0)
    with contextlib.closing(reader_of(kafka, topic)) as reader, contextlib.closing(Store.open("sqlite://")) as store:
        tracker = Tracker(
            reader=reader, store=store, connector=store.connector("c"), captured=lambda _: True, revision=""
        )
        assert tracker.plan_after(0) is not None
        kafka.delete_topic(topic)
        wait_until(lambda: topic not in kafka.admin().list_topics(timeout=10).topics, 30)
        kafka.make_topic(topic, 2)
        kafka.produce(topic, [(None, insert(number)) for number in range(100, 106)], 0)

        with pytest.raises(LogReplaced, match=rf"{topic}.*the topic of id .*one of id "):
            tracker.plan_after(1)
        assert store.plan(2) is None
        again = Tracker(
            reader=reader, store=store, connector=store.connector("c"), captured=lambda _: True, revision=""
        )
        # Its rows may not have been read, and are gone with the topic.
        with pytest.raises(LogReplaced, match=rf"{topic}.*the topic of id .*one of id "):
            again.plan_after(0)


@pytest.mark.parametrize(
    "topics,client,reason",
    [
        (("no.such.topic",), {}, "no such topic.*no.such.topic"),
        (("*",), {"no_such_setting": "1"}, "settings are not taken.*no.such.setting"),
    ],
)
def test_what_cannot_be_read_is_named(
    kafka: Kafka, topics: tuple[str, ...], client: dict[str, Any], reason: str
) -> None:
    with contextlib.closing(reader_of(kafka, *topics, **client)) as reader, pytest.raises(SourceError, match=reason):
        reader.start()


def test_globs_take_in_topics_that_come_later(kafka: Kafka, topic: str) -> None:
    with contextlib.closing(reader_of(kafka, f"{topic}.more.*")) as reader:
        assert not reader.start().offsets
        kafka.make_topic(f"{topic}.more.a")
        wait_until(lambda: reader.end().offsets, 30)

        assert f"{topic}.more.a:0:0" == str(reader.end())
    kafka.delete_topic(f"{topic}.more.a")


def test_topics_that_programs_keep_for_themselves_are_read_by_name_alone(kafka: Kafka) -> None:
    name = "__reader.of.its.own"
    kafka.make_topic(name)
    with (
        contextlib.closing(reader_of(kafka, "*.of.its.own")) as by_glob,
        contextlib.closing(reader_of(kafka, name)) as by_name,
    ):
        assert ("", f"{name}:0:0") == (str(by_glob.end()), str(by_name.end()))


def test_waiting_ends_when_messages_come(kafka: Kafka, topic: str) -> None:
    with contextlib.closing(reader_of(kafka, topic)) as reader:
        end = reader.end()
        assert not reader.wait(end, 0.1)
        kafka.produce(topic, [(None, insert(1))], 0)

        assert reader.wait(end, 60)
        assert reader.end().covers(end)
        assert reader.end() != end
