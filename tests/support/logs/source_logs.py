"""A source's log in topics of memory: rows and statements as Debezium's messages tell them, with their places, and a reader of them."""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.messages.batch import Batch
from connectors.readers.kafka.messages.partitions import Partition
from connectors.readers.kafka.reader import KafkaReader
from connectors.tracking.tracker import Tracker
from historian.store import Store
from logs.registered_events import RegisteredEvents
from logs.topic_streams import Message, batch_of

__all__ = [
    "STATED",
    "S",
    "SourceLog",
    "Topics",
    "compact",
    "reader_of",
    "row_message",
    "source_at",
    "statement_message",
    "tracker_of",
]

S = 1_000_000
STATED = "dbz"
"""The topic of statements."""


def source_at(number: int, second: int, server: int = 3, gtid: str | None = None) -> dict[str, Any]:
    """Of the event of that *number* in a log whose files have ten."""
    place = {"file": f"binlog.{number // 10:06}", "pos": 4 + 100 * (number % 10), "row": 0}
    return {"connector": "mysql", "db": "shop", "ts_ms": 1000 * second, "server_id": server, "gtid": gtid, **place}


def compact(message: Any) -> bytes:
    """As Debezium writes it."""
    return json.dumps(message, separators=(",", ":")).encode()


def row_message(number: int, second: int, columns: tuple[str, ...]) -> Message:
    fields = [{"type": "int32", "optional": name != "id", "field": name} for name in columns]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "field": "after"}]}
    source = {**source_at(number, second), "table": "t"}
    after = dict.fromkeys(columns, number)
    payload = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": 1}
    key = {"schema": {"type": "struct", "fields": fields[:1]}, "payload": {"id": number}}
    return compact(key), compact({"schema": schema, "payload": payload})


def statement_message(number: int, second: int, sql: str) -> Message:
    return None, json.dumps({"source": source_at(number, second), "databaseName": "shop", "ddl": sql}).encode()


class SourceLog:
    """A source's log: rows that are dealt to partitions, statements, and of each row under which columns and after how many TRUNCATEs it stands."""

    def __init__(self, numbers: random.Random, count: int) -> None:
        self.events: list[tuple[Partition, Message]] = []
        self.emptied: dict[int, int] = {}
        name, emptied, second = "a", 0, 100
        self.events.append(((STATED, 0), statement_message(10, second, "CREATE TABLE t (id INT PRIMARY KEY, a INT)")))
        for number in range(11, count + 11):
            second += numbers.random() < 0.1
            kind = numbers.random()
            if kind < 0.08:
                new = numbers.choice("abcd".replace(name, ""))
                sql, name = f"ALTER TABLE t RENAME COLUMN {name} TO {new}", new
                self.events.append(((STATED, 0), statement_message(number, second, sql)))
            elif kind < 0.12:
                emptied += 1
                self.events.append(((STATED, 0), statement_message(number, second, "TRUNCATE TABLE t")))
            else:
                row = row_message(number, second, ("id", name))
                self.events.append(((f"t{numbers.randrange(2)}", numbers.randrange(2)), row))
                self.emptied[number] = emptied


class Topics:
    """Topics in memory, which answer as :class:`connectors.readers.kafka.client.Client` does; each partition has what was sent by now."""

    def __init__(self, log: SourceLog) -> None:
        self._waiting = list(log.events)
        self._held: dict[Partition, list[Message]] = {at: [] for at, _ in log.events}

    def send(self, count: int) -> None:
        for partition, message in self._waiting[:count]:
            self._held[partition].append(message)
        del self._waiting[:count]

    def send_others(self, events: Iterable[tuple[Partition, Message]]) -> None:
        """Sends *events* in the place of those that wait."""
        self._waiting = list(events)

    def is_sent(self) -> bool:
        return not self._waiting

    def partitions(self) -> tuple[Partition, ...]:
        return tuple(sorted(self._held))

    def bounds(self, partition: Partition) -> tuple[int, int]:
        return 0, len(self._held[partition])

    def topic_ids(self) -> dict[str, str]:
        return {}

    def batches(self, ranges: Mapping[Partition, tuple[int, int]]) -> Generator[tuple[Partition, Batch], None, None]:
        for partition, (start, end) in ranges.items():
            for begin in range(start, end, 7):
                yield partition, batch_of(self._held[partition][begin : min(end, begin + 7)], begin)

    def close(self) -> None:
        pass


def reader_of(settings: KafkaSettings, log: SourceLog) -> tuple[KafkaReader, Topics]:
    """A reader of topics with the events of *log* as *settings* have them, and these topics."""
    registered = RegisteredEvents(settings.format)
    log.events = [(at, registered.message(message)) for at, message in log.events]
    topics = Topics(log)
    reader = KafkaReader(settings)
    reader._client = reader._administration = topics  # type: ignore[assignment]
    reader._writers = registered.writers
    return reader, topics


def tracker_of(reader: KafkaReader, store: Store, *, range_bytes: int = 1 << 20) -> Tracker:
    return Tracker(
        reader=reader,
        store=store,
        connector=store.connector("c"),
        captured=lambda _: True,
        revision="",
        range_bytes=range_bytes,
    )
