"""Binlog files beyond 4 GiB, as one large transaction makes them: offsets have more than the four bytes of the protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from connectors.readers.binlog.transport import dump, dump_places
from connectors.tracking.tracker import Tracker
from databases.servers import Server
from historian.plans.plans import Plan
from replicas.tracked import Tracked, delivered

GIB_4 = 1 << 32
BLOB_BYTES = 60 << 20
BLOBS = 72
NO_GTIDS = ("gtid_mode=OFF", "enforce_gtid_consistency=OFF")


def _fill(server: Server, ended: threading.Event) -> None:
    with closing(server.connect(database="big")) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for number in range(BLOBS):
            cursor.execute(f"INSERT INTO filler VALUES ({number}, REPEAT('x', {BLOB_BYTES}))")
        cursor.execute("INSERT INTO t VALUES (1000000, 1)")
        cursor.execute("COMMIT")
    ended.set()


@pytest.mark.soak
@pytest.mark.parametrize(
    "build,options", [("mysql8", ()), ("mysql57", NO_GTIDS), ("mysql57", ()), ("mariadb118", ())], ids=str
)
def test_a_connector_goes_on_behind_4_gib(
    build: str, options: tuple[str, ...], fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = fresh_server(build, "max_allowed_packet=1G", *options)
    server.sql("CREATE DATABASE big")
    server.sql("CREATE TABLE big.t (id INT PRIMARY KEY, v INT)")
    engine = "InnoDB" if server.flavor == "mariadb" else "BLACKHOLE"
    server.sql(f"CREATE TABLE big.filler (id INT PRIMARY KEY, v LONGBLOB) ENGINE={engine}")
    tracked = Tracked.of(server, tmp_path / "connector", "big")
    tracked.begin()
    ended = threading.Event()
    filling = threading.Thread(target=_fill, args=(server, ended))
    filling.start()
    with closing(server.connect(database="big", autocommit=True)) as connection, connection.cursor() as cursor:
        number = 0
        # Those that wait while the large transaction is written stand behind it, some before the file ends.
        while not ended.wait(0.002):
            number += 1
            cursor.execute("INSERT INTO t VALUES (%s, 0)", (number,))
    filling.join()
    sizes = {name: int(size) for name, size, *_ in server.sql("SHOW BINARY LOGS")}
    assert max(sizes.values()) > GIB_4

    keys: list[int] = []
    ends: list[int] = []
    for _ in range(4):
        # Each a run of its own, which knows no place in the log but that of the last plan.
        with tracked.tracker() as tracker:
            while (plan := tracker.plan_after(len(ends), limit_bytes=1 << 30)) is not None:
                ends.append(plan.end.offset)
                keys += _keys(tracker, plan)
                if plan.end.offset > GIB_4:
                    break
        server.sql("INSERT INTO big.t SELECT MAX(id) + 1, 0 FROM big.t")
    with tracked.tracker() as tracker:
        while (plan := tracker.plan_after(len(ends))) is not None:
            ends.append(plan.end.offset)
            keys += _keys(tracker, plan)
        assert tracked.stopped(tracker) == {}
    assert max(ends) > GIB_4
    assert sorted(keys) == [key for (key,) in server.sql("SELECT id FROM big.t ORDER BY id")]


def _keys(tracker: Tracker, plan: Plan) -> list[int]:
    tables = [
        table for table in plan.tables if table.versions[0].snapshot and table.versions[0].snapshot.name.table == "t"
    ]
    return [
        key
        for planned in plan.ranges
        for chunk in tracker.reader.read(planned, tables)
        for key in chunk.rows.column(chunk.rows.num_columns - 2).to_pylist()
    ]


def test_a_dump_passes_over_what_stands_before_an_offset_that_the_protocol_cannot_name(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a protocol that can name the first events of a file alone."""
    server.clear()
    database = "passed_over"
    server.sql(f"CREATE DATABASE {database}")
    tracked = Tracked.of(server, tmp_path / "connector", database)
    tracked.begin()
    expected: list[int] = []
    server.sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
    for module in (dump, dump_places):
        monkeypatch.setattr(module, "MAX_OFFSET", 400)
    number = 0
    for key in range(9):
        server.sql(f"INSERT INTO {database}.t VALUES ({key}, 0)")
        if key in (3, 6):
            server.sql("FLUSH BINARY LOGS")
        expected.append(key)
        with tracked.tracker() as tracker:
            while (plan := tracker.plan_after(number)) is not None:
                number = plan.number
                found = [key for rows in delivered(tracker, plan).values() for key in rows]
                assert [("+A", {"id": expected[-1], "v": 0})] == found
            assert tracker.reader.end().covers(tracker.store.last_plan().end)
    assert number == len(expected)
