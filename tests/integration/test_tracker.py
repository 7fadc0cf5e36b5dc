"""The tracker on real servers: what stops a table, what does not, and where a history begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.config import load_config
from connectors.tracking.sources import make_tracker
from connectors.tracking.tracker import Tracker
from databases.servers import Server
from historian.changelog.chunks import Chunk
from historian.names import TableName
from historian.plans.plans import Plan
from historian.store import Store
from replicas.replica import Replica

Track = Callable[..., Tracker]


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """A database of the test's own: the log of a shared server never forgets a table."""
    return f"tracked_{abs(hash(request.node.name)) % 10**6}"


@pytest.fixture
def track(server: Server, database: str, tmp_path: Path) -> Track:
    """``track()`` gives a tracker of the database, on the same store each time; by default from the log's present end."""
    server.sql(f"CREATE DATABASE {database}")
    config = load_config(Replica(server, tmp_path, [database]).path)

    def open_tracker(start: str = "latest") -> Tracker:
        return make_tracker(replace(config, source=replace(config.source, start=start)))

    return open_tracker


def _rows(tracker: Tracker, plan: Plan) -> dict[str, int]:
    """How many changelog rows of each table a plan gives."""
    names = {v.version: v.snapshot.name for t in plan.tables for v in t.versions if v.snapshot is not None}
    counts: dict[str, int] = {}
    chunks: list[Chunk] = [chunk for planned in plan.ranges for chunk in tracker.reader.read(planned, plan.tables)]
    for chunk in chunks:
        name = names[chunk.version].table
        counts[name] = counts.get(name, 0) + chunk.rows.num_rows
    return counts


def _reasons(tracker: Tracker) -> dict[str, str]:
    return {name.table: quarantine.reason for _, name, quarantine in tracker.store.stopped()}


def _plan(tracker: Tracker, number: int = 0) -> Plan:
    plan = tracker.plan_after(number)
    assert plan is not None
    return plan


def test_a_statement_that_takes_rows_away_unseen_stops_its_table_and_no_other(
    server: Server, database: str, track: Track
) -> None:
    tracker = track()
    assert tracker.plan_after(0) is None
    server.sql(
        f"CREATE TABLE {database}.p (id INT PRIMARY KEY) PARTITION BY LIST (id) (PARTITION a VALUES IN (1, 2), PARTITION b VALUES IN (3))"
    )
    server.sql(f"CREATE TABLE {database}.q (id INT PRIMARY KEY)")
    server.sql(f"INSERT INTO {database}.p VALUES (1), (3)")
    server.sql(f"ALTER TABLE {database}.p DROP PARTITION a")
    server.sql(f"INSERT INTO {database}.p VALUES (3) ON DUPLICATE KEY UPDATE id = 3")
    server.sql(f"INSERT INTO {database}.q VALUES (1), (2), (3)")

    assert _rows(tracker, _plan(tracker)) == {"p": 2, "q": 3}
    reasons = _reasons(tracker)
    assert set(reasons) == {"p"}
    assert "its rows are not known any more, its schema is: DROP PARTITION" in reasons["p"]
    tracker.close()


def test_a_table_map_that_does_not_fit_stops_its_table_with_both_sides_printed(
    server: Server, database: str, track: Track
) -> None:
    tracker = track()
    assert tracker.plan_after(0) is None
    server.sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a VARCHAR(10))")
    server.sql(f"CREATE TABLE {database}.u (id INT PRIMARY KEY)")
    server.sql(f"INSERT INTO {database}.t VALUES (1, 'x')")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"ALTER TABLE {database}.t ADD COLUMN hidden INT AFTER id")
    server.sql(f"INSERT INTO {database}.t VALUES (2, 7, 'y')")
    server.sql(f"INSERT INTO {database}.u VALUES (1)")

    assert _rows(tracker, _plan(tracker)) == {"t": 1, "u": 1}
    reason = _reasons(tracker)["t"]
    assert "does not fit the schema in force" in reason
    assert "2 columns" in reason or "2" in reason
    assert "3" in reason
    server.sql(f"INSERT INTO {database}.t VALUES (3, 7, 'y')")
    following = _plan(tracker, 1)
    assert _rows(tracker, following) == {}
    tracker.close()


def test_rows_logged_as_a_statement_stop_their_table(server: Server, database: str, track: Track) -> None:
    tracker = track()
    assert tracker.plan_after(0) is None
    server.sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    server.sql(f"CREATE TABLE {database}.u (id INT PRIMARY KEY)")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute(
            "SET SESSION transaction_isolation = 'REPEATABLE-READ'" if server.flavor == "mysql" else "SELECT 1"
        )
        cursor.execute(f"INSERT INTO {database}.t VALUES (1)")
        connection.commit()
    server.sql(f"INSERT INTO {database}.t VALUES (2)")
    server.sql(f"INSERT INTO {database}.u VALUES (2)")

    assert _rows(tracker, _plan(tracker)) == {"u": 1}
    assert "changed by a statement" in _reasons(tracker)["t"]
    assert f"INSERT INTO {database}.t" in _reasons(tracker)["t"]
    tracker.close()


def test_a_change_that_left_no_trace_is_found_at_the_head(server: Server, database: str, track: Track) -> None:
    tracker = track()
    assert tracker.plan_after(0) is None
    server.sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a INT, b INT)")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"ALTER TABLE {database}.t CHANGE a renamed INT")
    plan = _plan(tracker)
    # Once could be a DDL that the server has not logged yet; it counts when it is seen twice.
    tracker.close()
    tracker = track()
    assert tracker.plan_after(plan.number) is None
    assert _reasons(tracker) == {}
    assert tracker.plan_after(plan.number) is None
    assert "renamed" in _reasons(tracker)["t"]
    tracker.close()


def test_tables_from_before_the_start_have_the_captured_schema(server: Server, database: str, track: Track) -> None:
    server.sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a VARCHAR(10) CHARACTER SET latin1)")
    server.sql(f"INSERT INTO {database}.t VALUES (1, 'x')")
    tracker = track()
    assert tracker.plan_after(0) is None
    server.sql(f"INSERT INTO {database}.t VALUES (2, 'ü')")
    server.sql(f"ALTER TABLE {database}.t DROP a, ADD c INT FIRST")
    server.sql(f"INSERT INTO {database}.t VALUES (30, 3)")

    plan = _plan(tracker)
    assert _rows(tracker, plan) == {"t": 2}
    versions = tracker.history.versions(TableName(database, "t"))
    assert [[c.name for c in v.snapshot.columns] for v in versions if v.snapshot] == [["id", "a"], ["c", "id"]]
    tracker.close()


def test_an_altered_table_whose_create_is_not_in_the_log_is_refused(
    server: Server, database: str, track: Track
) -> None:
    """Its schema at the start cannot be known from what it is now."""
    server.sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a INT)")
    tracker = track()
    start = str(tracker.reader.end())
    tracker.close()
    server.sql(f"INSERT INTO {database}.t VALUES (1, 1)")
    server.sql(f"ALTER TABLE {database}.t DROP a, ADD c INT FIRST")
    server.sql(f"CREATE TABLE {database}.u (id INT PRIMARY KEY)")
    server.sql(f"INSERT INTO {database}.u VALUES (1)")

    tracker = track(start)
    assert _rows(tracker, _plan(tracker)) == {"u": 1}
    assert "its schema at the start is not known" in _reasons(tracker)["t"]
    tracker.close()


def test_a_crash_before_a_plan_is_stored_leaves_nothing_of_it(
    server: Server, database: str, track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = track()
    assert tracker.plan_after(0) is None
    server.sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a INT)")
    server.sql(f"ALTER TABLE {database}.t ADD b INT")
    server.sql(f"INSERT INTO {database}.t VALUES (1, 2, 3)")

    recorded = tracker.store.entries()

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "append_plan", crash)
        with pytest.raises(KeyboardInterrupt):
            tracker.plan_after(0)
    assert tracker.store.entries() == recorded
    tracker.close()

    server.sql(f"ALTER TABLE {database}.t ADD c INT")
    tracker = track()
    plan = _plan(tracker)
    assert tracker.store.entries()[: len(recorded)] == recorded
    assert [len(v.snapshot.columns) for t in plan.tables for v in t.versions if v.snapshot] == [2, 3, 4]
    assert _rows(tracker, plan) == {"t": 1}
    tracker.close()
