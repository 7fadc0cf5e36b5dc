"""A connector on a standalone Spark cluster: the same command, by ``spark-submit`` or with a master in its configuration."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.fs as pafs
import pytest

from connectors.cli.terminal.outcome import ExitCode
from connectors.spark.bundle import make_bundle
from connectors.spark.jvm_s3 import s3_jars
from databases.postgres import Postgres
from databases.servers import Server
from lakes.faulty_s3 import stored_in_s3
from replicas.spark_cluster import Cluster, bare_python, begun_stages, executor_pids, finished_tasks, spark_cluster
from sinks.delta.log.orphans import orphaned_files, remove
from workload.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
ROWS = 700
WIDE = 20_000
"""Characters of a value: executors decode plans of more than 8 MB of log."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def source(mysql9: Server) -> Server:
    """Two files of log, which are two tasks to decode: rows come, change and go."""
    server = mysql9
    server.clear()
    server.sql("CREATE DATABASE d")
    server.sql("CREATE TABLE d.t (id INT PRIMARY KEY, n INT, v MEDIUMTEXT)")
    with server.connect() as connection, connection.cursor() as cursor:
        for first in range(0, ROWS, 50):
            cursor.execute(
                f"INSERT INTO d.t WITH RECURSIVE s (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM s WHERE i < {first + 49})"
                f" SELECT i, i % 7, REPEAT(CHAR(97 + i % 26), {WIDE}) FROM s"
            )
            if first == ROWS // 2:
                cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("UPDATE d.t SET n = -n, v = 'x' WHERE id % 5 = 0")
        cursor.execute("DELETE FROM d.t WHERE id % 11 = 0")
    return server


def _config(server: Server, directory: Path, *, store: str = "", lake: str = "", run: str = "{}") -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / "d.yaml"
    path.write_text(
        f"name: d\nsource: {{type: {server.flavor}, host: {server.host}, port: {server.port}, user: {server.user}, "
        f"password: '{server.password}', tables: ['d.*'], start: earliest}}\n"
        f"history: {{store: '{store or f'sqlite:///{directory}/store.db'}'}}\n"
        f"sinks: [{{type: delta, path: '{lake or directory / 'lake'}'}}]\nrun: {run}\n"
    )
    return path


def _held(spark: SparkSession, directory: Path) -> list[tuple[object, ...]]:
    table = spark.read.format("delta").load(f"{directory}/lake/d_t")
    return sorted(tuple(row) for row in table.selectExpr("id", "n", "sha2(v, 256)").collect())


def _source(server: Server) -> list[tuple[object, ...]]:
    return sorted(server.sql("SELECT id, n, SHA2(v, 256) FROM d.t"))


def test_spark_submit_runs_a_connector_on_executors_that_have_our_packages_from_a_bundle_and_on_no_others(
    source: Server, cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    config = _config(source, tmp_path)
    python = bare_python(tmp_path / "bare")

    refused = _run(cluster.command("run", str(config), "--once", python=python))

    assert (ExitCode.USAGE, []) == (refused.returncode, list(tmp_path.glob("lake/*"))), refused.stdout[-3000:]
    assert "No module named 'connectors'" in refused.stdout
    assert "historian bundle" in refused.stdout

    made = make_bundle(tmp_path / "historian.zip")
    events = tmp_path / "events"
    events.mkdir()
    archive = {"spark.archives": f"{made.path}#historian", "spark.eventLog.dir": events.as_uri()}
    before = cluster.logs_of_executors()
    done = _run(cluster.command("run", str(config), "--once", conf=archive, python=python))

    assert done.returncode == 0, done.stdout[-3000:]
    assert _source(source) == _held(spark, tmp_path)
    tasks = finished_tasks(events)
    assert {"0", "1"} == set(tasks), tasks
    said = {path: text for path, text in cluster.logs_of_executors().items() if path not in before}
    assert len(said) >= 2
    assert [] == [text[-2000:] for text in said.values() if "compil" in text]


def test_an_executor_that_is_killed_while_it_decodes_costs_no_row_and_doubles_none(
    source: Server, cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """The cluster is named by the configuration."""
    events = tmp_path / "events"
    events.mkdir()
    conf = {**cluster.settings(), "spark.eventLog.dir": events.as_uri()}
    config = _config(source, tmp_path, run=json.dumps({"spark": {"master": cluster.master, "conf": conf}}))
    command = [str(Path(sys.executable).with_name("historian")), "run", str(config), "--once"]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        wait_until(lambda: running.poll() is not None or begun_stages(events), 300)
        [victim, *_] = executor_pids(cluster.workers[0].pid)
        os.kill(victim, signal.SIGKILL)
        said, _ = running.communicate(timeout=300)

    assert running.returncode == 0, said[-3000:]
    assert _source(source) == _held(spark, tmp_path)
    _check_orphans_go(tmp_path / "lake")
    changes = spark.read.format("delta").load(f"{tmp_path}/lake/d_t_changes")
    updated, gone = len(range(0, ROWS, 5)), len(range(0, ROWS, 11))
    assert {0: ROWS, 1: gone, 2: updated, 3: updated} == dict(changes.groupBy("op").count().collect())
    assert changes.count() == changes.select("offset").distinct().count()


def _check_orphans_go(lake: Path) -> None:
    """What lost tasks have left is found and goes, and what the tables hold stays."""
    planted = lake / "d_t_changes" / "left-by-a-lost-task.parquet"
    planted.write_bytes(b"")
    now = datetime.now(timezone.utc) + timedelta(seconds=1)
    found = orphaned_files(str(lake), now)
    assert str(planted.relative_to(lake)) in {each.path for each in found}

    remove(str(lake), found)

    assert not planted.exists()
    assert [] == orphaned_files(str(lake), now)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_of_two_drivers_one_has_the_lease_and_behind_its_death_the_other_goes_on_elsewhere(
    kind: str, source: Server, cluster: Cluster, spark: SparkSession, postgres: Postgres, mysql8: Server, tmp_path: Path
) -> None:
    """The store is a server's and the lake is in S3: nothing of the driver's own directory is needed by the next one."""
    s3_jars()
    if kind == "postgresql":
        store = postgres.new_store()
    else:
        mysql8.sql("CREATE DATABASE store")
        store = f"mysql://{mysql8.user}:{mysql8.password}@{mysql8.host}:{mysql8.port}/store"
    with stored_in_s3() as (endpoint, files):
        conf = {
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "key",
            "spark.hadoop.fs.s3a.secret.key": "secret",
        }
        here, there = (_config(source, tmp_path / name, store=store, lake="s3a://bucket/lake") for name in ("a", "b"))
        with subprocess.Popen(
            [*DIES_WITH_US, *cluster.command("run", str(here), conf=conf)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as first:
            try:
                wait_until(lambda: first.poll() is not None or _has_rows(files, "bucket/lake/d_t"), 300)
                second = _run(cluster.command("run", str(there), "--once", conf=conf))
            finally:
                os.killpg(first.pid, signal.SIGKILL)
        shutil.rmtree(tmp_path / "a")
        third = _run(cluster.command("run", str(there), "--once", conf=conf))
        pafs.copy_files("bucket/lake", str(tmp_path / "b" / "lake"), source_filesystem=files)

    assert second.returncode == ExitCode.STORE, second.stdout[-3000:]
    assert third.returncode == 0, third.stdout[-3000:]
    assert _source(source) == _held(spark, tmp_path / "b")
    changes = spark.read.format("delta").load(f"{tmp_path}/b/lake/d_t_changes")
    assert changes.count() == changes.select("offset").distinct().count()


def _has_rows(files: pafs.S3FileSystem, table: str) -> bool:
    found = files.get_file_info(pafs.FileSelector(table, allow_not_found=True))
    return any(each.path.endswith(".parquet") for each in found)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """What ``spark-submit`` runs says all on standard output."""
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
