"""`tables:` of the configuration changes between two runs: what comes into view stops, and so does what leaves it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adversary.lakes import FileLake
from adversary.script import FOLLOW, Script
from connectors.cli import app
from connectors.config import TableFilter
from connectors.recovery.healing import heal
from connectors.tracking.sources import make_tracker
from databases.servers import Server
from historian.history.online_schema_changes import TOOLS, OnlineChanges
from historian.names import TableName
from historian.store import Store
from replicas.replica import Replica

COMES = "the configuration takes it in from here on only: what it held by then is not known"
GOES = "the configuration takes it in no more: its targets stand as they were"


def _look(lake: FileLake, *patterns: str) -> None:
    """A run with other tables."""
    source = replace(lake.config.source, tables=TableFilter(patterns, OnlineChanges(TOOLS)))
    lake.config = replace(lake.config, source=source)
    lake.follow(FOLLOW)


def _stops(lake: FileLake) -> dict[str, str]:
    return {name: why.splitlines()[0] for _, name, why in lake.known().stopped}


def _mirrors(lake: FileLake) -> dict[str, list[tuple[int, int]]]:
    known = lake.known()
    names = {snapshot.table_id: str(name) for name, snapshot in known.catalog.tables.items()}
    return {names[i]: sorted(tuple(row.values()) for row in m.rows.to_pylist()) for i, m in known.mirrors.items()}  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["mysql8", "mariadb118"])
def test_what_comes_into_view_and_what_leaves_it_say_so(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server: Server = request.getfixturevalue(kind)
    server.clear()
    for table in ("c_a.t", "c_a.both", "x_stage.u", "x_stage.empty", "x_stage.again"):
        server.sql(f"CREATE DATABASE IF NOT EXISTS {table.partition('.')[0]}")
        server.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    for table in ("c_a.t", "c_a.both", "x_stage.u"):
        server.sql(f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    lake = FileLake(server, tmp_path, Script(steps=()))
    lake.follow(FOLLOW)
    before = {"c_a.t": [(1, 1), (2, 2)], "c_a.both": [(1, 1), (2, 2)]}
    assert (_stops(lake), _mirrors(lake)) == ({}, before)

    for table in ("c_a.t", "c_a.both", "x_stage.u", "x_stage.empty"):
        server.sql(f"INSERT INTO {table} VALUES (3, 3)")
    server.sql("CREATE TABLE x_stage.fresh (id INT PRIMARY KEY, v INT)")
    server.sql("INSERT INTO x_stage.fresh VALUES (7, 7)")
    server.sql("INSERT INTO x_stage.again VALUES (1, 1)")
    server.sql("DROP TABLE x_stage.again")
    server.sql("CREATE TABLE x_stage.again (v INT, id INT PRIMARY KEY)")
    server.sql("INSERT INTO x_stage.again VALUES (5, 6)")
    stopped = {"c_a.t": GOES, "x_stage.u": COMES, "x_stage.empty": COMES, "x_stage.again": COMES}
    held = {
        "c_a.t": [(1, 1), (2, 2)],
        "c_a.both": [(1, 1), (2, 2), (3, 3)],
        "x_stage.fresh": [(7, 7)],
        "x_stage.again": [(5, 6)],
    }
    _look(lake, "x_stage.*", "c_a.both")
    assert (_stops(lake), _mirrors(lake)) == (stopped, held)
    assert {name: GOES if f"{name} is stopped: {GOES}" in caplog.text else COMES for name in stopped} == stopped

    rebuilt = Store.open("sqlite://")
    store = Store.open(lake.config.history.store)
    rebuilt.restore("attack", store.connector("attack"), store.entries(0), lake.plans)
    assert {str(name): stop.reason.splitlines()[0] for _, name, stop in rebuilt.stopped()} == stopped
    store.close()

    server.sql("UPDATE c_a.t SET v = 9")
    server.sql("DELETE FROM x_stage.u WHERE id = 1")
    _look(lake, "c_*.*", "x_stage.*")
    assert (_stops(lake), _mirrors(lake)) == (stopped, held), "a table that is taken in again lacks what came meanwhile"

    with lake.tracker() as tracker:
        heal(tracker, TableName("x_stage", "u"))
    server.sql("INSERT INTO x_stage.u VALUES (8, 8)")
    lake.follow(FOLLOW)
    assert _mirrors(lake) == held
    assert _stops(lake)["x_stage.u"].startswith("the mirror stands as it was; it lacks what changed behind")


def test_a_table_that_left_is_shown_and_is_no_failure(mysql8: Server, tmp_path: Path) -> None:
    mysql8.sql("CREATE DATABASE viewed")
    for table in ("t", "u"):
        mysql8.sql(f"CREATE TABLE viewed.{table} (id INT PRIMARY KEY)")
    replica = Replica(mysql8, tmp_path, ["viewed"])

    def seen(pattern: str) -> tuple[int, str]:
        """How `status` ends, and what it shows, behind a plan with that pattern."""
        text = replica.path.read_text()
        begin, end = text.index("  tables: ["), text.index("  start:")
        replica.path.write_text(f'{text[:begin]}  tables: ["{pattern}"]\n{text[end:]}')
        mysql8.sql("CREATE TABLE viewed.v (id INT)")
        mysql8.sql("DROP TABLE viewed.v")
        with closing(make_tracker(replica.config)) as tracker:
            tracker.catch_up()
        result = CliRunner().invoke(app, ["status", str(replica.path), "--no-targets"])
        return result.exit_code, " ".join(result.output.split())

    assert seen("viewed.*")[0] == 0
    code, shown = seen("viewed.u")
    assert (code, "viewed.t at" in shown, GOES in shown) == (0, True, True)
    code, shown = seen("viewed.*")
    assert (code, GOES in shown) == (1, True), "taken in again, it is a table that is stopped"
