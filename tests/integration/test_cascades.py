"""Foreign keys whose actions a server does not log, and MariaDB's periods: followed, or stopped, as the server's rows say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from connectors.config import ServerSource
from databases.online_tools import gh_ost
from databases.servers import Server
from logs.binlog_lab import run
from models.source_oracle import SourceOracle
from replicas.tracked import Tracked

ACTIONS = ("ON DELETE CASCADE", "ON UPDATE CASCADE", "ON DELETE SET NULL")
KEY = "FOREIGN KEY (parent) REFERENCES parents (id)"


def _database(server: Server) -> None:
    server.clear()
    run(server, "CREATE DATABASE family", "CREATE TABLE family.parents (id INT PRIMARY KEY)")
    run(server, "INSERT INTO family.parents VALUES (1), (2)")


@pytest.mark.parametrize("action", ACTIONS)
def test_a_child_of_a_cascade_is_right_or_stops_from_the_statement_on(
    server: Server, action: str, tmp_path: Path
) -> None:
    _database(server)
    oracle = SourceOracle(server, tmp_path)
    oracle.run()
    statements = (
        "CREATE TABLE plain (id INT PRIMARY KEY, parent INT, " + KEY + " ON DELETE RESTRICT)",
        "CREATE TABLE later (id INT PRIMARY KEY, parent INT)",
        "CREATE TABLE born (id INT PRIMARY KEY, parent INT, CONSTRAINT f " + KEY + f" {action})",
        f"ALTER TABLE later ADD CONSTRAINT g {KEY} {action}",
        "INSERT INTO born VALUES (1, 1), (2, 2)",
        "INSERT INTO later VALUES (1, 1), (2, 2)",
        "UPDATE parents SET id = 3 WHERE id = 1" if "UPDATE" in action else "DELETE FROM parents WHERE id = 1",
        "ALTER TABLE later DROP FOREIGN KEY g",
        "INSERT INTO plain VALUES (1, 2)",
    )
    run(server, *statements, database="family")
    oracle.run()

    assert {} == oracle.differences("family")
    logs_them = server.name == "mysql9"
    assert (set() if logs_them else {"born", "later"}) == {name.table for name in oracle.stopped}


@pytest.mark.parametrize("name", ["mysql8", "mysql9", "mariadb118"])
def test_a_child_whose_foreign_key_comes_with_a_shadow_or_a_rename_stops(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    _database(server)
    create = "id INT PRIMARY KEY, parent INT"
    run(server, f"CREATE TABLE child ({create})", f"CREATE TABLE plain ({create})", database="family")
    run(server, "INSERT INTO child VALUES (1, 1), (2, 2)", "INSERT INTO plain VALUES (1, 1)", database="family")
    tracked = Tracked.of(server, tmp_path, "family")
    tracked.begin()
    with tracked.tracker() as tracker:
        tracker.catch_up()
    gh_ost(server, "family", "child", f"ADD {KEY} ON DELETE CASCADE, ADD n INT")
    gh_ost(server, "family", "plain", f"ADD {KEY} ON DELETE RESTRICT, ADD n INT")
    run(server, f"CREATE TABLE _born_new ({create}, {KEY} ON DELETE SET NULL)", database="family")
    run(server, "RENAME TABLE _born_new TO born", "INSERT INTO born VALUES (1, 1)", database="family")

    with tracked.tracker() as tracker:
        tracker.catch_up()
        stopped = tracked.stopped(tracker)
    assert ([] if server.name == "mysql9" else ["born", "child"]) == sorted(stopped)
    assert all(reason.startswith("a foreign key changes its rows") for reason in stopped.values())


def test_an_accepted_child_goes_on(mysql8: Server, tmp_path: Path) -> None:
    _database(mysql8)
    tracked = Tracked.of(mysql8, tmp_path, "family")
    source = tracked.config.source
    assert isinstance(source, ServerSource)
    accepted = Tracked(replace(tracked.config, source=replace(source, accept_cascades=("family.born",))))
    accepted.begin()
    run(mysql8, f"CREATE TABLE born (id INT PRIMARY KEY, parent INT, {KEY} ON DELETE CASCADE)", database="family")
    run(mysql8, "INSERT INTO family.born VALUES (1, 1)")

    with accepted.tracker() as tracker:
        assert {"born": [("+A", {"id": 1, "parent": 1})]} == accepted.news(tracker)
        assert {} == accepted.stopped(tracker)


def test_a_key_over_a_period_has_the_periods_columns(mariadb118: Server, tmp_path: Path) -> None:
    mariadb118.clear()
    run(
        mariadb118,
        "CREATE DATABASE spans",
        "CREATE TABLE spans.p1 (id INT, s DATE, e DATE, v INT, PERIOD FOR p (s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS), "
        "UNIQUE u (v, p WITHOUT OVERLAPS))",
        "INSERT INTO spans.p1 VALUES (1, '2020-01-01', '2021-01-01', 5), (1, '2021-01-01', '2022-01-01', 6)",
        "CREATE TABLE spans.p2 (id INT, s DATE, e DATE)",
        "ALTER TABLE spans.p2 ADD PERIOD IF NOT EXISTS FOR p (s, e)",
        "INSERT INTO spans.p2 VALUES (1, '2020-01-01', '2021-01-01')",
    )
    oracle = SourceOracle(mariadb118, tmp_path)
    oracle.run()

    assert {} == oracle.differences("spans")
    assert {} == oracle.stopped
    (table,) = (each for name, each in oracle.mirror.snapshots().items() if name.table == "p1")
    names = {column.id: column.name for column in table.columns}
    assert ["id", "e", "s"] == [names[each] for each in table.primary_key]
    assert [["v", "e", "s"]] == [[names[each] for each in key.columns] for key in table.unique_keys]
    assert [False, False, False, True] == [column.nullable for column in table.columns]
