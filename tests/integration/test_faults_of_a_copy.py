"""What may happen amid a first copy: to the server, to a connection, to the log, to a table. The next run ends with what the source holds."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

from connectors.backfill import selecting, selection
from connectors.backfill.keys import literals
from connectors.backfill.selecting import select_rows
from connectors.readers.binlog.transport.connection import ConnectionLost
from databases.replication import follow, promote, wait_for
from databases.servers import Server, global_setting
from historian.errors import LogPurged, SourceError
from logs.binlog_lab import live_reader
from replicas.copied_tables import change, make_tables, widen
from replicas.plan_ends import assert_lake_is_what_a_server_holds
from replicas.replica import Replica
from replicas.replica_validation import assert_changelogs_are_valid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")
LONGEST_S = 60
Fault = Callable[[Server, Any], object]


def _servers(first: str, second: str) -> pytest.MarkDecorator:
    """On one of the two kinds of servers; `make soak` takes the other one too."""
    return pytest.mark.parametrize("source", [first, pytest.param(second, marks=pytest.mark.soak)], indirect=True)


MYSQL_FIRST, MARIADB_FIRST = _servers("mysql8", "mariadb118"), _servers("mariadb118", "mysql8")


@pytest.fixture(params=["mysql8", "mariadb118"])
def source(request: pytest.FixtureRequest, fresh_server: Callable[..., Server]) -> Server:
    server = fresh_server(request.param)
    make_tables(server)
    return server


@pytest.fixture
def lake(source: Server, tmp_path: Path) -> Replica:
    return Replica(source, tmp_path / "lake", ["c"], start="initial", backfill="{chunk_rows: 200, connections: 2}")


class Faults:
    """Has something happen at a step of a copy."""

    def __init__(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        self._server = server
        self._patch = monkeypatch
        self.happened = 0

    def amid_rows(self, fault: Fault, *, table: str = "t", chunk: int = 2) -> None:
        """Behind the first rows of the SELECT of a table that begins as number *chunk*; gets the connection that reads them."""
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

        self._patch.setattr(selecting, "select_rows", rows)

    def before(self, step: str, fault: Fault, *, number: int | None = None) -> None:
        """Before that step of a plan's copy is taken, the time that *number* says, else each time."""
        owner = selecting if step == "snapshot_behind" else selection
        real, taken = getattr(owner, step), itertools.count(1)

        def later(*arguments: Any, **named: Any) -> Any:
            if number in (None, next(taken)):
                self._happen(fault, None)
            return real(*arguments, **named)

        self._patch.setattr(owner, step, later)

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
    change(server, 1)
    server.kill()


def _kill(server: Server, connection: Any) -> None:
    change(server, 1)
    server.sql(f"KILL {connection.thread_id()}")


@MYSQL_FIRST
@pytest.mark.parametrize("fault", [_crash, _kill])
def test_a_connection_that_ends_amid_rows_is_made_again_with_the_next_run(
    fault: Fault, source: Server, lake: Replica, faults: Faults, spark: SparkSession
) -> None:
    widen(source)
    faults.amid_rows(fault)
    with pytest.raises(ConnectionLost):
        lake.run(spark)
    assert faults.happened == 1
    if fault is _crash:
        source.restart()  # in this thread, with which it ends
    change(source, 2)
    _assert_whole(source, lake, spark)


def test_a_select_that_the_server_breaks_off_is_made_again_with_a_later_plan(
    source: Server, lake: Replica, faults: Faults, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    def kill_query(server: Server, connection: Any) -> None:
        change(server, 1)
        server.sql(f"KILL QUERY {connection.thread_id()}")

    widen(source)
    faults.amid_rows(kill_query)
    with caplog.at_level("INFO"):
        assert {} == lake.run(spark)
    assert faults.happened == 1
    assert "read again with the next plan: the server broke a SELECT off" in caplog.text
    _assert_whole(source, lake, spark)


@MARIADB_FIRST
@pytest.mark.parametrize("step", ["snapshot_behind", "changes_behind"])
def test_a_server_that_crashes_between_the_steps_of_a_copy_is_asked_again(
    step: str, source: Server, lake: Replica, faults: Faults, spark: SparkSession
) -> None:
    faults.before(step, _crash, number=2)
    with pytest.raises(ConnectionLost):
        lake.run(spark)
    assert faults.happened == 1
    source.restart()
    change(source, 2)
    _assert_whole(source, lake, spark)


@MARIADB_FIRST
@pytest.mark.parametrize("is_ahead", [True, False])
def test_a_copy_goes_on_at_the_server_that_took_over(
    is_ahead: bool,
    source: Server,
    lake: Replica,
    faults: Faults,
    fresh_server: Callable[..., Server],
    spark: SparkSession,
) -> None:
    """Places in the log of one server say nothing of the other's, be they lower or higher. Nobody writes before the copy goes on."""
    other = fresh_server(source.name)
    for _ in range(5):
        (other if is_ahead else source).sql("FLUSH BINARY LOGS")
    follow(other, source)

    def hand_over(server: Server, _: Any) -> None:
        with closing(live_reader(server)) as reader:
            wait_for(other, reader.end().gtids)
        server.kill()

    faults.before("changes_behind", hand_over, number=3)
    with pytest.raises(ConnectionLost):
        lake.run(spark)
    promote(other)
    lake.path.write_text(lake.path.read_text().replace(f"port: {source.port}", f"port: {other.port}"))
    assert {} == lake.run(spark)
    change(other, 2)
    _assert_whole(other, lake, spark)


@MARIADB_FIRST
def test_a_table_that_is_dropped_amid_its_rows_is_gone_and_others_are_copied(
    source: Server, lake: Replica, faults: Faults, spark: SparkSession
) -> None:
    widen(source)
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


@MYSQL_FIRST
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

    faults.before("snapshot_behind", swap, number=2)
    assert {} == lake.run(spark)
    assert faults.happened == 1
    _assert_whole(source, lake, spark)


@MYSQL_FIRST
def test_a_table_that_is_locked_is_copied_later_and_others_go_on(
    source: Server, lake: Replica, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(literals, "LOCK_WAIT_S", 1)
    with closing(source.connect()) as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLES c.t WRITE")
        source.sql("UPDATE c.s SET v = v + 1 WHERE v % 10 = 0")
        assert {} == lake.run(spark)
        held = spark.read.format("delta").load(str(lake.lake / "c_s"))
        assert sorted(source.sql("SELECT k, v FROM c.s")) == sorted((row.k, row.v) for row in held.collect())
    change(source, 1)
    _assert_whole(source, lake, spark)


def test_a_time_limit_of_the_server_ends_no_statement_of_a_copy(
    source: Server, lake: Replica, spark: SparkSession
) -> None:
    widen(source)
    setting, least = ("max_execution_time", "1") if source.flavor == "mysql" else ("max_statement_time", "0.001")
    with global_setting(source, setting, least):
        assert {} == lake.run(spark)
    change(source, 1)
    _assert_whole(source, lake, spark)


def _purge(server: Server) -> None:
    """Leaves of the log a new file alone."""
    server.sql("FLUSH BINARY LOGS")
    if server.flavor == "mariadb":
        server.sql("SET GLOBAL slave_connections_needed_for_purge = 0")
    until_s = time.monotonic() + LONGEST_S
    while len(server.binlog_files()) > 1:
        assert time.monotonic() < until_s
        # MariaDB keeps files that a connection is at.
        dumps = server.sql("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%%'")
        for (number,) in dumps:
            with suppress(pymysql.err.OperationalError):
                server.sql(f"KILL {number}")
        server.sql(f"PURGE BINARY LOGS TO '{server.binlog_files()[-1].name}'")


def test_log_that_is_purged_behind_a_plan_is_no_loss_where_all_of_it_was_read(
    source: Server, lake: Replica, faults: Faults, spark: SparkSession
) -> None:
    def purge(server: Server, _: Any) -> None:
        """The file of the plan's end goes; of what stands behind it all is left."""
        _purge(server)
        change(server, 1)

    faults.before("changes_behind", purge, number=2)
    lake.run(spark)
    assert faults.happened == 1
    change(source, 2)
    _assert_whole(source, lake, spark)


def test_log_that_is_purged_unread_ends_the_run_and_nothing_is_taken_for_whole(
    source: Server, lake: Replica, faults: Faults, spark: SparkSession
) -> None:
    def purge(server: Server, _: Any) -> None:
        change(server, 1)
        _purge(server)

    faults.before("changes_behind", purge, number=3)
    with pytest.raises(LogPurged):
        lake.run(spark)
    assert faults.happened == 1
    with pytest.raises(SourceError, match="purged"):
        lake.run(spark)
    assert_changelogs_are_valid(lake.reading(spark))
