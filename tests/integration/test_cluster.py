"""A connector on a standalone Spark cluster: the same command, by ``spark-submit`` or with a master in its configuration."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from databases.servers import Server
from replicas.spark_cluster import Cluster, finished_tasks, spark_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow
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


def _config(server: Server, directory: Path, *, run: str = "{}") -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / "d.yaml"
    path.write_text(
        f"name: d\nsource: {{type: {server.flavor}, host: {server.host}, port: {server.port}, user: {server.user}, "
        f"password: '{server.password}', tables: ['d.*'], start: earliest}}\n"
        f"history: {{store: 'sqlite:///{directory}/store.db'}}\n"
        f"sinks: [{{type: delta, path: {directory}/lake}}]\nrun: {run}\n"
    )
    return path


def _held(spark: SparkSession, directory: Path) -> list[tuple[object, ...]]:
    table = spark.read.format("delta").load(f"{directory}/lake/d_t")
    return sorted(tuple(row) for row in table.selectExpr("id", "n", "sha2(v, 256)").collect())


def _source(server: Server) -> list[tuple[object, ...]]:
    return sorted(server.sql("SELECT id, n, SHA2(v, 256) FROM d.t"))


def test_spark_submit_runs_a_connector_whose_rows_executors_decode_and_write(
    source: Server, cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    config = _config(source, tmp_path)

    done = subprocess.run(
        cluster.command("run", str(config), "--once"), capture_output=True, text=True, timeout=300, check=False
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert _source(source) == _held(spark, tmp_path)
    tasks = finished_tasks(cluster.events)
    assert {"0", "1"} == set(tasks), tasks
