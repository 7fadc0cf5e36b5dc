"""A run that its address leads to another server, and back, has one waiting connection at the most, and none left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from connectors.config import load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.run import run
from connectors.readers.base import Bound
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.readers.binlog.transport import dump
from connectors.readers.binlog.transport.connection import ConnectionLost, ServerAddress
from databases.moving_address import MovingAddress
from databases.replication import follow, promote, wait_for
from databases.servers import Server
from logs.binlog_lab import live_reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")
LONGEST_S = 60
MORE = ("mysql57", "mysql8", "mariadb1011", "mariadb105")
SERVERS = ("mysql9", "mariadb118", *(pytest.param(name, marks=pytest.mark.soak) for name in MORE))
USER = "counted"


@pytest.fixture
def servers(request: pytest.FixtureRequest, fresh_server: Callable[..., Server]) -> Iterator[tuple[Server, Server]]:
    name = str(request.param)
    primary, other = fresh_server(name), fresh_server(name, "server_id=4711")
    primary.sql(f"CREATE USER {USER} IDENTIFIED BY 'x'")
    primary.sql(f"GRANT ALL ON *.* TO {USER}")
    primary.sql("CREATE DATABASE shop")
    primary.sql("CREATE TABLE shop.t (id INT PRIMARY KEY)")
    primary.sql("INSERT INTO shop.t VALUES (1)")
    return primary, other


def _dumps(server: Server) -> int:
    """Connections of the run alone: the replica has one of its own."""
    rows = server.sql("SELECT command FROM information_schema.processlist WHERE user = %s", USER)
    return sum("Binlog Dump" in str(command) for (command,) in rows)


def _settled(server: Server, expected: int) -> int:
    """After a while: a server notices by a heartbeat that nobody reads any more."""
    until = time.monotonic() + 10
    while (found := _dumps(server)) != expected and time.monotonic() < until:
        time.sleep(0.05)
    return found


def _hand_over(old: Server, new: Server) -> None:
    if old.flavor == "mariadb":
        new.sql("SET GLOBAL gtid_slave_pos = @@GLOBAL.gtid_current_pos")
    follow(new, old)
    with contextlib.closing(live_reader(old)) as reader:
        wait_for(new, reader.end().gtids)
    promote(new)


@pytest.mark.parametrize("servers", SERVERS, indirect=True)
def test_a_run_has_one_dump_through_a_failover_and_back(
    servers: tuple[Server, Server], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "HEARTBEAT_S", 1)
    primary, other = servers
    address = MovingAddress(primary)
    file = tmp_path / "shop.yaml"
    file.write_text(
        f"name: shop\nsource: {{type: {primary.flavor}, host: 127.0.0.1, port: {address.port}, user: {USER}, "
        f"password: x, tables: ['shop.*'], start: earliest}}\nhistory: {{store: 'sqlite:///{tmp_path}/store.db'}}\n"
        "sinks: [{type: delta, path: lake}]\nrun: {trigger: 200 ms, retry: forever}\n"
    )
    written, ended = threading.Event(), threading.Event()
    most = {primary.port: 0, other.port: 0}
    waiting: list[tuple[int, int]] = []

    def count() -> None:
        while not ended.wait(0.02):
            for each in servers:
                most[each.port] = max(most[each.port], _dumps(each))

    def move() -> None:
        try:
            assert written.wait(LONGEST_S)
            for number, (old, new) in enumerate([(primary, other), (other, primary)], 2):
                assert 1 == _settled(old, 1)
                _hand_over(old, new)
                written.clear()
                address.move(new)
                new.sql(f"INSERT INTO shop.t VALUES ({number})")
                assert written.wait(LONGEST_S)
                waiting.append((_settled(old, 0), _settled(new, 1)))
        finally:
            if not ended.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    threads = [threading.Thread(target=each) for each in (count, move)]
    for thread in threads:
        thread.start()
    try:
        run(load_config(file), spark=spark, observer=on_written(lambda plan, _: written.set() if plan.tables else None))
        left = [_settled(each, 0) for each in servers]
    finally:
        ended.set()
        written.set()
        for thread in threads:
            thread.join()
        address.close()

    rows = spark.read.format("delta").load(str(tmp_path / "lake" / "shop_t_changes"))
    assert [(0, 1), (0, 1)] == waiting
    assert [0, 0] == left
    assert {primary.port: 1, other.port: 1} == most
    assert [1, 2, 3] == sorted(row.id for row in rows.collect())


@pytest.mark.parametrize("servers", SERVERS, indirect=True)
def test_a_range_is_not_read_at_the_same_place_of_another_servers_log(servers: tuple[Server, Server]) -> None:
    """The connection for questions still leads to the old server, and the new one has a larger file of that name."""
    primary, other = servers
    other.sql("CREATE DATABASE shop")
    other.sql("CREATE TABLE shop.t (id INT PRIMARY KEY)")
    for number in range(50, 90):
        other.sql(f"INSERT INTO shop.t VALUES ({number})")
    address = MovingAddress(primary)
    try:
        reached = ServerAddress(host="127.0.0.1", port=address.port, user=primary.user, password=primary.password)
        with contextlib.closing(BinlogServerReader(reached, flavor=primary.flavor)) as reader:
            start = reader.start()
            expected = [item.position for item in reader.scan(start) if isinstance(item, Bound)]
            address.leads_to(other)
            with pytest.raises(ConnectionLost, match="leads to another server"):
                list(reader.scan(start))
            reader.end()
            address.leads_to(primary)
            reader.close()
            with pytest.raises(ConnectionLost, match="leads to another server"):
                list(reader.scan(start))
            assert expected == [item.position for item in reader.scan(start) if isinstance(item, Bound)]
    finally:
        address.close()
