"""The log was purged before it was read: all targets are compared with the source, and lack nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from historian.errors import SourceError
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "name, repairs", [("mysql57", True), ("mysql9", True), ("mysql9", False), ("mariadb118", True)]
)
def test_targets_lack_nothing_behind_lost_log(
    name: str, repairs: bool, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    server.clear()
    server.sql("CREATE DATABASE c")
    for table in ("t", "u", "gone"):
        server.sql(f"CREATE TABLE c.{table} (id INT PRIMARY KEY, v VARCHAR(20))")
        server.sql(f"INSERT INTO c.{table} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    server.sql("CREATE TABLE c.bag (v INT)")
    server.sql("INSERT INTO c.bag VALUES (1), (1), (2)")
    path = copying_config(server, tmp_path)
    path.write_text(path.read_text().replace('lake"}', 'lake", history: "{database}_{table}_history"}'))
    assert {} == run(load_config(path), once=True, spark=spark)
    for statement in (
        "UPDATE c.t SET v = 'lost' WHERE id = 1",
        "DELETE FROM c.t WHERE id = 2",
        "ALTER TABLE c.u ADD COLUMN w INT DEFAULT 5",
        "INSERT INTO c.u VALUES (4, 'd', 6)",
        "DROP TABLE c.gone",
        "DELETE FROM c.bag WHERE v = 1 LIMIT 1",
        "CREATE TABLE c.new (id INT PRIMARY KEY)",
        "INSERT INTO c.new VALUES (1)",
    ):
        server.sql(statement)
    _purge(server)
    with pytest.raises(SourceError, match="--lost-log"):
        run(load_config(path), once=True, spark=spark)

    healed = CliRunner().invoke(app, ["heal", str(path), "--lost-log", *([] if repairs else ["--no-repair"])])

    assert healed.exit_code == 0, healed.output
    assert repairs == ("c.t: the next run gives its targets what differs" in healed.output)
    server.sql("INSERT INTO c.t VALUES (9, 'behind')")
    stopped = run(load_config(path), once=True, spark=spark)
    assert ([] if repairs else ["c.t", "c.u"]) == sorted(stopped)
    tables = {table: _rows(spark, f"{tmp_path}/lake/c_{table}", server, table) for table in ("t", "u", "new")}
    assert repairs == all(ours == theirs for ours, theirs in tables.values()), tables
    if repairs:
        history = spark.read.format("delta").load(f"{tmp_path}/lake/c_t_history").where("valid_to IS NULL")
        assert sorted(server.sql("SELECT id, v FROM c.t")) == sorted(map(tuple, history.select("id", "v").collect()))
        changes = spark.read.format("delta").load(f"{tmp_path}/lake/c_bag_changes")
        signs = changes.selectExpr("v", "CASE WHEN op IN (0, 3) THEN 1 ELSE -1 END AS n").groupBy("v").sum("n")
        assert {1: 1, 2: 1} == {v: n for v, n in map(tuple, signs.collect()) if n}


def _purge(server: Server) -> None:
    """A dump whose client has gone keeps its file until the server notices."""
    server.sql("FLUSH BINARY LOGS")
    server.sql("FLUSH BINARY LOGS")
    last = server.sql("SHOW BINARY LOGS")[-1][0]
    end_s = time.monotonic() + 60
    while server.sql("SHOW BINARY LOGS")[0][0] != last:
        assert time.monotonic() < end_s
        server.sql(f"PURGE BINARY LOGS TO '{last}'")
        time.sleep(0.2)


def _rows(spark: SparkSession, path: str, server: Server, table: str) -> tuple[list[object], list[object]]:
    columns = [name for name, *_ in server.sql(f"SHOW COLUMNS FROM c.{table}")]
    try:
        ours = sorted(map(tuple, spark.read.format("delta").load(path).select(*columns).collect()))
    except Exception as error:  # noqa: BLE001 a mirror that lacks a column, or is not there
        return [str(error)[:100]], [0]
    return list(ours), sorted(server.sql(f"SELECT {', '.join(columns)} FROM c.{table}"))
