"""A run outlives outages of what it writes to: it tries again, and goes on behind what its sinks hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from connectors.config import load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.run import run
from connectors.spark.jvm_s3 import s3_jars
from databases.moving_address import MovingAddress
from databases.postgres import Postgres, start_postgres
from databases.servers import Server, free_port
from lakes.faulty_s3 import with_bucket

if TYPE_CHECKING:
    from moto.server import ThreadedMotoServer
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")
LONGEST_S = 180
HISTORIAN = (str(Path(sys.executable).with_name("historian")),)
NO_RETRIES = " ".join(
    f"--conf spark.hadoop.fs.s3a.{setting}"
    for setting in (
        "path.style.access=true",
        "attempts.maximum=1",
        "retry.limit=1",
        "connection.establish.timeout=1000",
    )
)
"""S3A itself tries for minutes: here the run is to do it."""


@pytest.fixture
def restarting_postgres(tmp_path: Path) -> Iterator[Postgres]:
    server = start_postgres(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def source(fresh_server: Callable[..., Server]) -> Server:
    server = fresh_server("mysql9")
    server.sql("CREATE DATABASE shop")
    server.sql("CREATE TABLE shop.t (id INT PRIMARY KEY)")
    server.sql("INSERT INTO shop.t VALUES (1)")
    return server


def _config(source: Server, directory: Path, store: str, lake: str) -> Path:
    file = directory / "shop.yaml"
    file.write_text(
        f"name: shop\nsource: {{type: mysql, host: {source.host}, port: {source.port}, user: {source.user}, "
        f"password: '{source.password}', tables: ['shop.*'], start: earliest}}\nhistory: {{store: '{store}'}}\n"
        f"sinks: [{{type: delta, path: '{lake}'}}]\nrun: {{trigger: 200 ms, checkpoint: {directory}/checkpoint}}\n"
    )
    return file


def _outlives(
    config: Path, source: Server, spark: SparkSession, stop: Callable[[], None], start: Callable[[], None]
) -> list[int]:
    """The rows of the changelog behind a run whose store is away while rows come."""
    written = threading.Event()

    def take_away() -> None:
        try:
            assert written.wait(LONGEST_S)
            for number in (2, 3):
                stop()
                source.sql(f"INSERT INTO shop.t VALUES ({number})")
                time.sleep(2)
                written.clear()
                start()
                assert written.wait(LONGEST_S)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=take_away)
    thread.start()
    stopped = run(
        load_config(config), spark=spark, observer=on_written(lambda plan, _: written.set() if plan.tables else None)
    )
    thread.join()
    assert stopped == {}
    rows = spark.read.format("delta").load(str(config.parent / "lake" / "shop_t_changes"))
    return sorted(row.id for row in rows.collect())


def test_a_run_goes_on_after_its_store_in_postgresql_was_away(
    source: Server,
    restarting_postgres: Postgres,
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = restarting_postgres
    config = _config(source, tmp_path, store.new_store(), "lake")
    assert [1, 2, 3] == _outlives(config, source, spark, store.pause, store.resume)
    assert "tries again in" in caplog.text


def test_a_run_goes_on_after_its_store_in_mariadb_was_away(
    source: Server,
    fresh_server: Callable[..., Server],
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = fresh_server("mariadb118")
    store.sql("CREATE DATABASE store")
    url = f"mysql+pymysql://{store.user}:{store.password}@{store.host}:{store.port}/store"
    assert [1, 2, 3] == _outlives(_config(source, tmp_path, url, "lake"), source, spark, store.stop, store.restart)
    assert "tries again in" in caplog.text


def test_a_run_goes_on_after_its_object_storage_was_away(source: Server, tmp_path: Path) -> None:
    s3_jars()
    port = free_port()
    storage = _storage(port)
    files = with_bucket(port)
    config = _config(source, tmp_path, f"sqlite:///{tmp_path}/store.db", "s3a://bucket/lake")
    log = tmp_path / "run.log"
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": f"{NO_RETRIES} pyspark-shell",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*HISTORIAN, "run", str(config)],
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
    try:
        _wait(lambda: _ids(files) == [1], process, log)
        storage.stop()
        source.sql("INSERT INTO shop.t VALUES (2)")
        _wait(lambda: "tries again in" in log.read_text(), process, log)
        storage = _storage(port)
        _wait(lambda: _ids(files) == [1, 2], process, log)
        source.sql("INSERT INTO shop.t VALUES (3)")
        _wait(lambda: _ids(files) == [1, 2, 3], process, log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONGEST_S) == 0, log.read_text()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        storage.stop()


@pytest.mark.soak
def test_a_run_that_is_parted_from_its_store_gives_way_to_another_one(
    source: Server, mariadb118: Server, spark: SparkSession, tmp_path: Path
) -> None:
    """The other one comes in when the lease has expired. When the network is whole again, the first one writes nothing more, and ends."""
    mariadb118.sql("CREATE DATABASE parted")
    address = MovingAddress(mariadb118)
    configs = []
    for name, port in (("parted", address.port), ("whole", mariadb118.port)):
        (tmp_path / name).mkdir()
        store = f"mysql://{mariadb118.user}:{mariadb118.password}@127.0.0.1:{port}/parted"
        configs.append(_config(source, tmp_path / name, store, f"{tmp_path}/lake"))
    parted, whole = configs
    log = tmp_path / "run.log"
    with log.open("wb") as output:
        process = subprocess.Popen([*HISTORIAN, "run", str(parted)], stdout=output, stderr=output)
    try:
        _wait((tmp_path / "lake" / "shop_t_changes").exists, process, log)
        source.sql("INSERT INTO shop.t VALUES (2)")
        time.sleep(3)
        address.hold()
        source.sql("INSERT INTO shop.t VALUES (3)")
        until_s = time.monotonic() + LONGEST_S
        # The first one's process lives, on this machine: nothing but its lease's end tells that another may come in.
        while (done := _once(whole)).returncode != 0:
            assert "lease" in done.stderr, done.stderr
            assert time.monotonic() < until_s
            time.sleep(5)
        address.release()
        assert process.wait(LONGEST_S) != 0
        assert "lease" in log.read_text()
        assert _once(whole).returncode == 0
    finally:
        address.close()
        process.kill()
        process.wait()

    changes = spark.read.format("delta").load(f"{tmp_path}/lake/shop_t_changes").collect()
    assert [1, 2, 3] == sorted(row.id for row in changes)
    assert [1, 2, 3] == sorted(row.id for row in spark.read.format("delta").load(f"{tmp_path}/lake/shop_t").collect())


def _once(config: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HISTORIAN, "run", str(config), "--once"], capture_output=True, text=True, timeout=LONGEST_S, check=False
    )


def _storage(port: int) -> ThreadedMotoServer:
    """An S3 endpoint; what it holds outlives its end, within this process."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    return server


def _wait(is_so: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + LONGEST_S
    while not is_so():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until_s, log.read_text()
        time.sleep(0.5)


def _ids(files: pafs.S3FileSystem) -> list[int]:
    """The rows of the changelog's files that its log names."""
    table = "bucket/lake/shop_t_changes"
    found = files.get_file_info(pafs.FileSelector(f"{table}/_delta_log", allow_not_found=True))
    ids: list[int] = []
    for info in found:
        if info.path.endswith(".json"):
            with files.open_input_stream(info.path) as stream:
                entries = [json.loads(line) for line in stream.read().splitlines()]
            for entry in entries:
                if "add" in entry:
                    rows = pq.read_table(f"{table}/{entry['add']['path']}", filesystem=files)
                    ids += rows.column(rows.num_columns - 1).to_pylist()
    return sorted(ids)
