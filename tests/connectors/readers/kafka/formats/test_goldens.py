"""Recorded messages of each format, and the rows that they are: one file of ``goldens/`` for each case.

A case is a JSON file: ``format``, ``follows`` (which documentation says so), ``messages``, and what comes of them. A message is its value,
or an object of ``key``, ``value``, ``partition`` and ``topic``; a value that is a text is taken as it is, ``{"hex": ...}`` is bytes, and ``{"schema": 1, "record": {...}}`` Avro
of a schema in ``registry``, or JSON where it has ``json``. In a record ``{"bytes": ...}`` is hex. What may come of them:

- ``rows``: by table, each an operation and the row. Bytes are ``0x...``, moments ISO 8601, decimals text, TIME microseconds.
- ``segments``: by table, of each row: what is behind a TRUNCATE, or under another name, is in another one.
- ``types`` and ``keys``: of a table's last version; ``statements``: of the history behind its begin.
- ``passed_over``: how many messages of each kind have no row, or are late.
- ``stopped``: by table, a part of the reason; ``refused``: a part of the error that ends the reading.
- ``events``, in the place of all these: of each message what its decoder gives, where rows need a state of the table. An event is its
  operation ("d by key" where the key alone is told), its table, and the rows before and after it.

Also there may be ``schema`` (SQL), ``time_zone``, ``debezium`` (how a connector is set), ``message_schema``, ``topic``, ``schema_topic``, ``tombstones``, and ``plans``: after how many messages
a plan ends.
``given``: statements for those that stopped tables, each with the count of messages after which it is given, and its table. It ends a plan.
Where null is given the table is read again from the start. ``purged``: so many messages of partition 0 are gone by then.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.readers.kafka import scanned_ranges
from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.decoders import FORMATS, decoder_for, decoder_of
from connectors.readers.kafka.located import batches
from connectors.readers.kafka.locators import locator_of
from connectors.readers.kafka.messages.batch import Batch
from connectors.readers.kafka.messages.events import Event, SqlEvent
from connectors.readers.kafka.messages.modes import DebeziumModes
from connectors.readers.kafka.messages.partitions import Partition
from connectors.readers.kafka.reader import KafkaReader
from connectors.recovery.overriding import override
from connectors.recovery.replaying import earliest, replay
from connectors.tracking.schema_file import catalog_of
from connectors.tracking.tracker import Tracker
from historian.changelog.operations import Op, physical_name
from historian.errors import HistorianError
from historian.names import TableName
from historian.plans.plans import Plan
from historian.store import Store
from logs.topic_messages import body, recorded_writers
from logs.topic_streams import Message, batch_of

_ALL = sorted((Path(__file__).parent / "goldens").glob("*.json"))
OF_EVENTS = [path for path in _ALL if '"events":' in path.read_text(encoding="utf-8")]
GOLDENS = [path for path in _ALL if path not in OF_EVENTS]


_MESSAGE = {"key", "value", "partition", "topic"}


class Topic:
    """A topic in memory, which answers as :class:`connectors.readers.kafka.client.Client` does."""

    batch_messages = 1000

    def __init__(self, messages: list[Any], registry: Mapping[str, Any]) -> None:
        self.registry = registry
        self.held: dict[Partition, list[Message]] = {}
        self.purged = 0
        self.waiting = [self._made(each) for each in messages]
        for partition, _ in self.waiting:
            self.held.setdefault(partition, [])

    def _made(self, given: Any) -> tuple[Partition, Message]:
        whole = given if isinstance(given, dict) and given.keys() <= _MESSAGE else {"value": given}
        key, value = (body(whole.get(name), self.registry) for name in ("key", "value"))
        return (whole.get("topic", "t"), int(whole.get("partition", 0))), (key, value)

    def bring(self, count: int) -> None:
        for partition, message in self.waiting[:count]:
            self.held[partition].append(message)
        del self.waiting[:count]

    def partitions(self) -> tuple[Partition, ...]:
        return tuple(sorted(self.held))

    def bounds(self, partition: Partition) -> tuple[int, int]:
        return (0 if partition[1] else self.purged), len(self.held[partition])

    def topic_ids(self) -> dict[str, str]:
        return {}

    def batches(self, ranges: Mapping[Partition, tuple[int, int]]) -> Generator[tuple[Partition, Batch], None, None]:
        for partition, (start, end) in ranges.items():
            for begin in range(start, end, self.batch_messages):
                messages = self.held[partition][begin : min(end, begin + self.batch_messages)]
                yield partition, batch_of(messages, begin, time_ms=1_700_000_000_000)

    def close(self) -> None:
        pass


def shown(value: Any) -> Any:
    """A value as goldens have it."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def settings_of(case: Mapping[str, Any]) -> KafkaSettings:
    """The settings of a reader of *case*."""
    return KafkaSettings(
        brokers="",
        topics=("t",),
        format=case["format"],
        zone=case.get("time_zone", "UTC"),
        modes=DebeziumModes(**case.get("debezium", {})),
        message_schema=json.dumps(case.get("message_schema", "")),
        schema_topic=case.get("schema_topic", ""),
        tombstones=case.get("tombstones", "delete"),
    )


@contextlib.contextmanager
def tracked(case: Mapping[str, Any], topic: Topic, url: str) -> Generator[Tracker, None, None]:
    reader = KafkaReader(settings_of(case))
    reader._client = reader._administration = topic  # type: ignore[assignment]
    reader._writers = recorded_writers(case)
    schema = catalog_of(case["schema"], flavor="mysql", where="the case") if "schema" in case else None
    with contextlib.closing(Store.open(url)) as store:
        yield Tracker(
            reader=reader,
            store=store,
            connector=store.connector("goldens"),
            captured=lambda _: True,
            revision="",
            schema=schema,
        )


def plans_of(
    tracker: Tracker, number: int, given: tuple[TableName, str | None] | None, topic: Topic, purged: int
) -> Iterator[Plan]:
    """The plans behind one, and what a statement makes that is *given* behind them."""
    while (plan := tracker.plan_after(number)) is not None:
        number = plan.number
        yield plan
    if given is None:
        return
    topic.purged = purged
    table, sql = given
    if sql is None:
        replay(tracker, tracker.history.catalog.tables[table].table_id, earliest(tracker))
    else:
        override(tracker, table, sql)
    yield tracker.stored(number + 1)


def came_of(case: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """What comes of the messages of *case*, under the names that goldens have for it."""
    topic, rows, number = Topic(case["messages"], case.get("registry", {})), dict[str, list[list[Any]]](), 0
    segments: dict[str, list[int]] = {}
    passed_over = Counter[str]()
    url = f"sqlite:///{directory}/store.db"
    given = {count: (TableName(*name.split(".")), sql) for count, name, sql in case.get("given", ())}
    plans = sorted({*case.get("plans", ()), *given, len(case["messages"])})
    for before, upto in zip([0, *plans], plans, strict=False):
        topic.bring(upto - before)
        with tracked(case, topic, url) as tracker:
            for plan in plans_of(tracker, number, given.get(upto), topic, case.get("purged", 0)):
                number = plan.number
                for planned in plan.ranges:
                    passed_over.update(dict(planned.passed_over))
                    for chunk in tracker.reader.read(planned, plan.tables, stops=True):
                        table = next(each for each in plan.tables if each.table_id == chunk.table_id)
                        version = next(each for each in table.versions if each.version == chunk.version)
                        assert version.snapshot is not None
                        names = {column.name: physical_name(column.id) for column in version.snapshot.columns}
                        segments.setdefault(str(version.snapshot.name), []).extend(
                            [chunk.segment] * chunk.rows.num_rows
                        )
                        for row in chunk.rows.to_pylist():
                            values = {name: shown(row[column]) for name, column in names.items()}
                            rows.setdefault(str(version.snapshot.name), []).append([Op(row["op"]).sign, values])
                        if chunk.stopped:
                            rows.setdefault(str(version.snapshot.name), []).append(["stopped", chunk.stopped])
    with tracked(case, topic, url) as tracker:
        catalog = tracker.history.catalog
        entries = tracker.history.entries[1:]
        return {
            "rows": rows,
            "segments": segments,
            "passed_over": dict(passed_over),
            "types": {
                str(name): {column.name: str(column.type) for column in snapshot.columns}
                for name, snapshot in catalog.tables.items()
            },
            "keys": {
                str(name): [column.name for column in snapshot.columns if column.id in snapshot.primary_key]
                for name, snapshot in catalog.tables.items()
            },
            "statements": [entry.statement for entry in entries if not entry.statement.startswith("--")],
            "stopped": {str(table): stop.reason for _, table, stop in tracker.store.stopped()},
        }


def read_so(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code looks at all messages, or at none; or each message is a range of its own."""
    monkeypatch.setattr(batches, "FEWEST_LOCATED", 0 if how == "located" else 1_000_000)
    monkeypatch.setattr(batches, "_MOST_SLOW", 0)
    if how == "in_many_ranges":
        monkeypatch.setattr(scanned_ranges, "_RANGE_BYTES", 1)
        monkeypatch.setattr(Topic, "batch_messages", 1)


def is_located(case: Mapping[str, Any]) -> bool:
    """Whether compiled code reads a case's format at all."""
    decoder = decoder_of(
        case["format"], writers=recorded_writers(case), message_schema=json.dumps(case.get("message_schema", ""))
    )
    return locator_of(decoder) is not None


def ways() -> Iterator[Any]:
    """Each case in each way that differs from the others."""
    for path in GOLDENS:
        located = is_located(json.loads(path.read_text(encoding="utf-8")))
        for how in ["located"] * located + ["one_by_one", "in_many_ranges"]:
            yield pytest.param(path, how, id=f"{how}-{path.stem}")


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds nothing yet: to make one takes longer than to read most cases."""
    path = tmp_path_factory.mktemp("goldens") / "store.db"
    Store.open(f"sqlite:///{path}").close()
    return path


@pytest.mark.parametrize("path, how", [*ways()])
def test_messages_are_the_rows_that_the_documentation_says(
    path: Path, how: str, empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_so(how, monkeypatch)
    shutil.copyfile(empty_store, tmp_path / "store.db")
    case = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    assert case["follows"]
    assert case["format"] in FORMATS
    if "refused" in case:
        with pytest.raises(HistorianError) as error:
            came_of(case, tmp_path)
        for part in case["refused"]:
            assert part in str(error.value)
        return

    found = came_of(case, tmp_path)

    wanted = json.loads(path.read_text(encoding="utf-8"))
    assert wanted.get("stopped", {}).keys() == found["stopped"].keys()
    for table, part in wanted.get("stopped", {}).items():
        assert part in found["stopped"][table]
    for kind, count in wanted.get("passed_over", {}).items():
        assert count == found["passed_over"].get(kind, 0), kind
    for what in ("rows", "segments", "types", "keys", "statements"):
        if what in wanted:
            assert wanted[what] == found[what], what


@pytest.mark.parametrize("path", OF_EVENTS, ids=lambda path: path.stem)
def test_messages_are_the_events_that_the_documentation_says(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    assert case["follows"]
    topic, writers = Topic(case["messages"], case.get("registry", {})), recorded_writers(case)
    decoder = decoder_for(settings_of(case), case.get("topic", "t"), writers)

    found = []
    for _, (key, value) in topic.waiting:
        for event in decoder.events(key, value, "t:0:0", 1_700_000_000_000_000):
            if isinstance(event, Event):
                op = f"{event.op} by key" if event.keyed else event.op
                found.append([op, str(event.table), plain(event.before), plain(event.after), *event.unknown])
            elif isinstance(event, SqlEvent):
                found.append([event.sql, event.database])

    assert json.loads(path.read_text(encoding="utf-8"))["events"] == found


def plain(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """An event's row as goldens have it: numbers with a fraction as text."""
    return None if row is None else {name: shown(value) for name, value in row.items()}
