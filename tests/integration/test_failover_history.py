"""A history that goes on on another server: its files differ, and every position of both logs sees what was in force there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.config import load_config
from connectors.tracking.sources import make_tracker
from connectors.tracking.tracker import Tracker
from databases.replication import follow, promote, wait_for
from databases.servers import Server
from historian.errors import LogPurged, PositionAhead, PositionUnknown
from historian.history.history import History
from historian.names import TableName
from historian.positions import LogPosition
from replicas.replica import Replica

T = TableName("moved", "t")


def _columns(server: Server) -> tuple[str, ...]:
    query = "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
    return tuple(str(name) for (name,) in server.sql(f"{query} ORDER BY ordinal_position", *T))


class Walked:
    """Positions of the logs, each with the columns that the server showed there."""

    def __init__(self) -> None:
        self.seen: list[tuple[LogPosition, tuple[str, ...]]] = []

    def go(self, server: Server, tracker: Tracker, *statements: str) -> None:
        for statement in statements:
            server.sql(statement)
            self.seen.append((tracker.reader.end(), _columns(server)))


def _track(tracker: Tracker) -> History:
    last = tracker.store.last_plan()
    number = 0 if last is None else last.number
    while (plan := tracker.plan_after(number)) is not None:
        number = plan.number
    return tracker.history


def _at(history: History, position: LogPosition) -> tuple[str, ...]:
    snapshot = history.at(T, position).snapshot
    assert snapshot is not None
    return tuple(column.name for column in snapshot.columns)


@pytest.mark.parametrize("name", ["mysql9", "mariadb118"])
def test_positions_of_both_logs_see_what_was_in_force_there(
    name: str, fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    primary, other = fresh_server(name), fresh_server(name, "server_id=4711")
    for _ in range(3):
        other.sql("FLUSH BINARY LOGS")  # the files of its log have other numbers
    follow(other, primary)
    config = load_config(Replica(primary, tmp_path, ["moved"]).path)
    moved = replace(config, source=replace(config.source, host=other.host, port=other.port))
    walked = Walked()

    primary.sql("CREATE DATABASE moved")
    with closing(make_tracker(config)) as tracker:
        walked.go(
            primary,
            tracker,
            "CREATE TABLE moved.t (id INT PRIMARY KEY, a INT)",
            "ALTER TABLE moved.t DROP a, ADD b INT FIRST",
            "INSERT INTO moved.t VALUES (1, 2)",
        )
        _track(tracker)
        walked.go(primary, tracker, "ALTER TABLE moved.t ADD c INT")
        wait_for(other, walked.seen[-1][0].gtids)
        promote(other)
        primary.sql("CREATE TABLE moved.only_there (i INT)")
        lost = tracker.reader.end()
    with closing(make_tracker(moved)) as tracker:
        walked.go(
            other,
            tracker,
            "ALTER TABLE moved.t RENAME COLUMN c TO d",
            "INSERT INTO moved.t VALUES (3, 4, 5)",
            "ALTER TABLE moved.t DROP b, ADD e INT FIRST",
        )
        history = _track(tracker)

        for position, columns in walked.seen:
            assert _at(history, position) == columns, position
            assert _at(history, replace(position, file="", offset=0, server="")) == columns, position
            assert _at(history, tracker.reader.locate(replace(position, file="", offset=0, server=""))) == columns
        assert len({position.server for position, _ in walked.seen}) == 2
        assert {entry.server for entry in history.entries} == {position.server for position, _ in walked.seen}
        with pytest.raises(LogPurged):
            tracker.reader.locate(replace(lost, file="", offset=0, server=""))
        if name == "mysql9":  # MariaDB gives the number out again, on the other server
            with pytest.raises(PositionAhead):
                history.at(T, lost)
        with pytest.raises(PositionUnknown, match="whose file"):
            history.at(T, replace(walked.seen[0][0], gtids="", server=""))


def _in(server: Server) -> str:
    ((held,),) = server.sql("SELECT @@gtid_binlog_pos")
    return str(held)


def test_a_number_that_another_server_has_given_out_too_is_not_the_position(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """MariaDB's servers count on from what they know: of two that part, both have the number."""
    lost, other = fresh_server("mariadb118", "server_id=11"), fresh_server("mariadb1011", "server_id=12")
    for server in (lost, other):
        for statement in ("CREATE DATABASE d", "CREATE TABLE d.t (id INT)", "INSERT INTO d.t VALUES (1)"):
            server.sql(statement)
    position = LogPosition(flavor="mariadb", gtids=_in(lost), file="", offset=0)
    config = load_config(Replica(other, tmp_path, ["d"]).path)
    with closing(make_tracker(config)) as tracker:
        for statement in ("DO 0", "INSERT INTO d.t VALUES (2)", "FLUSH BINARY LOGS", "INSERT INTO d.t VALUES (3)"):
            other.sql(statement)
            with pytest.raises(LogPurged, match="expected 0-11-3; found 0-12-3 stands there"):
                tracker.reader.locate(position)
        with closing(other.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute("SET server_id = 11")  # the first one was set up anew, and had its turn again
            cursor.execute("INSERT INTO d.t VALUES (4)")
        with pytest.raises(LogPurged, match="0-12-3 stands there"):
            tracker.reader.locate(position)
        tracker.reader.locate(replace(position, gtids=_in(other)))


def test_a_server_that_was_set_up_from_a_copy_goes_on_where_its_log_begins(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """It has the position's transaction in its tables, and not in its log."""
    other = fresh_server("mariadb118", "server_id=12")
    other.sql("SET GLOBAL gtid_slave_pos = '0-11-7'")
    for statement in ("CREATE DATABASE d", "CREATE TABLE d.t (id INT)", "INSERT INTO d.t VALUES (1)"):
        other.sql(statement)
    config = load_config(Replica(other, tmp_path, ["d"]).path)
    with closing(make_tracker(config)) as tracker:
        at = LogPosition(flavor="mariadb", gtids="0-11-7", file="", offset=0)
        assert tracker.reader.locate(at).file
        other.sql("SET GLOBAL gtid_slave_pos = '0-12-10'")
        assert tracker.reader.locate(at).file
        with pytest.raises(LogPurged, match="0-12-8 stands there"):
            tracker.reader.locate(replace(at, gtids="0-11-6"))
