"""A run outlives its server's restart: it tries again, and goes on behind what its sinks hold."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.run import run
from connectors.readers.binlog.transport.connection import ConnectionLost
from databases.servers import Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")
LONGEST_S = 120


def _config(server: Server, path: Path, retry: str) -> Path:
    file = path / "shop.yaml"
    file.write_text(
        f"name: shop\nsource: {{type: {server.flavor}, host: {server.host}, port: {server.port}, user: {server.user}, "
        f"password: '{server.password}', tables: ['shop.*'], start: earliest}}\nhistory: {{store: 'sqlite:///{path}/store.db'}}\n"
        f"sinks: [{{type: delta, path: lake}}]\nrun: {{trigger: 200 ms, retry: {retry}}}\n"
    )
    return file


def _dumps(server: Server) -> int:
    return sum("Binlog Dump" in str(row[4]) for row in server.sql("SHOW PROCESSLIST"))


@pytest.mark.parametrize("name", ["mysql9", "mysql57", "mariadb118"])
def test_a_run_goes_on_after_its_server_was_restarted(
    name: str,
    fresh_server: Callable[..., Server],
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = fresh_server(name)
    server.sql("CREATE DATABASE shop")
    server.sql("CREATE TABLE shop.t (id INT PRIMARY KEY)")
    server.sql("INSERT INTO shop.t VALUES (1)")
    written = threading.Event()
    dumps: list[int] = []

    def restart_and_write() -> None:
        try:
            assert written.wait(LONGEST_S)
            for number in (2, 3):
                server.restart()
                written.clear()
                server.sql(f"INSERT INTO shop.t VALUES ({number})")
                assert written.wait(LONGEST_S)
            dumps.append(_dumps(server))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=restart_and_write)
    thread.start()
    with caplog.at_level(logging.WARNING, "connectors.pipeline.run"):
        config = load_config(_config(server, tmp_path, "forever"))
        stopped = run(config, spark=spark, observer=on_written(lambda plan, _: written.set() if plan.tables else None))
    thread.join()

    rows = spark.read.format("delta").load(str(tmp_path / "lake" / "shop_t_changes"))
    assert ({}, [1, 2, 3]) == (stopped, sorted(row.id for row in rows.collect()))
    assert dumps[0] <= 1
    assert "tries again in" in caplog.text
    assert 2 <= caplog.text.count("goes on behind")


def test_status_shows_that_a_run_tries_again_and_what_failed(
    fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    server = fresh_server("mysql9")
    server.sql("CREATE DATABASE shop")
    server.sql("CREATE TABLE shop.t (id INT PRIMARY KEY)")
    server.sql("INSERT INTO shop.t VALUES (1)")
    config = _config(server, tmp_path, "forever")
    written = threading.Event()
    shown: list[dict[str, Any]] = []

    def status() -> dict[str, Any]:
        result = CliRunner().invoke(app, ["status", str(config), "--json", "--no-targets"])
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def stop_and_start() -> None:
        try:
            assert written.wait(LONGEST_S)
            server.stop()
            until = time.monotonic() + LONGEST_S
            while not (during := status())["retry"] and time.monotonic() < until:
                time.sleep(0.2)
            written.clear()
            server.restart()
            server.sql("INSERT INTO shop.t VALUES (2)")
            assert written.wait(LONGEST_S)
            shown.extend((during, status()))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop_and_start)
    thread.start()
    run(load_config(config), spark=spark, observer=on_written(lambda plan, _: written.set() if plan.tables else None))
    thread.join()

    during, after = shown
    assert re.fullmatch(r"(?s)2\d{3}-.+Z: attempt \d+ failed: .+; tries again in \d+ s", during["retry"])
    assert after["retry"] is None


def test_a_run_that_is_not_to_try_again_ends_with_what_failed(
    fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    server = fresh_server("mysql9")
    server.sql("CREATE DATABASE shop")
    server.sql("CREATE TABLE shop.t (id INT PRIMARY KEY)")
    server.sql("INSERT INTO shop.t VALUES (1)")

    with pytest.raises(ConnectionLost):
        run(load_config(_config(server, tmp_path, "never")), spark=spark, observer=on_written(lambda *_: server.stop()))
