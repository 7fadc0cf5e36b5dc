"""What may happen amid a first copy: to the server, to a connection, to the log, to a table. The next run ends with what the source holds."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connectors.backfill import selection
from connectors.backfill.selection import select_rows
from connectors.readers.binlog.selected.failures import SelectInterrupted
from connectors.readers.binlog.transport.connection import ConnectionLost
from databases.servers import Server
from replicas.plan_ends import assert_lake_is_what_a_server_holds
from replicas.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")
ROWS = 600
LONGEST_S = 60
Fault = Callable[[Server, Any], object]


@pytest.fixture(params=["mysql8", "mariadb118"])
def source(request: pytest.FixtureRequest, fresh_server: Callable[..., Server]) -> Server:
    """Tables with keys of numbers and of texts, and one without; one is of more rows than the network holds."""
    server = fresh_server(request.param)
    for statement in (
        "CREATE DATABASE c",
        "CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(20))",
        "CREATE TABLE c.s (k VARCHAR(20) PRIMARY KEY, v INT)",
        "CREATE TABLE c.bag (a INT, b VARCHAR(10))",
    ):
        server.sql(statement)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO c.t VALUES (%s, %s)", [(i, f"v{i}") for i in range(ROWS)])
        cursor.executemany("INSERT INTO c.s VALUES (%s, %s)", [(f"k{i}", i) for i in range(ROWS)])
        cursor.executemany("INSERT INTO c.bag VALUES (%s, 'x')", [(i % 40,) for i in range(200)])
    return server


@pytest.fixture
def lake(source: Server, tmp_path: Path) -> Replica:
    return Replica(source, tmp_path / "lake", ["c"], start="initial", backfill="{chunk_rows: 200, connections: 2}")


def _widen(server: Server) -> None:
    """A row of ``c.t`` is so large from now on that a server is still sending a chunk while its first rows are read."""
    server.sql("ALTER TABLE c.t ADD COLUMN pad MEDIUMTEXT")
    server.sql("UPDATE c.t SET pad = REPEAT('x', 80000)")


def _change(server: Server, turn: int) -> None:
    """Rows that are copied, rows that are not, and those between come, change, move and go."""
    server.sql(f"UPDATE c.t SET v = 'turn {turn}' WHERE id % 7 = {turn % 7}")
    server.sql(f"DELETE FROM c.t WHERE id % 50 = {turn}")
    server.sql(f"INSERT INTO c.t (id, v) VALUES ({ROWS + turn}, 'new'), ({-1 - turn}, 'new')")
    server.sql(f"UPDATE c.t SET id = id + 10000 WHERE id = {turn * 3 + 1}")
    server.sql(f"UPDATE c.s SET k = CONCAT('a', k) WHERE v % 90 = {turn}")
    server.sql(f"DELETE FROM c.bag WHERE a = {turn} LIMIT 2")
    server.sql(f"INSERT INTO c.bag VALUES ({turn}, 'y')")


class Faults:
    """Has something happen at a step of a copy."""

    def __init__(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        self._server = server
        self._patch = monkeypatch
        self.happened = 0

    def amid_rows(self, fault: Fault, *, table: str = "t", chunk: int = 2) -> None:
        """Behind the first rows of the SELECT number *chunk* of a table; gets the connection that reads them."""
        selects = 0

        def rows(connection: Any, version: Any, **named: Any) -> Iterator[Any]:
            nonlocal selects
            is_wanted = version.snapshot.name.table == table
            selects += is_wanted
            is_now = is_wanted and selects == chunk
            named |= {"max_chunk_rows": 10} if is_now else {}
            for at, read in enumerate(select_rows(connection, version, **named)):
                yield read
                if is_now and at == 0:
                    self._happen(fault, connection)

        self._patch.setattr(selection, "select_rows", rows)

    def before(self, step: str, fault: Fault, *, time: int | None = None) -> None:
        """Before that step of a plan's copy is taken, the time number *time*, else each time."""
        real, taken = getattr(selection, step), itertools.count(1)

        def later(*arguments: Any, **named: Any) -> Any:
            if time in (None, next(taken)):
                self._happen(fault, None)
            return real(*arguments, **named)

        self._patch.setattr(selection, step, later)

    def _happen(self, fault: Fault, connection: Any) -> None:
        self.happened += 1
        fault(self._server, connection)


@pytest.fixture
def faults(source: Server, monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(source, monkeypatch)


def _assert_whole(server: Server, lake: Replica, spark: SparkSession) -> None:
    """Runs to the end once more; then the lake is what the server holds."""
    for _ in range(2):
        assert {} == lake.run(spark)
    assert assert_lake_is_what_a_server_holds(server, lake.reading(spark), "^c$")


def _crash(server: Server, _: Any) -> None:
    _change(server, 1)
    server.kill()


def _kill(server: Server, connection: Any) -> None:
    _change(server, 1)
    server.sql(f"KILL {connection.thread_id()}")


def _kill_query(server: Server, connection: Any) -> None:
    _change(server, 1)
    server.sql(f"KILL QUERY {connection.thread_id()}")


@pytest.mark.parametrize("fault", [_crash, _kill, _kill_query])
def test_a_select_that_ends_amid_its_rows_is_made_again(
    fault: Fault, source: Server, lake: Replica, faults: Faults, spark: SparkSession
) -> None:
    _widen(source)
    faults.amid_rows(fault)
    with pytest.raises((ConnectionLost, SelectInterrupted)):
        lake.run(spark)
    assert faults.happened == 1
    if fault is _crash:
        source.restart()  # in this thread, with which it ends
    _change(source, 2)
    _assert_whole(source, lake, spark)


@pytest.mark.parametrize("step", ["snapshot_behind", "changes_behind"])
def test_a_server_that_crashes_between_the_steps_of_a_copy_is_asked_again(
    step: str, source: Server, lake: Replica, faults: Faults, spark: SparkSession
) -> None:
    faults.before(step, _crash, time=2)
    with pytest.raises(ConnectionLost):
        lake.run(spark)
    assert faults.happened == 1
    source.restart()
    _change(source, 2)
    _assert_whole(source, lake, spark)


def test_a_table_that_is_dropped_amid_its_rows_is_gone_and_others_are_copied(
    source: Server, lake: Replica, faults: Faults, spark: SparkSession
) -> None:
    _widen(source)
    dropping = threading.Thread(target=source.sql, args=("DROP TABLE c.t",))

    def drop(server: Server, _: Any) -> None:
        """The statement waits for the SELECT's transaction."""
        dropping.start()
        waits = "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata%'"
        while server.sql(waits) == ((0,),):
            assert dropping.is_alive()

    faults.amid_rows(drop)
    faults.before("changes_behind", lambda *_: dropping.ident and dropping.join(LONGEST_S))
    assert {} == lake.run(spark)
    assert dropping.ident is not None
    assert not dropping.is_alive()
    source.sql("CREATE TABLE c.t (id INT PRIMARY KEY, w INT)")
    source.sql("INSERT INTO c.t VALUES (1, 1)")
    _assert_whole(source, lake, spark)


def test_a_table_that_is_made_anew_before_its_rows_are_read_has_its_new_rows_alone(
    source: Server, lake: Replica, faults: Faults, spark: SparkSession
) -> None:
    def swap(server: Server, _: Any) -> None:
        for statement in (
            "DROP TABLE c.t",
            "CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(20))",
            "INSERT INTO c.t VALUES (1, 'other'), (1000, 'other')",
            "TRUNCATE TABLE c.bag",
            "INSERT INTO c.bag VALUES (5, 'other')",
        ):
            server.sql(statement)

    faults.before("snapshot_behind", swap, time=2)
    assert {} == lake.run(spark)
    assert faults.happened == 1
    _assert_whole(source, lake, spark)
