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
from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

from connectors.cli.terminal.outcome import ExitCode
from connectors.spark.bundle import make_bundle
from connectors.spark.jvm_s3 import s3_jars
from databases.postgres import Postgres
from databases.servers import Server
from lakes.faulty_s3 import stored_in_s3
from replicas.hindered_tasks import FAILS, STAYS, arrived, hindering
from replicas.spark_cluster import Cluster, bare_python, begun_stages, executor_pids, finished_tasks, spark_cluster
from sinks.delta.log.orphans import orphaned_files
from workload.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
ROWS = 700
HISTORIAN = str(Path(sys.executable).with_name("historian"))
SPECULATION = {"spark.speculation.task.duration.threshold": "3s"}
"""Of a task that is its stage's only one, as those are that write few rows."""
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


def _config(
    server: Server, directory: Path, *, store: str = "", lake: str = "", sink: str = "", run: str = "{}"
) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / "d.yaml"
    path.write_text(
        f"name: d\nsource: {{type: {server.flavor}, host: {server.host}, port: {server.port}, user: {server.user}, "
        f"password: '{server.password}', tables: ['d.*'], start: earliest}}\n"
        f"history: {{store: '{store or f'sqlite:///{directory}/store.db'}'}}\n"
        f"sinks: [{{type: delta, path: '{lake or directory / 'lake'}'{sink}}}]\nrun: {run}\n"
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


@pytest.mark.soak
def test_an_executor_that_is_killed_while_it_decodes_costs_no_row_and_doubles_none(
    source: Server, cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """Those of a worker that goes are killed while they write, which is tried below each time."""
    events = tmp_path / "events"
    events.mkdir()
    conf = {**cluster.settings(), "spark.eventLog.dir": events.as_uri()}
    config = _config(source, tmp_path, run=json.dumps({"spark": {"master": cluster.master, "conf": conf}}))
    with _running(config) as running:
        wait_until(lambda: running.poll() is not None or begun_stages(events), 300)
        [victim, *_] = executor_pids(cluster.workers[0].pid)
        os.kill(victim, signal.SIGKILL)
        said, _ = running.communicate(timeout=300)

    assert running.returncode == 0, said[-3000:]
    assert _source(source) == _held(spark, tmp_path)
    _check_changes(spark, tmp_path)


def test_a_task_that_never_answers_is_made_again_meanwhile_and_shows_no_row_twice(
    source: Server, cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """What it had written is an orphan, which ``historian orphans`` removes."""
    config = _hindered(source, cluster, tmp_path, STAYS)

    with _running(config) as running:
        said, _ = running.communicate(timeout=300)

    assert running.returncode == 0, said[-3000:]
    assert {"0", "1"} == set(finished_tasks(tmp_path / "events"))
    _check_all_is_there_once(spark, config, left=1)


def test_a_worker_that_goes_and_comes_back_takes_up_the_tasks_of_all(
    source: Server, cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """A task fails, and is made again on a worker that goes, and again on the other one, which goes when the first one is back."""
    config = _hindered(source, cluster, tmp_path, FAILS, STAYS, STAYS)
    hindered = tmp_path / "hindered"

    with _running(config) as running:
        wait_until(lambda: running.poll() is not None or len(arrived(hindered)) == 2, 300)
        first = cluster.worker_of(arrived(hindered)[1])
        cluster.kill_worker(first)
        wait_until(lambda: running.poll() is not None or len(arrived(hindered)) == 3, 300)
        second = cluster.worker_of(arrived(hindered)[2])
        cluster.start_worker(first)
        cluster.kill_worker(second)
        said, _ = running.communicate(timeout=300)
    cluster.start_worker(second)

    assert running.returncode == 0, said[-3000:]
    assert {"0", "1", "2"} == set(finished_tasks(tmp_path / "events"))
    _check_all_is_there_once(spark, config, left=3)


def _hindered(server: Server, cluster: Cluster, directory: Path, *order: str) -> Path:
    """A connector whose tasks are hindered in that *order* behind files that they have written; a slow one is made twice."""
    events = directory / "events"
    events.mkdir()
    conf = {**cluster.settings(), **SPECULATION, **hindering(directory / "hindered", *order)}
    conf |= {"spark.eventLog.dir": events.as_uri(), "spark.speculation": str(order == (STAYS,)).lower()}
    return _config(
        server, directory, sink=", mirror: null", run=json.dumps({"spark": {"master": cluster.master, "conf": conf}})
    )


def _running(config: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [HISTORIAN, "run", str(config), "--once"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _check_all_is_there_once(spark: SparkSession, config: Path, *, left: int) -> None:
    """The changelog is right with orphans beside it, so many, and without."""
    lake = config.parent / "lake"
    _check_changes(spark, config.parent)
    orphans = [lake / each.path for each in orphaned_files(str(lake), _soon())]
    assert left == len(orphans)
    for path in lake.rglob("*.parquet"):
        os.utime(path, (0, 0))

    done = _run([HISTORIAN, "orphans", str(config), "--remove"])

    assert done.returncode == 0, done.stderr
    assert [] == [path for path in orphans if path.exists()]
    assert [] == orphaned_files(str(lake), _soon())
    _check_changes(spark, config.parent)


def _soon() -> datetime:
    return datetime.now(timezone.utc) + timedelta(seconds=1)


def _check_changes(spark: SparkSession, directory: Path) -> None:
    """The changelog has every change once, and no version that anybody could have read has part of a plan."""
    path = directory / "lake" / "d_t_changes"
    updated, gone = len(range(0, ROWS, 5)), len(range(0, ROWS, 11))
    whole = {(0, ROWS, ROWS), (1, gone, gone), (2, updated, updated), (3, updated, updated)}
    *before, last = (
        {
            tuple(row)
            for row in spark.read.format("delta")
            .option("versionAsOf", version)
            .load(str(path))
            .groupBy("op")
            .agg(F.count("*"), F.countDistinct("offset"))
            .collect()
        }
        for version in range(len([*path.glob("_delta_log/*.json")]))
    )
    assert last == whole
    assert [] == [seen for seen in before if seen not in (set(), whole)]


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
