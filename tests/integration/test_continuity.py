"""Resets, other servers and upgrades on real servers: noticed, and named."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.check import run_checks
from connectors.recovery.healing import skip_lost_log
from databases.servers import Server, start_server
from historian.errors import LogPurged, LogReplaced
from replicas.tracked import Tracked


@pytest.mark.parametrize("kind", ["mysql9", "mariadb118"])
def test_a_log_that_was_reset_and_has_grown_beyond_what_was_read_is_not_taken_for_it(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Its GTIDs are the same numbers again, of other transactions; read on, the first ones would be left out."""
    server: Server = request.getfixturevalue(kind)
    server.sql("CREATE DATABASE again")
    tracked = Tracked.of(server, tmp_path, "again")
    tracked.begin()
    server.sql("CREATE TABLE again.t (id INT PRIMARY KEY)")
    with tracked.tracker() as tracker:
        tracker.catch_up()
    time.sleep(1.1)  # the time of a file is noted in seconds
    server.clear()
    server.sql("CREATE DATABASE again")
    server.sql("CREATE TABLE again.t (id INT PRIMARY KEY)")
    for number in range(20):
        server.sql(f"INSERT INTO again.t VALUES ({number})")
    with tracked.tracker() as tracker, pytest.raises(LogReplaced, match="the log was reset after it was read"):
        tracker.catch_up()
    with tracked.tracker() as tracker, pytest.raises(LogReplaced):
        skip_lost_log(tracker)
    checked = {result.name: result for result in run_checks(tracked.config)}["start position"]
    assert checked.status == "failed"
    assert "the log was reset" in checked.found
    # `heal --lost-log` is refused there, so it is not advised.
    assert checked.mend.startswith("start another connector")
    assert "heal" not in f"{checked.found} {checked.mend}"


@pytest.mark.parametrize(
    "kind", ["mysql9", "mariadb1011", pytest.param("mysql57", marks=pytest.mark.soak), "mysql57 without GTIDs"]
)
@pytest.mark.parametrize("is_new", [True, False], ids=["new server", "with transactions"])
def test_an_idle_server_that_rotates_and_purges_loses_nothing(
    kind: str, is_new: bool, fresh_server: Callable[..., Server], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """What was read to its end may go, whatever was written behind it: nothing."""
    if kind.endswith("without GTIDs"):
        server = fresh_server("mysql57", "gtid_mode=OFF", "enforce_gtid_consistency=OFF")
    else:
        server = request.getfixturevalue(kind)
        server.clear()
    if not is_new:
        server.sql("CREATE DATABASE idle")
    tracked = Tracked.of(server, tmp_path, "idle", start="earliest")
    files = [server.sql("SHOW BINARY LOGS")[-1][0]]
    for _ in range(3):
        with tracked.tracker() as tracker:
            tracker.catch_up()
        server.sql("PURGE BINARY LOGS TO %s", files[-1])
        server.sql("FLUSH BINARY LOGS")
        files.append(server.sql("SHOW BINARY LOGS")[-1][0])
    if is_new:
        server.sql("CREATE DATABASE idle")
    server.sql("CREATE TABLE idle.t (id INT PRIMARY KEY)")
    server.sql("INSERT INTO idle.t VALUES (1)")
    with tracked.tracker() as tracker:
        assert {"t": [("+A", {"id": 1})]} == tracked.news(tracker)


def test_a_server_with_another_history_is_refused_by_name(
    mysql9: Server, fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    mysql9.sql("CREATE DATABASE elsewhere")
    tracked = Tracked.of(mysql9, tmp_path, "elsewhere")
    tracked.begin()
    mysql9.sql("CREATE TABLE elsewhere.t (id INT PRIMARY KEY)")
    with tracked.tracker() as tracker:
        tracker.catch_up()
    other = fresh_server("mysql9")
    other.sql("CREATE DATABASE elsewhere")
    moved = Tracked.of(other, tmp_path, "elsewhere")
    with moved.tracker() as tracker, pytest.raises(LogPurged, match="has not executed the position"):
        tracker.catch_up()
    with moved.tracker() as tracker, pytest.raises(LogPurged, match="has not executed the position"):
        skip_lost_log(tracker)


def test_an_upgrade_is_noted_and_the_log_goes_on(
    fresh_server: Callable[..., Server], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = fresh_server("mariadb1011")
    old.sql("CREATE DATABASE up")
    tracked = Tracked.of(old, tmp_path / "connector", "up")
    tracked.begin()
    old.sql("CREATE TABLE up.t (id INT PRIMARY KEY, a VARCHAR(9))")
    old.sql("INSERT INTO up.t VALUES (1, 'x')")
    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {"t": [("+A", {"id": 1, "a": "x"})]}
        after = tracker.catch_up()
    old.stop()
    assert old.directory is not None
    new = start_server("mariadb118", old.directory, f"server_id={old.port}")
    try:
        tracked = Tracked.of(new, tmp_path / "connector", "up")
        new.sql("ALTER TABLE up.t ADD b INT DEFAULT 2")
        new.sql("INSERT INTO up.t VALUES (2, 'y', 3)")
        with tracked.tracker() as tracker:
            assert tracked.news(tracker, after) == {"t": [("+A", {"id": 2, "a": "y", "b": 3})]}
            assert tracker.plan_after(tracker.catch_up()) is None
            assert tracked.stopped(tracker) == {}
    finally:
        new.kill()
    assert "the server is of version 11.8" in caplog.text
    assert "before 10.11" in caplog.text
