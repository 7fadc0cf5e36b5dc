"""What a broker is asked by who administers: ids of topics, who may read them, how long they keep their messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from connectors.readers.kafka.client import Client

__all__ = ["Administration", "Kept"]

_ASK_S = 30.0
_LIMITS = (("delete", "retention.ms", "messages"), ("compact", "delete.retention.ms", "deletes"))
"""By word of a topic's `cleanup.policy` the setting that says how long what is kept. A change that another of its key follows may go at any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How long a topic keeps *what* is sent, at least, by which *setting* of it."""

    hours: float
    what: str
    setting: str


class Administration:
    """Asks of the topics of *client*, over a connection of its own. All answers are retryable."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._admin: AdminClient | None = None

    def close(self) -> None:
        """Closes the connection; it can be used again."""
        self._admin = None

    def topic_ids(self) -> dict[str, str]:
        """By topic, the id that a broker gives it when it is made; none of brokers that give none.

        Raises:
            BrokerDown: the brokers do not answer.
        """
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        untold = (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 librdkafka's name
        )
        described = self._told(
            lambda admin, topics: admin.describe_topics(TopicCollection(topics), request_timeout=_ASK_S)
        )
        ids: dict[str, str] = {}
        for topic, future in described.items():
            try:
                found = str(future.result().topic_id)
            except KafkaException as error:
                if error.args[0].code() not in untold:
                    raise self._client.down(topic, error.args[0].str()) from None
                continue  # describing may be forbidden where reading is not
            if found.strip("A"):  # zero: such a broker has none
                ids[topic] = found
        return ids

    def unreadable_topics(self) -> tuple[str, ...]:
        """Topics that the brokers do not let be read, as far as they tell."""
        from confluent_kafka import KafkaException, TopicCollection
        from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # it stands in no list

        described = self._told(
            lambda admin, topics: admin.describe_topics(
                TopicCollection(topics), include_authorized_operations=True, request_timeout=_ASK_S
            )
        )
        refused = []
        for topic, future in described.items():
            try:
                allowed = future.result().authorized_operations
            except KafkaException:
                continue  # describing may be forbidden where reading is not
            if allowed and AclOperation.READ not in allowed:
                refused.append(topic)
        return tuple(refused)

    def kept(self) -> dict[str, Kept]:
        """By topic how long what is sent can be read at least; none of topics that keep all, or of which the brokers do not tell."""
        found: dict[str, Kept] = {}
        for topic, told in self._settings():
            limits = [
                Kept(hours=kept_ms / 3_600_000, what=what, setting=name)
                for word, name, what in _LIMITS
                if word in told["cleanup.policy"] and (kept_ms := int(told[name] or -1)) > 0
            ]
            if limits:
                found[topic] = min(limits, key=lambda each: each.hours)
        return found

    def compacted(self) -> tuple[str, ...]:
        """Topics that keep the last message of each key, as far as the brokers tell."""
        return tuple(sorted(topic for topic, told in self._settings() if "compact" in told["cleanup.policy"]))

    def _settings(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Of each topic what it is set to, as far as the brokers tell."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]  # as above

        asked = self._told(
            lambda admin, topics: admin.describe_configs(
                [ConfigResource(ResourceType.TOPIC, topic) for topic in topics], request_timeout=_ASK_S
            )
        )
        for resource, future in asked.items():
            try:
                told = future.result()
            except KafkaException:
                continue  # describing may be forbidden where reading is not
            yield resource.name, {name: str(each.value or "") for name, each in told.items()}

    def _told(self, ask: Callable[[AdminClient, list[str]], Mapping[Any, Future[Any]]]) -> Mapping[Any, Future[Any]]:
        """What *ask* gives for all topics; nothing where there is none yet."""
        from concurrent.futures import wait

        from confluent_kafka.admin import AdminClient

        topics = sorted({topic for topic, _ in self._client.partitions()})
        if not topics:
            return {}
        if self._admin is None:
            known = self._client.settings
            self._admin = AdminClient({"log_level": 0, **known.client, "bootstrap.servers": known.brokers})
        told = ask(self._admin, topics)
        wait(told.values())  # answers come as long as the client is there
        return told
