"""SIGHUP: a run reads its YAML again between two plans. What is refused is told, and the run goes on as it did."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pymysql

from connectors.cli.apply import is_done_by_another
from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.reconfiguration.noted import NotedConfig
from connectors.reconfiguration.reloads import Reload
from databases.servers import Server
from historian.errors import LeaseHeld
from historian.store import Store
from lakes.held_rows import held_table
from replicas.first_copies import copying_config
from sinks.delta.log.kernel import Kernel
from workload.beside import beside as besides
from workload.waiting import wait_until

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

_LONGEST_S = 60.0


def _wait(is_so: Callable[[], bool]) -> None:
    wait_until(is_so, _LONGEST_S)


class _Beside:
    """What is done beside a run in the main thread, which it ends."""

    def __init__(self, path: Path, work: Callable[[_Beside], None]) -> None:
        self.path = path
        self._failure: Exception | None = None
        self._work = work
        self._store = Store.open(load_config(path).history.store)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Does it beside what runs inside the ``with``, and raises there what went wrong."""
        thread = threading.Thread(target=self._do)
        thread.start()
        try:
            yield
        finally:
            thread.join()
            self._store.close()
        if self._failure is not None:
            raise self._failure

    def _do(self) -> None:
        try:
            _wait(lambda: (found := self.reload()) is not None and found.outcome == "listens")
            self._work(self)
        except Exception as error:  # noqa: BLE001 raised in the main thread
            self._failure = error
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def reload(self) -> Reload | None:
        return Reload.parse(self._store.reload())

    def hang_up(self, text: str, outcome: str) -> Reload:
        """Writes *text* into the file and sends SIGHUP; what becomes of it."""
        before = self.reload()
        assert before is not None
        self.path.write_text(text)
        os.kill(os.getpid(), signal.SIGHUP)
        # A run that goes on with what was accepted soon notes that it listens.
        outcomes = {outcome, "listens"} if outcome == "accepted" else {outcome}
        _wait(
            lambda: (found := self.reload()) is not None and found.at_us != before.at_us and found.outcome in outcomes
        )
        found = self.reload()
        assert found is not None
        return found

    def stopped(self) -> set[str]:
        return {str(name) for _, name, _ in self._store.stopped()}

    def is_held(self) -> bool:
        """Whether what the file says is what the run notes."""
        noted = NotedConfig.parse(self._store.configuration())
        return noted is not None and noted.mark == NotedConfig.of(load_config(self.path), noted.salt).mark


def _beside_others(work: Callable[[_Beside], None]) -> Callable[[_Beside], None]:
    """*work* while someone asks for the connector's lease, as commands do that begin beside the run; none gets it."""

    def asking(beside: _Beside) -> None:
        def ask(ended: threading.Event) -> None:
            with closing(Store.open(load_config(beside.path).history.store)) as store:
                while not ended.wait(0.02):
                    with suppress(LeaseHeld), store.lease("c"):
                        raise AssertionError("another one got the lease")

        with besides(ask):
            work(beside)

    return asking


def test_a_table_is_added_while_others_stream_on_and_a_broken_yaml_changes_nothing(
    mysql9: Server, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mysql9.clear()
    for database in ("c", "stage"):
        mysql9.sql(f"CREATE DATABASE {database}")
    for table in ("c.t", "stage.a", "stage.b"):
        mysql9.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
        mysql9.sql(f"INSERT INTO {table} (v) VALUES (10), (20)")
    path = copying_config(mysql9, tmp_path)
    path.write_text(path.read_text() + "run: {trigger: 200 ms}\n")

    def rows(table: str) -> list[tuple[int, int]]:
        directory = tmp_path / "lake" / table.replace(".", "_")
        if not directory.exists():
            return []
        found = held_table(Kernel(spark, "tests"), str(directory)).to_pylist()
        return sorted((row["id"], row["v"]) for row in found)

    def is_there(table: str) -> bool:
        return rows(table) == sorted(mysql9.sql(f"SELECT id, v FROM {table}"))

    def work(beside: _Beside) -> None:
        _wait(lambda: is_there("c.t"))
        good = path.read_text().replace('["c.*"]', '["c.*", "stage.a"]')
        stops = threading.Event()

        def write() -> None:
            while not stops.wait(0.05):
                mysql9.sql("INSERT INTO c.t (v) VALUES (1)")

        writer = threading.Thread(target=write)
        writer.start()
        beside.hang_up(good, "accepted")
        _wait(beside.is_held)
        stops.set()
        writer.join()
        mysql9.sql("UPDATE stage.a SET v = 11 WHERE id = 1")
        _wait(lambda: is_there("c.t") and is_there("stage.a"))

        refused = beside.hang_up(
            good.replace("start: initial", "start: initial\n  colour: red\n  shade: blue"), "refused"
        )
        assert [True, True] == [
            any(key in problem for problem in refused.problems) for key in ("$.source.colour", "$.source.shade")
        ]
        refused = beside.hang_up(good.replace('lake"}', 'lake", mirror: null}'), "refused")
        assert ["the lake was made by another connector, or for other kinds of tables"] == [
            problem.partition(" (")[0] for problem in refused.problems
        ]
        beside.hang_up(good.replace("name: c\n", "name: other\n"), "refused")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            refused = beside.hang_up(good.replace("200 ms}", f"200 ms, http: {port}}}"), "refused")
        assert ["the endpoint cannot listen" in problem for problem in refused.problems] == [True]
        mysql9.sql("INSERT INTO stage.a (v) VALUES (30)")
        _wait(lambda: is_there("stage.a"))

        # Nothing is written any more: a table comes into view all the same.
        path.write_text(good)
        path.write_text(good.replace('"stage.a"', '"stage.*"'))
        assert is_done_by_another(load_config(path), _LONGEST_S)
        _wait(lambda: is_there("stage.b"))
        beside.hang_up(good.replace('"c.*"', '"!c.t", "c.*"'), "accepted")
        _wait(lambda: beside.stopped() == {"c.t", "stage.b"})

    with caplog.at_level(logging.WARNING), _Beside(path, _beside_others(work)).running():
        stopped = run(load_config(path), spark=spark)

    assert {} == stopped
    told = [record.getMessage() for record in caplog.records]
    assert "stage.a: copied: the configuration takes it in from here on" in told
    assert any(text.startswith("the changed configuration is not used: ") and "colour" in text for text in told)


def test_a_rotated_password_is_read_again_and_one_that_is_late_is_waited_for(
    mysql9: Server, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mysql9.clear()
    mysql9.sql("CREATE DATABASE c")
    mysql9.sql("CREATE TABLE c.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
    mysql9.sql("INSERT INTO c.t (v) VALUES (10)")
    mysql9.sql("DROP USER IF EXISTS rotating")
    mysql9.sql("CREATE USER rotating IDENTIFIED BY 'first'")
    mysql9.sql("GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO rotating")
    mysql9.sql("CREATE DATABASE rotating_store")
    mysql9.sql("GRANT ALL ON rotating_store.* TO rotating")
    secret = tmp_path / "secret"
    secret.write_text("first\n")
    path = copying_config(mysql9, tmp_path)
    store = f"mysql://rotating:${{file:secret}}@{mysql9.host}:{mysql9.port}/rotating_store"
    text = path.read_text().replace(f"user: {mysql9.user}", "user: rotating")
    text = text.replace(f"sqlite:///{tmp_path}/store.db", store)
    path.write_text(
        text.replace(f'password: "{mysql9.password}"', 'password: "${file:secret}"') + "run: {trigger: 200 ms}\n"
    )
    mirror = str(tmp_path / "lake" / "c_t")

    def is_there() -> bool:
        if not Path(mirror).exists():
            return False
        rows = held_table(Kernel(spark, "tests"), mirror).to_pylist()
        return sorted((row["id"], row["v"]) for row in rows) == sorted(mysql9.sql("SELECT id, v FROM c.t"))

    def work(beside: _Beside) -> None:
        _wait(is_there)
        # What stands in the file by now besides is not looked at without SIGHUP.
        path.write_text(path.read_text().replace("start: initial", "start: initial\n  colour: red"))
        mysql9.sql("ALTER USER rotating IDENTIFIED BY 'second'")
        for (number,) in mysql9.sql("SELECT id FROM information_schema.processlist WHERE user = 'rotating'"):
            with suppress(pymysql.err.OperationalError):  # it has ended by itself
                mysql9.sql(f"KILL {number}")
        _wait(lambda: any("as it did not before" in record.getMessage() for record in caplog.records))
        secret.write_text("second\n")
        mysql9.sql("INSERT INTO c.t (v) VALUES (20)")
        _wait(is_there)

    config = load_config(path)
    with caplog.at_level(logging.WARNING), _Beside(path, work).running():
        stopped = run(config, spark=spark)

    assert {} == stopped
    told = " ".join(record.getMessage() for record in caplog.records)
    assert "it goes on with what its configuration refers to now" in told
    assert ("first" in told, "second" in told) == (False, False)
