"""Tables that get the names of stopped ones, in statements that rename several: by a server's log and by Maxwell's topic."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from connectors.config import load_config
from connectors.recovery.overriding import override
from connectors.tracking.sources import make_tracker
from connectors.tracking.tracker import Tracker
from databases.kafka import Kafka
from databases.maxwell import start_maxwell
from databases.servers import Server
from historian.names import TableName
from replicas.tracked import Tracked
from workload.renamed_tables import RenamedTables, new_rows, understand_nothing_strange
from workload.seeds import seeds
from workload.waiting import wait_until

STEPS, RUNS = 25, 4


@pytest.fixture(params=["mysql9", "mariadb118"])
def source(request: pytest.FixtureRequest) -> Server:
    """A server of each kind."""
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture(autouse=True)
def _strange(monkeypatch: pytest.MonkeyPatch) -> None:
    understand_nothing_strange(monkeypatch)


def _named(database: str) -> list[str]:
    return [f"{database}.{name}" for name in "abcde"]


def _on(source: Server, *statements: str) -> None:
    with contextlib.closing(source.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_tables_go_on_beside_a_stopped_one_whose_name_they_get(source: Server, database: str, tracked: Tracked) -> None:
    a, b, c, d, e = names = _named(database)
    tables = RenamedTables(names)
    _on(source, *map(tables.make, (a, b, c)), *map(tables.insert, (a, b, c)))
    _on(source, tables.stop(a), tables.insert(a), tables.rename((a, d), (b, a)))
    _on(source, *map(tables.insert, (a, c, d)))
    with tracked.tracker() as tracker:
        last, rows = new_rows(tracker, 0)
        assert {"a", "d"} == tracked.stopped(tracker).keys()
    _on(source, tables.rename((d, e), (c, b), (a, c)))
    _on(source, *map(tables.insert, (b, c, e)))
    with tracked.tracker() as tracker:
        last, more = new_rows(tracker, last)
        ids = tables.check(rows + more)

        # The rows that it lacks come, under each of its names.
        override(tracker, TableName(database, "a"), f"ALTER TABLE {a} ADD c4 INT")
        assert not tracked.stopped(tracker)
        last, brought = new_rows(tracker, last)
        row = {"n": 7, "v": "table 1", "c4": None}
        assert [(ids[1], {"id": key, **row}) for key in (5, 8, 11)] == brought
    # One statement drops two.
    _on(source, tables.drop(c, e), tables.insert(b))
    with tracked.tracker() as tracker:
        last, more = new_rows(tracker, last)
        assert [(ids[3], 12)] == [(table_id, row["id"]) for table_id, row in more]
        assert [TableName(database, "b")] == [
            each for each in tracker.history.catalog.tables if each.database == database
        ]


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds((1, 2)))
def test_rows_stay_with_their_tables_however_these_are_renamed_and_stop(
    seed: int, source: Server, database: str, tracked: Tracked
) -> None:
    tables, last, rows = RenamedTables(_named(database), Random(seed)), 0, []
    for _ in range(RUNS):
        _on(source, *tables.some(STEPS))
        with tracked.tracker() as tracker:
            last, more = new_rows(tracker, last, limit_bytes=1500)
            rows += more
    tables.check(rows)


def _rows_until(mark: str, tracker: Tracker, last: int) -> tuple[int, list[tuple[int, dict[str, Any]]]]:
    """As :func:`new_rows`, until a table of that name was made."""
    found = []

    def is_read() -> bool:
        nonlocal last
        last, more = new_rows(tracker, last, limit_bytes=4000)
        found.extend(more)
        return any(str(name) == mark for name in tracker.history.catalog.tables)

    wait_until(is_read, 60)
    return last, found


def _apart(statements: Iterable[str]) -> Iterator[str]:
    """*statements* where none is of the second of another one of the same text: Maxwell tells seconds, so that they would count as one that was sent again."""
    said = set[str]()
    for statement in statements:
        if statement in said:
            yield "DO SLEEP(1.1)"
            said.clear()
        said.add(statement)
        yield statement


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds((1,)))
def test_rows_of_maxwells_topic_stay_with_their_tables_however_these_are_renamed_and_stop(
    seed: int, mysql57: Server, kafka: Kafka, tmp_path: Path
) -> None:
    topic = f"renamed_{seed}"
    kafka.make_topic(topic)
    mysql57.sql(f"CREATE DATABASE {topic}")
    path = tmp_path / "maxwell.yaml"
    path.write_text(
        f"name: renamed\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{topic}], format: maxwell, tables: ['{topic}.*']}}\n"
        f"history: {{store: 'sqlite:///{tmp_path}/topics.db'}}\nsinks: [{{type: parquet, path: {tmp_path}/lake}}]\n",
        encoding="utf-8",
    )
    tables, last, rows = RenamedTables(_named(topic), Random(seed)), 0, []
    maxwell = start_maxwell(tmp_path / "maxwell", mysql57, kafka, topic, topic)
    try:
        for run in range(RUNS):
            mark = f"{topic}.mark{run}"
            _on(mysql57, *_apart(tables.some(STEPS)), f"CREATE TABLE {mark} (id INT PRIMARY KEY)")
            with contextlib.closing(make_tracker(load_config(path))) as tracker:
                last, more = _rows_until(mark, tracker, last)
            rows += more
    finally:
        maxwell.stop()
        mysql57.sql("DROP DATABASE IF EXISTS maxwell")
    tables.check(sorted(rows, key=lambda row: row[1]["id"]))
