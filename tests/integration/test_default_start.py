"""A connector whose configuration names no start: a new one copies what tables hold, one that has begun goes on as it did."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import StructType

from connectors.check import run_checks
from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.spark.data_source import HistorianSource
from databases.servers import Server
from historian.errors import ConfigError
from historian.store import Store
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_new_connector_copies_rows_whose_log_is_purged(mysql9: Server, spark: SparkSession, tmp_path: Path) -> None:
    _filled(mysql9)
    mysql9.sql("FLUSH BINARY LOGS")
    mysql9.sql("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
    path = _named(copying_config(mysql9, tmp_path), "")

    assert {} == run(load_config(path), once=True, spark=spark)

    assert list(mysql9.sql("SELECT id, v FROM c.t ORDER BY id")) == _mirror(spark, tmp_path)


def test_one_that_began_with_the_log_goes_on_without_a_copy(
    fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    server = fresh_server("mysql8")
    _filled(server)
    server.sql("SET GLOBAL binlog_row_image = 'MINIMAL'")  # no row could be copied of it
    path = _named(copying_config(server, tmp_path), "")
    (refused,) = (result for result in run_checks(load_config(path)) if result.status == "failed")
    assert ("first copy", "binlog_row_image=MINIMAL") == (refused.name, refused.found)
    server.sql("SET GLOBAL binlog_row_image = 'FULL'")
    _named(path, "  start: earliest\n")
    assert {} == run(load_config(path), once=True, spark=spark)
    for statement in ("INSERT INTO c.t VALUES (3, 30)", "UPDATE c.t SET v = 11 WHERE id = 1"):
        server.sql(statement)
    server.sql("SET GLOBAL binlog_row_image = 'MINIMAL'")
    _named(path, "")
    with closing(sqlite3.connect(tmp_path / "store.db")) as store:  # one that was made before it kept its start
        store.execute("DELETE FROM historian_facts WHERE name = 'start'")
        store.commit()

    assert {} == run(load_config(path), once=True, spark=spark)

    assert list(server.sql("SELECT id, v FROM c.t ORDER BY id")) == _mirror(spark, tmp_path)
    changes = spark.read.format("delta").load(f"{tmp_path}/lake/c_t_changes").orderBy("offset").collect()
    assert [(0, 1, 10), (0, 2, 20), (0, 3, 30), (2, 1, 10), (3, 1, 11)] == [(r.op, r.id, r.v) for r in changes]
    with closing(Store.open(load_config(path).history.store)) as held:
        assert {} == held.copies()


def test_one_that_copies_goes_on_copying_whatever_start_is_named_later(
    mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    _filled(mysql9)
    mysql9.sql(
        "INSERT INTO c.t WITH RECURSIVE n AS (SELECT 3 i UNION ALL SELECT i + 1 FROM n WHERE i < 99) SELECT i, i FROM n"
    )
    path = _named(copying_config(mysql9, tmp_path, backfill="{chunk_rows: 10, rows_per_second: 20}"), "")
    assert {} == run(load_config(path), once=True, spark=spark)
    with pytest.raises(ConfigError, match="the store is a connector's that copies tables"):
        HistorianSource({"config": str(path)}).streamReader(StructType()).initialOffset()
    mysql9.sql("UPDATE c.t SET v = -1 WHERE id IN (1, 98)")
    path.write_text(path.read_text().replace(", rows_per_second: 20", ""))
    _named(path, "  start: earliest\n")

    assert {} == run(load_config(path), once=True, spark=spark)

    assert list(mysql9.sql("SELECT id, v FROM c.t ORDER BY id")) == _mirror(spark, tmp_path)


def _filled(server: Server) -> None:
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v INT)")
    server.sql("INSERT INTO c.t VALUES (1, 10), (2, 20)")


def _named(path: Path, start: str) -> Path:
    """The configuration with that line for its start."""
    lines = [line for line in path.read_text().splitlines(keepends=True) if not line.startswith("  start:")]
    at = lines.index('  tables: ["c.*"]\n')
    path.write_text("".join([*lines[: at + 1], start, *lines[at + 1 :]]))
    return path


def _mirror(spark: SparkSession, directory: Path) -> list[tuple[int, int]]:
    rows = spark.read.format("delta").load(f"{directory}/lake/c_t").orderBy("id").collect()
    return [(row.id, row.v) for row in rows]
