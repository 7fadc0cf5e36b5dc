"""Rows that are read before a statement which another partition has yet to bring: they wait where a plan ends at a limit."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from connectors.readers.base import Bound
from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.messages.batch import Batch
from connectors.readers.kafka.messages.partitions import Partition
from connectors.readers.kafka.reader import KafkaReader
from connectors.tracking.tracker import Tracker
from historian.changelog.operations import physical_name
from historian.store import Store
from logs.topic_streams import Message, batch_of

BEGUN_MS = 1_700_000_000_000
SETTINGS = KafkaSettings(brokers="", topics=("t",), format="canal_json")


def statement(moment: int, sql: str, grain: int = 1) -> Message:
    said = {"type": "ALTER", "isDdl": True, "sql": sql, "data": None}
    return None, json.dumps({"database": "shop", "table": "t", "es": _es(moment, grain), **said}).encode()


def row(moment: int, columns: tuple[str, ...], grain: int = 1) -> Message:
    said: dict[str, Any] = {
        "database": "shop",
        "table": "t",
        "type": "INSERT",
        "isDdl": False,
        "es": _es(moment, grain),
    }
    said |= {"pkNames": ["id"], "mysqlType": dict.fromkeys(columns, "int")}
    return None, json.dumps(said | {"data": [dict.fromkeys(columns, str(moment))]}).encode()


def _es(moment: int, grain: int) -> int:
    """A server tells times in steps of a *grain*, so that rows and statements share one."""
    return BEGUN_MS + moment - moment % grain


class Topic:
    """A topic in memory whose partitions come in turns, each in batches of a length of its own."""

    def __init__(self, held: dict[int, list[Message]], lengths: Mapping[int, int]) -> None:
        self._held, self._lengths = held, lengths

    def partitions(self) -> tuple[Partition, ...]:
        return tuple(("t", number) for number in sorted(self._held))

    def bounds(self, partition: Partition) -> tuple[int, int]:
        return 0, len(self._held[partition[1]])

    def topic_ids(self) -> dict[str, str]:
        return {}

    def batches(self, ranges: Mapping[Partition, tuple[int, int]]) -> Generator[tuple[Partition, Batch], None, None]:
        left = {partition: start for partition, (start, end) in ranges.items() if start < end}
        while left:
            for partition, begin in list(left.items()):
                end = min(ranges[partition][1], begin + self._lengths[partition[1]])
                yield partition, batch_of(self._held[partition[1]][begin:end], begin)
                left[partition] = end
                if end == ranges[partition][1]:
                    del left[partition]

    def close(self) -> None:
        pass


def backlog(numbers: Random, grain: int) -> tuple[dict[int, list[Message]], dict[int, int]]:
    """Rows in any of three partitions, and statements in one of them alone; also by its id how many columns each row has."""
    held: dict[int, list[Message]] = {0: [], 1: [], 2: []}
    of_statements = held[numbers.randrange(3)]
    of_statements.append(statement(0, "CREATE TABLE t (id INT PRIMARY KEY)"))
    columns, widths = ("id",), dict[int, int]()
    weights = [numbers.random() + 0.05 for _ in held]
    for moment in range(1, 300):
        if numbers.random() < 0.02:
            name = f"c{moment}"
            of_statements.append(statement(moment, f"ALTER TABLE t ADD COLUMN {name} INT NOT NULL DEFAULT 7", grain))
            columns += (name,)
        else:
            held[numbers.choices([*held], weights)[0]].append(row(moment, columns, grain))
            widths[moment] = len(columns)
    return held, widths


def ends(
    held: dict[int, list[Message]], settings: KafkaSettings, limit_bytes: int, history: tuple[str, ...] = ()
) -> list[list[int]]:
    """Where each scan of at most so many bytes ends in each partition; *history*: the columns of the table that it knows."""
    reader = KafkaReader(settings)
    if history:
        reader.holds = lambda _, columns: set(history).issuperset(columns)
    reader._client = reader._administration = Topic(held, dict.fromkeys(held, 5))  # type: ignore[assignment]
    found, reached = list[list[int]](), reader.start()
    while items := list(reader.scan(reached, limit_bytes=limit_bytes)):
        bound = items[-1]
        assert isinstance(bound, Bound)
        reached = bound.position
        found.append([offset for _, offset in reached.offsets])
    return found


def watermark(moment: int) -> Message:
    said = {"database": "", "table": "", "isDdl": False, "type": "TIDB_WATERMARK", "es": BEGUN_MS + moment}
    return None, json.dumps(said | {"_tidb": {"watermarkTs": (BEGUN_MS + moment) << 18}}).encode()


def test_a_partition_of_watermarks_alone_says_how_far_it_is() -> None:
    rows = [row(moment, ("id",)) for moment in range(1, 60)]
    held = {0: [statement(0, "CREATE TABLE t (id INT PRIMARY KEY)"), *rows], 1: [watermark(n) for n in range(0, 60, 2)]}

    found = ends(held, replace(SETTINGS, format="ticdc_canal_json"), 2_000)

    assert [60, 30] == found[-1]
    assert len(found) > 5


def test_rows_do_not_wait_for_ever_for_a_partition_that_tells_no_time() -> None:
    rows = [row(moment, ("id",)) for moment in range(1, 60)]
    held = {0: [statement(0, "CREATE TABLE t (id INT PRIMARY KEY)"), *rows], 1: [(None, b"broken" * 20)] * 500}

    found = ends(held, replace(SETTINGS, keeps_unread=True), 2_000)

    assert [60, 500] == found[-1]
    assert len(found) > 6


@pytest.mark.parametrize("names", [("id", "n"), ("id",)], ids=["as_in_the_history", "some_of_its_columns"])
def test_rows_that_the_history_explains_do_not_wait_for_a_partition_that_lags(names: tuple[str, ...]) -> None:
    lagging = [
        (key, (value or b"").replace(b'"t"', b'"of_another_name"'))
        for key, value in (row(moment, names) for moment in range(200))
    ]
    held = {0: [row(moment, names) for moment in range(9_000, 9_060)], 1: lagging}

    found = ends(held, SETTINGS, 2_000, history=("id", "n"))

    assert found[0][0] > 0
    assert [60, 200] == found[-1]


@pytest.mark.parametrize("grain", [1, 10], ids=["moments", "shared_moments"])
@pytest.mark.parametrize("seed", range(6))
def test_a_backlog_in_partitions_is_read_in_plans_as_it_is_at_once(seed: int, grain: int) -> None:
    numbers = Random(seed)
    held, widths = backlog(numbers, grain)
    topic = Topic(held, {number: numbers.randint(1, 20) for number in held})
    reader = KafkaReader(SETTINGS)
    reader._client = reader._administration = topic  # type: ignore[assignment]
    found, plans = dict[int, list[int]](), 0
    with contextlib.closing(Store.open("sqlite://")) as store:
        tracker = Tracker(
            reader=reader, store=store, connector=store.connector("c"), captured=lambda _: True, revision=""
        )
        while (plan := tracker.plan_after(plans, limit_bytes=2_000 + 4_000 * (seed % 3))) is not None:
            plans = plan.number
            snapshots = {each.version: each.snapshot for table in plan.tables for each in table.versions}
            for planned in plan.ranges:
                for chunk in reader.read(planned, plan.tables):
                    snapshot = snapshots[chunk.version]
                    assert snapshot is not None
                    columns = [chunk.rows[physical_name(column.id)].to_pylist() for column in snapshot.columns]
                    for values in zip(*columns, strict=True):
                        assert values[0] not in found
                        found[values[0]] = list(values)
        (last,) = tracker.history.catalog.tables.values()
        stopped = store.stopped()

    assert not stopped
    assert ["7"] * (len(last.columns) - 1) == [column.initial for column in last.columns[1:]]
    assert widths.keys() == found.keys()
    # A partition that lags brings rows from before a statement: under the schema behind it they have its default.
    assert found == {each: [each] * width + [7] * (len(found[each]) - width) for each, width in widths.items()}
    assert plans > 3
