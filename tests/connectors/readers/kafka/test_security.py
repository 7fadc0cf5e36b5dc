"""A broker that wants TLS and a password: what is read there, and what is said where it lets nobody in."""

from __future__ import annotations

import contextlib
import pickle

import pytest
from confluent_kafka import Consumer, TopicPartition

from connectors.readers.base import Bound
from connectors.readers.kafka.administration import Administration
from connectors.readers.kafka.client import BrokerDown, Client, KafkaSettings
from connectors.readers.kafka.group import Group
from connectors.readers.kafka.reader import KafkaReader
from databases.kafka import Kafka
from historian.errors import SourceNotLetIn

TOPIC = "behind.a.password"
MESSAGE = b'{"database":"shop","table":"t","type":"INSERT","isDdl":false,"es":1,"pkNames":["id"],"mysqlType":{"id":"int"},"data":[{"id":"1"}]}'


def settings(kafka: Kafka, **changed: str) -> KafkaSettings:
    client = kafka.security() | {key.replace("_", "."): value for key, value in changed.items()}
    return KafkaSettings(brokers=kafka.secured, topics=(TOPIC,), client=client, format="canal_json")


@pytest.fixture(scope="module", autouse=True)
def _topic(kafka: Kafka) -> None:
    kafka.make_topic(TOPIC)
    kafka.produce(TOPIC, [(None, MESSAGE)] * 3)


def test_messages_are_read_and_offsets_noted_with_the_settings_of_the_client(kafka: Kafka) -> None:
    known = settings(kafka)
    with contextlib.closing(KafkaReader(known)) as reader:
        *_, bound = reader.scan(reader.start())
        with contextlib.closing(pickle.loads(pickle.dumps(reader))) as again:
            ends = [str(reader.end()), str(again.end())]
    with contextlib.closing(Client(known)) as client:
        ids = Administration(client).topic_ids()
    group = Group(known, "behind-a-password")
    group.note({(TOPIC, 0): 2})
    group.close()

    assert isinstance(bound, Bound)
    assert [f"{TOPIC}:0:3"] * 2 == [str(bound.position), ends[0]] == [ends[1]] * 2
    assert [TOPIC] == list(ids)
    consumer = Consumer({"bootstrap.servers": kafka.brokers, "group.id": "behind-a-password"})
    (noted,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=30)
    consumer.close()
    assert 2 == noted.offset


def test_a_wrong_password_is_an_error_that_is_not_tried_again(kafka: Kafka) -> None:
    known = settings(kafka, sasl_password="another")
    with contextlib.closing(KafkaReader(known)) as reader, pytest.raises(SourceNotLetIn, match="password") as told:
        reader.start()

    assert not told.value.retryable
    assert kafka.secured in str(told.value)
    assert "Authentication failed" in str(told.value)
    assert "another" not in str(told.value) + repr(known)


def test_a_certificate_that_is_not_trusted_is_named(kafka: Kafka) -> None:
    known = settings(kafka, ssl_ca_location="")
    with contextlib.closing(KafkaReader(known)) as reader, pytest.raises(BrokerDown, match="certificate"):
        reader.start()


def test_a_service_of_tokens_that_does_not_answer_may_be_back(kafka: Kafka) -> None:
    oauth = {"mechanisms": "OAUTHBEARER", "oauthbearer.method": "oidc", "oauthbearer.client.id": "x"}
    oauth |= {"oauthbearer.client.secret": "y", "oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}
    client = {"security.protocol": "SASL_PLAINTEXT", **{f"sasl.{key}": value for key, value in oauth.items()}}
    known = KafkaSettings(brokers=kafka.secured, topics=(TOPIC,), client=client, format="canal_json")

    with contextlib.closing(Client(known)) as asked, pytest.raises(BrokerDown, match="token") as told:
        asked.partitions()

    assert told.value.retryable
