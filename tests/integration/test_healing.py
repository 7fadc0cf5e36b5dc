"""Stopped tables go on, on real servers: captured anew behind a gap, or without one where a person says what happened."""

from __future__ import annotations

import pytest

from connectors.recovery.healing import heal, skip_lost_log
from connectors.recovery.overriding import override
from databases.servers import Server
from historian.errors import ConfigError, LogPurged, PositionUnknown, SourceError, UnknownTable
from historian.names import TableName
from replicas.tracked import Tracked, unlogged
from workload.renamed_tables import understand_nothing_strange


@pytest.fixture(params=["mysql9", "mariadb118"])
def source(request: pytest.FixtureRequest) -> Server:
    """A server of each kind."""
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def _strange(monkeypatch: pytest.MonkeyPatch) -> None:
    understand_nothing_strange(monkeypatch)


def _stop_at_a_statement(source: Server, database: str) -> None:
    source.sql(f"CREATE TABLE {database}.p (id INT PRIMARY KEY, a INT)")
    source.sql(f"CREATE TABLE {database}.q (id INT PRIMARY KEY)")
    source.sql(f"INSERT INTO {database}.p VALUES (1, 10), (3, 30)")
    source.sql(f"ALTER TABLE {database}.p /* strange */ ADD c INT DEFAULT 3 AFTER id")
    source.sql(f"INSERT INTO {database}.p VALUES (4, 3, 40)")


@pytest.mark.usefixtures("_strange")
def test_a_table_captured_anew_goes_on_from_there_and_what_it_was_meanwhile_is_unknown(
    source: Server, database: str, tracked: Tracked
) -> None:
    name = TableName(database, "p")
    _stop_at_a_statement(source, database)
    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {"p": [("+A", {"id": 1, "a": 10}), ("+A", {"id": 3, "a": 30})]}
        assert set(tracked.stopped(tracker)) == {"p"}
        before, last = tracker.history.versions(name)[0], tracker.store.last_plan()
        assert before.snapshot is not None
        assert last is not None
        source.sql(f"ALTER TABLE {database}.p ADD b INT DEFAULT 7, MODIFY a BIGINT")
        source.sql(f"INSERT INTO {database}.q VALUES (1)")
        inside = tracker.reader.end()
        source.sql(f"INSERT INTO {database}.q VALUES (2)")

        done = heal(tracker, name)

        assert done.since is not None
        source.sql(f"INSERT INTO {database}.p VALUES (5, 3, 50, 51)")
    with tracked.tracker() as tracker:
        assert tracked.stopped(tracker) == {}
        assert tracked.news(tracker, last.number) == {
            "q": [("+A", {"id": 1}), ("+A", {"id": 2})],
            "p": [("+A", {"id": 5, "c": 3, "a": 50, "b": 51})],
        }
        history = tracker.history
        now = history.at(name, tracker.reader.end())
        assert now.snapshot is not None
        old = {column.name: column.id for column in before.snapshot.columns}
        new = {column.name: column.id for column in now.snapshot.columns}
        assert (now.table_id, new["id"], new["a"]) == (before.table_id, old["id"], old["a"])
        assert new["b"] not in old.values()
        assert history.at(name, done.since).snapshot == before.snapshot
        with pytest.raises(PositionUnknown):
            history.at(name, inside)
        assert history.at(TableName(database, "q"), inside).snapshot is not None


def test_only_a_stopped_table_is_healed(source: Server, database: str, tracked: Tracked) -> None:
    source.sql(f"CREATE TABLE {database}.q (id INT PRIMARY KEY)")
    with tracked.tracker() as tracker:
        tracker.catch_up()
        with pytest.raises(UnknownTable, match="has not stopped"):
            heal(tracker, TableName(database, "q"))
        with pytest.raises(SourceError, match="no log is lost"):
            skip_lost_log(tracker)


@pytest.mark.usefixtures("_strange")
def test_what_a_person_says_of_a_statement_loses_no_row(source: Server, database: str, tracked: Tracked) -> None:
    name = TableName(database, "p")
    _stop_at_a_statement(source, database)
    source.sql(f"ALTER TABLE {database}.p ADD b INT DEFAULT 7")
    source.sql(f"INSERT INTO {database}.p VALUES (5, 3, 50, 51)")
    source.sql(f"INSERT INTO {database}.q VALUES (1)")
    with tracked.tracker() as tracker:
        assert tracked.news(tracker)["q"] == [("+A", {"id": 1})]
        last = tracker.store.last_plan()
        assert last is not None
        with pytest.raises(ConfigError, match="other tables"):
            override(tracker, name, f"DROP TABLE {database}.q")
        with pytest.raises(ConfigError, match="cannot replace the one in the log"):
            override(tracker, name, "ALTER TABLE p FROBNICATE")
    with tracked.tracker() as tracker:
        assert override(tracker, name, "ALTER TABLE p ADD c INT DEFAULT 3 AFTER id").since is None
        assert tracked.news(tracker, last.number) == {
            "p": [("+A", {"id": 4, "c": 3, "a": 40}), ("+A", {"id": 5, "c": 3, "a": 50, "b": 51})]
        }
        source.sql(f"UPDATE {database}.p SET b = 52 WHERE id = 5")
    with tracked.tracker() as tracker:
        plan = tracker.store.last_plan()
        assert plan is not None
        assert plan.number == last.number + 1
        assert [edit.kind for v in plan.tables[0].versions for edit in v.edits] == [
            "resume_table",
            "add_column",
            "add_column",
        ]
        assert tracked.stopped(tracker) == {}
        assert tracked.news(tracker, plan.number) == {
            "p": [("-C", {"id": 5, "c": 3, "a": 50, "b": 51}), ("+C", {"id": 5, "c": 3, "a": 50, "b": 52})]
        }


def test_a_change_without_a_trace_is_said_and_checked_against_the_rows(
    source: Server, database: str, tracked: Tracked
) -> None:
    name = TableName(database, "t")
    source.sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a VARCHAR(10))")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 'x')")
    unlogged(source, f"ALTER TABLE {database}.t ADD hidden INT AFTER id")
    source.sql(f"INSERT INTO {database}.t VALUES (2, 7, 'y')")
    source.sql(f"UPDATE {database}.t SET hidden = 8 WHERE id = 2")
    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {"t": [("+A", {"id": 1, "a": "x"})]}
        last = tracker.store.last_plan()
        assert last is not None
        with pytest.raises(ConfigError, match="do not fit"):
            override(tracker, name, "ALTER TABLE t ADD hidden INT")
    with tracked.tracker() as tracker:
        override(tracker, name, "ALTER TABLE t ADD hidden INT AFTER id")
        assert tracked.news(tracker, last.number) == {
            "t": [
                ("+A", {"id": 2, "hidden": 7, "a": "y"}),
                ("-C", {"id": 2, "hidden": 7, "a": "y"}),
                ("+C", {"id": 2, "hidden": 8, "a": "y"}),
            ]
        }


def test_a_table_whose_create_left_no_trace_begins_with_its_first_rows(
    source: Server, database: str, tracked: Tracked
) -> None:
    name = TableName(database, "t")
    source.sql(f"CREATE TABLE {database}.s (id INT PRIMARY KEY)")
    source.sql(f"INSERT INTO {database}.s VALUES (1)")
    unlogged(source, f"CREATE TABLE {database}.t (id INT PRIMARY KEY, b INT)")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 2)")
    with tracked.tracker() as tracker:
        assert set(tracked.news(tracker)) == {"s"}
        assert "CREATE TABLE is not in the log" in tracked.stopped(tracker)["t"]
        last = tracker.store.last_plan()
        assert last is not None
        override(tracker, name, "CREATE TABLE t (id INT PRIMARY KEY, b INT)")
        assert tracked.news(tracker, last.number) == {"t": [("+A", {"id": 1, "b": 2})]}
        assert tracked.stopped(tracker) == {}


def test_log_that_was_purged_before_it_was_read_is_a_gap_by_choice(
    source: Server, database: str, tracked: Tracked
) -> None:
    name = TableName(database, "t")
    source.sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a INT)")
    source.sql(f"CREATE TABLE {database}.gone (id INT PRIMARY KEY)")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 1)")
    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {"t": [("+A", {"id": 1, "a": 1})]}
        last = tracker.store.last_plan()
        assert last is not None
    source.sql(f"ALTER TABLE {database}.t ADD b INT")
    source.sql(f"INSERT INTO {database}.t VALUES (2, 2, 2)")
    source.sql(f"DROP TABLE {database}.gone")
    source.sql(f"CREATE TABLE {database}.u (id INT PRIMARY KEY)")
    with tracked.tracker() as tracker:
        inside = tracker.reader.end()
    source.sql("FLUSH BINARY LOGS")
    source.sql(f"INSERT INTO {database}.t VALUES (3, 3, 3)")
    source.sql("FLUSH BINARY LOGS")
    last_file = source.sql("SHOW BINARY LOGS")[-1][0]
    # A server keeps a file while its storage engine may need it, or until it notices that a dump of it has ended.
    while source.sql("SHOW BINARY LOGS")[0][0] != last_file:
        source.sql("FLUSH BINARY LOGS")
        source.sql(f"PURGE BINARY LOGS TO '{last_file}'")
    with tracked.tracker() as tracker, pytest.raises(LogPurged, match=r"purged|not in the log"):
        tracker.plan_after(last.number)
    with tracked.tracker() as tracker:
        done = skip_lost_log(tracker)
        assert done.since == last.end
        source.sql(f"INSERT INTO {database}.t VALUES (4, 4, 4)")
        source.sql(f"INSERT INTO {database}.u VALUES (4)")
    with tracked.tracker() as tracker:
        assert tracked.news(tracker, last.number) == {
            "t": [("+A", {"id": 4, "a": 4, "b": 4})],
            "u": [("+A", {"id": 4})],
        }
        assert tracked.stopped(tracker) == {}
        assert tracker.history.at(name, last.end).snapshot is not None
        for table in ("t", "u", "gone", "never"):
            with pytest.raises(PositionUnknown):
                tracker.history.at(TableName(database, table), inside)
        with pytest.raises(UnknownTable):
            tracker.history.at(TableName(database, "gone"), tracker.reader.end())
