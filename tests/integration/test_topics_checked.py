"""What `historian check` says of topics: whether they can be read, in which format they are, and whether messages last until they are read."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from connectors.check import CheckResult, run_checks
from connectors.config import load_config
from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.group import Group
from connectors.tracking.sources import make_tracker
from databases.kafka import Kafka


def canal(number: int) -> bytes:
    message: dict[str, Any] = {
        "database": "shop",
        "table": "t",
        "type": "INSERT",
        "isDdl": False,
        "es": 1_700_000_000_000,
        "pkNames": ["id"],
        "mysqlType": {"id": "int"},
        "data": [{"id": str(number)}],
        "old": None,
    }
    return json.dumps(message).encode()


def configured(directory: Path, kafka: Kafka, topic: str, form: str = "canal_json") -> Path:
    path = directory / "shop.yaml"
    path.write_text(
        f"name: shop\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{topic}], format: {form}}}\n"
        f"history: {{store: 'sqlite:///{directory}/shop.db'}}\nsinks: [{{type: console}}]\n",
        encoding="utf-8",
    )
    return path


def found(path: Path, name: str) -> CheckResult:
    (result,) = (each for each in run_checks(load_config(path)) if each.name == name)
    return result


@pytest.mark.parametrize(
    "form,status,part",
    [
        ("canal_json", "ok", "3 messages of shop.t"),
        ("maxwell", "failed", "canal_json, ticdc_canal_json"),
        ("debezium_json", "failed", "canal_json, ticdc_canal_json"),
        ("json_upsert", "warning", "canal_json, ticdc_canal_json"),
    ],
)
def test_the_format_is_told_by_the_first_messages(
    kafka: Kafka, tmp_path: Path, form: str, status: str, part: str
) -> None:
    topic = f"checked.as.{form}"
    kafka.make_topic(topic)
    kafka.produce(topic, [(b"key", canal(number)) for number in range(3)])

    result = found(configured(tmp_path, kafka, topic, form), "format")

    assert status == result.status
    assert part in f"{result.found} {result.mend}"


def test_converters_that_write_defaults_in_the_place_of_nulls_are_told(kafka: Kafka, tmp_path: Path) -> None:
    goldens = Path(__file__).parents[1] / "connectors/readers/kafka/formats/goldens"
    recorded = json.loads((goldens / "debezium_json_default_of_a_nullable_column.json").read_text())["messages"]
    told = [(each["key"].encode(), each["value"].encode()) for each in recorded]
    untold = [(key, json.dumps(json.loads(value)["payload"]).encode()) for key, value in told]
    results = []
    for form, messages in (("debezium_json", told), ("debezium_json_schemaless", untold)):
        kafka.make_topic(f"checked.nulls.{form}")
        kafka.produce(f"checked.nulls.{form}", messages)
        results.append(found(configured(tmp_path, kafka, f"checked.nulls.{form}", form), "format"))

    assert ["failed", "warning"] == [each.status for each in results]
    assert "1 of the first 2 messages cannot be read: a value that may be NULL at the source" in results[0].found
    for each in results:
        assert "nulls_as_defaults: accept" in str(each.mend)


def test_topics_that_must_not_be_read_are_named(kafka: Kafka, tmp_path: Path) -> None:
    topic = "checked.rights"
    kafka.make_topic(topic)
    kafka.produce(topic, [(None, canal(1))])
    rules = [
        AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, permission)
        for operation, permission in (
            (AclOperation.DESCRIBE, AclPermissionType.ALLOW),
            (AclOperation.READ, AclPermissionType.DENY),
        )
    ]
    admin = kafka.admin()
    for made in admin.create_acls(rules).values():
        made.result(30)

    result = found(configured(tmp_path, kafka, topic), "rights")

    assert ("failed", f"{topic} cannot be read") == (result.status, result.found)


@pytest.mark.parametrize(
    "policy,setting,what", [("delete", "retention.ms", "messages"), ("compact", "delete.retention.ms", "deletes")]
)
def test_messages_that_may_be_gone_before_they_are_read_are_told(
    policy: str, setting: str, what: str, kafka: Kafka, tmp_path: Path
) -> None:
    topic, hour_ms = f"checked.retention.{policy}", 3_600_000
    kafka.make_topic(topic, **{"cleanup.policy": policy, setting: str(30 * hour_ms)})
    path = configured(tmp_path, kafka, topic)
    kafka.produce(topic, [(b"1", canal(1))])
    tracker = make_tracker(load_config(path))
    assert tracker.plan_after(0) is not None
    tracker.store.close()
    fresh = found(path, "retention")

    producer = Producer({"bootstrap.servers": kafka.brokers})
    producer.produce(topic, key="2", value=canal(2), timestamp=time.time_ns() // 1_000_000 - 20 * hour_ms)
    assert producer.flush(30) == 0
    old = found(path, "retention")

    assert "ok" == fresh.status
    assert (
        "warning",
        f"the first message of {topic}:0 that was not read is 20.0 hours old, and {what} are kept for 30.0 hours",
    ) == (old.status, old.found)
    assert f"raise {setting} of the topic" in str(old.mend)


def test_a_group_has_the_offsets_that_were_noted_last(kafka: Kafka) -> None:
    topic = "noted.offsets"
    kafka.make_topic(topic, 2)
    group = Group(KafkaSettings(brokers=kafka.brokers, topics=(topic,)), "monitors")

    group.note({(topic, 0): 3, (topic, 1): 0})
    group.note({(topic, 0): 5, (topic, 1): 7})
    group.close()

    consumer = Consumer({"bootstrap.servers": kafka.brokers, "group.id": "monitors"})
    asked = [TopicPartition(topic, number) for number in range(2)]
    assert [5, 7] == [each.offset for each in consumer.committed(asked, timeout=30)]
    consumer.close()
