"""Statements of a topic of their own stand among rows where the source's log has them, though times are told by the second."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
import pytest

from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.located import batches as located_batches
from connectors.readers.kafka.messages.batch import Batch
from connectors.readers.kafka.messages.source_places import SourcePlace, place_of
from connectors.readers.kafka.partitions import Partition
from connectors.readers.kafka.reader import KafkaReader
from connectors.readers.kafka.scanning import TopicScan
from connectors.readers.kafka.source_order import SourceOrder
from connectors.tracking.tracker import Tracker
from historian.changelog.operations import physical_name
from historian.errors import SourceError
from historian.store import Store
from logs.topic_streams import Message, batch_of

S = 1_000_000
STATED = "dbz"


def _source(number: int, second: int, server: int = 3) -> dict[str, Any]:
    """Of the event of that *number* in a log whose files have ten."""
    place = {"file": f"binlog.{number // 10:06}", "pos": 4 + 100 * (number % 10), "row": 0}
    return {"connector": "mysql", "db": "shop", "ts_ms": 1000 * second, "server_id": server, "gtid": None, **place}


def _row(number: int, second: int, columns: tuple[str, ...]) -> Message:
    fields = [{"type": "int32", "optional": name != "id", "field": name} for name in columns]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "field": "after"}]}
    source = {**_source(number, second), "table": "t"}
    after = dict.fromkeys(columns, number)
    payload = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": 1}
    key = {"schema": {"type": "struct", "fields": fields[:1]}, "payload": {"id": number}}
    return json.dumps(key).encode(), json.dumps({"schema": schema, "payload": payload}).encode()


def _stated(number: int, second: int, sql: str) -> Message:
    return None, json.dumps({"source": _source(number, second), "databaseName": "shop", "ddl": sql}).encode()


class Log:
    """A source's log: rows that are dealt to partitions, statements, and of each row under which columns and after how many TRUNCATEs it stands."""

    def __init__(self, numbers: random.Random, count: int) -> None:
        self.events: list[tuple[Partition, Message]] = []
        self.emptied: dict[int, int] = {}
        name, emptied, second = "a", 0, 100
        self.events.append(((STATED, 0), _stated(10, second, "CREATE TABLE t (id INT PRIMARY KEY, a INT)")))
        for number in range(11, count + 11):
            second += numbers.random() < 0.1
            kind = numbers.random()
            if kind < 0.08:
                new = numbers.choice("abcd".replace(name, ""))
                sql, name = f"ALTER TABLE t RENAME COLUMN {name} TO {new}", new
                self.events.append(((STATED, 0), _stated(number, second, sql)))
            elif kind < 0.12:
                emptied += 1
                self.events.append(((STATED, 0), _stated(number, second, "TRUNCATE TABLE t")))
            else:
                row = _row(number, second, ("id", name))
                self.events.append(((f"t{numbers.randrange(2)}", numbers.randrange(2)), row))
                self.emptied[number] = emptied


class Topics:
    """Topics in memory, which answer as :class:`connectors.readers.kafka.client.Client` does; each partition has what was sent by now."""

    def __init__(self, log: Log) -> None:
        self._waiting = list(log.events)
        self._held: dict[Partition, list[Message]] = {at: [] for at, _ in log.events}

    def send(self, count: int) -> None:
        for partition, message in self._waiting[:count]:
            self._held[partition].append(message)
        del self._waiting[:count]

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


@pytest.mark.parametrize("fewest_located", [0, 1_000_000], ids=["located", "one by one"])
@pytest.mark.parametrize("seed", range(6))
def test_rows_are_on_the_side_of_each_statement_on_which_the_log_has_them(
    seed: int, fewest_located: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(located_batches, "FEWEST_LOCATED", fewest_located)
    numbers = random.Random(seed)
    log = Log(numbers, 120)
    topics = Topics(log)
    limit_bytes = numbers.choice([3_000, 8_000, 1 << 20])
    reader = KafkaReader(KafkaSettings(brokers="", topics=("t*",), schema_topic=STATED))
    reader._client = reader._administration = topics  # type: ignore[assignment]
    segments: dict[int, tuple[int, int]] = {}
    values: dict[int, dict[int, int]] = {}
    number = 0
    with contextlib.closing(Store.open("sqlite://")) as store:
        tracker = Tracker(
            reader=reader,
            store=store,
            connector=store.connector("c"),
            captured=lambda _: True,
            revision="",
            range_bytes=limit_bytes,
        )
        while not topics.is_sent():
            topics.send(numbers.randrange(1, 60))
            while (plan := tracker.plan_after(number)) is not None:
                number = plan.number
                for planned in plan.ranges:
                    for chunk in reader.read(planned, plan.tables):
                        version = next(each for each in plan.tables[0].versions if each.version == chunk.version)
                        assert version.snapshot is not None
                        by_name = {column.name: column.id for column in version.snapshot.columns}
                        for row in chunk.rows.to_pylist():
                            key = row[physical_name(by_name["id"])]
                            assert key not in values
                            segments[key] = (number, chunk.segment)
                            values[key] = {
                                column: row[physical_name(column)] for name, column in by_name.items() if name != "id"
                            }
        assert not store.stopped()
    # A rename keeps the one column, so its values all stand under one id.
    assert values.keys() == log.emptied.keys()
    (column,) = {column for of_row in values.values() for column in of_row}
    assert all(of_row == {column: key} for key, of_row in values.items())
    # Segments are counted by plan; what is in one of them has the same statements before it.
    told: dict[tuple[int, int], set[int]] = {}
    for key, segment in segments.items():
        told.setdefault(segment, set()).add(log.emptied[key])
    assert all(len(each) == 1 for each in told.values())
    for one, other in itertools.pairwise(sorted(told)):
        assert one[0] != other[0] or min(told[one]) < min(told[other])
    assert any(segment for _, segment in told)


def test_a_truncate_that_stands_among_rows_too_is_executed_once() -> None:
    payload = {"source": {**_source(12, 100), "table": "t"}, "op": "t", "ts_ms": 1}
    stated = _stated(12, 100, "TRUNCATE TABLE t")
    another = {**payload, "source": {**_source(14, 100), "table": "t"}}
    settings = KafkaSettings(brokers="", topics=("t0",), schema_topic=STATED, format="debezium_json_schemaless")
    scan = TopicScan({(STATED, 0): (0, 1), ("t0", 0): (0, 2)}, settings)
    scan.take((STATED, 0), batch_of([stated]))
    scan.take(("t0", 0), batch_of([(None, json.dumps(each).encode()) for each in (payload, another)]))
    assert [f"{STATED}:0:0", "t0:0:1"] == [item.place.gtid for _, item in scan.found]


def _words(number: int, second: int, server: int = 3) -> list[int]:
    source = _source(number, second, server)
    found = place_of(json.dumps({"source": source, "op": "c"}).encode())
    assert found is not None
    return found


def _moments(order: SourceOrder, *rows: tuple[int, int]) -> list[int]:
    words = np.array([_words(*row) for row in rows])
    return order.moments(words, np.array([second * S for _, second in rows]), "t:0").tolist()  # type: ignore[no-any-return]


def _place(number: int, server: int = 3) -> SourcePlace:
    found = SourcePlace.of(_source(number, 0, server))
    assert found is not None
    return found


def test_a_statement_is_known_again_by_its_place_and_by_what_the_history_has_of_it() -> None:
    order = SourceOrder()
    first, second = (order.state(_place(number), 5 * S, "dbz:0:0") for number in (5, 12))
    assert (5 * S, 5 * S + 1) == (first, second)
    assert first == order.state(_place(5), 5 * S, "dbz:0:7")
    later = SourceOrder([(second, str(_place(12))), (first, str(_place(5)))])
    assert second == later.state(_place(12), 5 * S, "dbz:0:1")
    assert [first - 1, first, second] == _moments(later, (4, 5), (11, 5), (13, 5))


def test_a_row_before_a_long_statement_is_before_it_though_its_time_is_later() -> None:
    order = SourceOrder()
    began = order.state(_place(20), 100 * S, "dbz:0:0")
    assert [began - 1, 130 * S] == _moments(order, (19, 120), (21, 130))


@pytest.mark.parametrize("server", [3, 4])
def test_rows_of_another_log_go_by_time_unless_it_is_that_of_the_statement(server: int) -> None:
    order = SourceOrder()
    order.state(_place(20), 100 * S, "dbz:0:0")

    def moment(second: int) -> int:
        return int(order.moments(np.array([_words(2, second, server)]), np.array([second * S]), "t:0")[0])

    assert 99 * S == moment(99)
    if server == 3:
        assert 100 * S - 1 == moment(100)
    else:
        assert 101 * S == moment(101)
        with pytest.raises(SourceError, match=r"may be on either side \(t:0\)"):
            moment(100)


def test_a_log_that_was_begun_anew_is_refused() -> None:
    order = SourceOrder()
    order.state(_place(20), 100 * S, "dbz:0:0")
    assert 90 * S == order.state(_place(15), 90 * S, "dbz:0:1")
    with pytest.raises(SourceError, match=r"begun anew.*dbz:0:2"):
        order.state(_place(14), 101 * S, "dbz:0:2")
