"""Tables of the engine BLACKHOLE, whose rows are in the log alone: an engine that a session gave is not in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from databases.servers import Server
from logs.binlog_lab import run
from replicas.tracked import Tracked


@pytest.mark.parametrize("name", ["mysql57", "mysql8", "mysql9"])
def test_a_table_without_rows_of_its_own_stops_when_the_database_shows_its_engine(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    server.clear()
    before, behind = (
        ("SET default_storage_engine = BLACKHOLE", f"CREATE TABLE hollow.{t} (id INT PRIMARY KEY)") for t in "ab"
    )
    run(server, "CREATE DATABASE hollow", *before)
    tracked = Tracked.of(server, tmp_path, "hollow")
    tracked.begin()
    run(server, *behind, "INSERT INTO hollow.a VALUES (1)", "INSERT INTO hollow.b VALUES (1)")

    with tracked.tracker() as tracker:
        tracker.stop_at_present_end()
        tracked.news(tracker)
        tracker.confirm_head()
        stopped = tracked.stopped(tracker)
    assert {"a", "b"} == set(stopped)
    assert all("engine BLACKHOLE holds no rows" in why for why in stopped.values())
