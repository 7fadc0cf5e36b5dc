"""Races of statements with a tracker of schemas: DDLs in quick succession, a tracker that was off, tables that come and go.

Each column's name says which values it may hold, and all are of one type: a row that is read with the schema before or
behind its own has values under wrong names, and nothing else would tell.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connectors.config import load_config
from connectors.tracking.sources import make_tracker
from connectors.tracking.tracker import Tracker
from databases.servers import Server
from historian.changelog.operations import physical_name
from historian.names import TableName
from historian.plans.plans import Plan
from replicas.replica import Replica

DATABASE = "races"
SERVERS = ["mysql9", "mariadb118"]
QUICK = 40
TURNS = 2


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    """A MySQL and a MariaDB, with one table and a spare one of its shape."""
    server: Server = request.getfixturevalue(request.param)
    server.clear()
    server.sql(f"CREATE DATABASE {DATABASE}")
    for table in ("t", "spare"):
        server.sql(f"CREATE TABLE {DATABASE}.{table} (id INT AUTO_INCREMENT PRIMARY KEY, x0 INT, y0 INT)")
    return server


@pytest.fixture
def track(server: Server, tmp_path: Path) -> Callable[[], Tracker]:
    """``track()`` gives a tracker of the database, on the same store each time."""
    config = load_config(Replica(server, tmp_path, [DATABASE]).path)
    return lambda: make_tracker(config)


def _rows(tracker: Tracker, plan: Plan) -> Iterator[dict[str, int]]:
    """Rows of a plan by the column names of the version that they are decoded with."""
    snapshots = {(t.table_id, v.version): v.snapshot for t in plan.tables for v in t.versions}
    for planned in plan.ranges:
        for chunk in tracker.reader.read(planned, plan.tables):
            snapshot = snapshots[chunk.table_id, chunk.version]
            assert snapshot is not None
            columns = {c.name: chunk.rows.column(physical_name(c.id)).to_pylist() for c in snapshot.columns}
            yield from (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def _rest(tracker: Tracker, number: int) -> Iterator[Plan]:
    while (plan := tracker.plan_after(number)) is not None:
        yield plan
        number = plan.number


def _check(rows: list[dict[str, int]], expected: int) -> None:
    """Column x7 or y7 holds values of 7, doubled for y."""
    assert len(rows) == expected
    for row in rows:
        for name, value in row.items():
            if name != "id":
                generation = int(name[1:])
                assert value == generation * (2 if name[0] == "y" else 1), row


def _insert(server: Server, table: str, x: int, y: int) -> None:
    server.sql(f"INSERT INTO {DATABASE}.{table} (x{x}, y{y}) VALUES ({x}, {2 * y})")


def test_ddls_in_quick_succession_are_each_in_force_for_their_own_rows(
    server: Server, track: Callable[[], Tracker]
) -> None:
    """Plans end wherever the log happens to, while a session alters the table and writes to it without a pause."""
    altered = threading.Event()

    def write() -> None:
        with closing(server.connect(database=DATABASE)) as connection, connection.cursor() as cursor:
            for n in range(1, QUICK + 1):
                # Shape and types stay, names and their order do not.
                cursor.execute(f"ALTER TABLE t DROP x{n - 1}, ADD x{n} INT {'FIRST' if n % 2 else ''}")
                cursor.execute(f"ALTER TABLE t CHANGE y{n - 1} y{n} INT")
                cursor.execute(f"INSERT INTO t (x{n}, y{n}) VALUES ({n}, {2 * n})")
                cursor.execute("DELETE FROM t")
        altered.set()

    writer = threading.Thread(target=write)
    rows: list[dict[str, int]] = []
    with closing(track()) as tracker:
        number = plans = 0
        writer.start()
        done = False
        while not done:
            done = altered.is_set()
            for plan in _rest(tracker, number):
                number, plans = plan.number, plans + bool(plan.tables)
                rows += _rows(tracker, plan)
        writer.join()
        versions = tracker.history.versions(TableName(DATABASE, "t"))

    _check(rows, 2 * QUICK)
    assert len(versions) == 1 + 2 * QUICK
    assert plans > 1


def test_a_tracker_that_was_off_reads_what_happened_meanwhile_as_it_happened(
    server: Server, track: Callable[[], Tracker]
) -> None:
    rows: list[dict[str, int]] = []
    number = 0
    for turn in range(TURNS):
        x = 3 * turn
        with closing(track()) as tracker:
            for plan in _rest(tracker, number):
                rows += _rows(tracker, plan)
                number = plan.number
        # Off: back and forth, by the same name and by others, and two tables change places.
        _insert(server, "t", x, x)
        server.sql(f"ALTER TABLE {DATABASE}.t DROP x{x}, ADD x{x} INT")
        _insert(server, "t", x, x)
        server.sql(f"ALTER TABLE {DATABASE}.t DROP x{x}, ADD x{x + 1} INT FIRST")
        _insert(server, "t", x + 1, x)
        server.sql(f"ALTER TABLE {DATABASE}.t CHANGE y{x} y{x + 3} INT, CHANGE x{x + 1} x{x + 2} INT AFTER id")
        _insert(server, "t", x + 2, x + 3)
        server.sql(f"ALTER TABLE {DATABASE}.spare CHANGE x{x} x{x + 3} INT, CHANGE y{x} y{x + 3} INT")
        server.sql(
            f"RENAME TABLE {DATABASE}.t TO {DATABASE}.s, {DATABASE}.spare TO {DATABASE}.t, {DATABASE}.s TO {DATABASE}.spare"
        )
        server.sql(f"ALTER TABLE {DATABASE}.spare CHANGE x{x + 2} x{x + 3} INT")
        _insert(server, "t", x + 3, x + 3)
        _insert(server, "spare", x + 3, x + 3)
    with closing(track()) as tracker:
        for plan in _rest(tracker, number):
            rows += _rows(tracker, plan)
        versions = tracker.history.versions(TableName(DATABASE, "t"))

    _check(rows, TURNS * 6)
    assert len({version.table_id for version in versions}) == 2


def test_tables_that_come_and_go_all_the_while_keep_no_connector_from_beginning(server: Server, tmp_path: Path) -> None:
    """Some applications make a table for each report: no two looks at the schemas are the same."""
    over = threading.Event()

    def churn(name: str) -> None:
        with closing(server.connect(database=DATABASE)) as connection, connection.cursor() as cursor:
            while not over.is_set():
                cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)")
                cursor.execute(f"DROP TABLE {name}")

    threads = [threading.Thread(target=churn, args=(f"report{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        config = load_config(Replica(server, tmp_path, [DATABASE]).path)
        with closing(make_tracker(config, start="initial")) as tracker:
            versions = tracker.history.versions(TableName(DATABASE, "t"))
    finally:
        over.set()
        for thread in threads:
            thread.join()

    assert [(v.snapshot and [c.name for c in v.snapshot.columns]) for v in versions] == [["id", "x0", "y0"]]
