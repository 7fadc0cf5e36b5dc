"""Tables that come into view of a connector that copies rows: their rows from before come too."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from connectors.backfill import copying, splits
from connectors.config import CopyLimits, load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.pipeline import Pipeline
from connectors.pipeline.run import run
from databases.servers import Server
from historian.errors import SinkError
from historian.plans.plans import Plan
from historian.store import CopyProgress, Store
from replicas.copying_oracle import CopyingOracle
from replicas.first_copies import copying_config, ends_behind, fill
from replicas.plan_ends import assert_lake_is_what_a_server_holds
from replicas.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_table_that_is_renamed_into_the_filter_or_added_to_it_is_copied(
    mysql8: Server, spark: SparkSession, tmp_path: Path
) -> None:
    mysql8.clear()
    for statement in (
        "CREATE DATABASE c",
        "CREATE DATABASE stage",
        "CREATE TABLE c.t (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE stage.r (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE stage.a (id INT PRIMARY KEY, v INT)",
        "INSERT INTO c.t VALUES (1, 1)",
        "INSERT INTO stage.r VALUES (1, 10), (2, 20), (3, 30)",
        "INSERT INTO stage.a VALUES (7, 70), (8, 80)",
    ):
        mysql8.sql(statement)
    path = copying_config(mysql8, tmp_path)
    assert {} == run(load_config(path), once=True, spark=spark)

    mysql8.sql("RENAME TABLE stage.r TO c.r")
    mysql8.sql("UPDATE c.r SET v = 21 WHERE id = 2")
    mysql8.sql("DELETE FROM c.r WHERE id = 3")
    path.write_text(path.read_text().replace('["c.*"]', '["c.*", "stage.a"]'))
    mysql8.sql("INSERT INTO stage.a VALUES (9, 90)")
    assert {} == run(load_config(path), once=True, spark=spark)
    mysql8.sql("UPDATE stage.a SET v = 71 WHERE id = 7")
    assert {} == run(load_config(path), once=True, spark=spark)

    for table in ("c.t", "c.r", "stage.a"):
        rows = spark.read.format("delta").load(f"{tmp_path}/lake/{table.replace('.', '_')}")
        assert sorted(mysql8.sql(f"SELECT id, v FROM {table}")) == sorted((row.id, row.v) for row in rows.collect())


def test_a_table_that_comes_into_view_in_the_midst_of_a_copy_on_a_quiet_server_is_copied_too(
    mysql8: Server, spark: SparkSession, tmp_path: Path
) -> None:
    fill(mysql8, 300)
    mysql8.sql("CREATE DATABASE IF NOT EXISTS stage")
    mysql8.sql("CREATE TABLE stage.a (id INT PRIMARY KEY, v INT)")
    mysql8.sql("INSERT INTO stage.a VALUES (7, 70), (8, 80)")
    path = copying_config(mysql8, tmp_path, backfill="{chunk_rows: 100, connections: 1}")
    stopping = threading.Event()

    def written(plan: Plan, _: object) -> None:
        if plan.tables:
            stopping.set()

    with Pipeline.opened(load_config(path), spark, on_written(written)) as pipeline:
        pipeline.run(once=True, until=None, stopping=stopping)

    path.write_text(path.read_text().replace('["c.*"]', '["c.*", "stage.a"]'))
    assert {} == run(load_config(path), once=True, spark=spark)

    for table in ("c.t", "stage.a"):
        rows = spark.read.format("delta").load(f"{tmp_path}/lake/{table.replace('.', '_')}")
        assert sorted(mysql8.sql(f"SELECT id, v FROM {table}")) == sorted((row.id, row.v) for row in rows.collect())


@pytest.mark.parametrize("is_quiet", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["quiet", "busy"])
def test_a_table_that_is_left_out_in_mid_copy_and_taken_in_again_is_as_the_source_is_by_then(
    mysql8: Server, spark: SparkSession, tmp_path: Path, is_quiet: bool
) -> None:
    fill(mysql8, 300)
    mysql8.sql("CREATE TABLE c.other (id INT PRIMARY KEY, v INT)")
    backfill = "{chunk_rows: 100, connections: 1}"
    lake = Replica(mysql8, tmp_path / "lake", ["c"], start="initial", backfill=backfill)
    whole = lake.path.read_text()
    with pytest.raises(SinkError):
        run(lake.config, once=True, spark=spark, observer=on_written(ends_behind(1)))
    assert [100] == [progress.rows for progress in _copies(lake) if not progress.is_done]

    lake.path.write_text(whole.replace('"c.*"', '"c.other"'))
    for statement in (
        "UPDATE c.t SET v = 'meanwhile' WHERE id % 7 = 0",
        "DELETE FROM c.t WHERE id % 11 = 0",
        "UPDATE c.t SET id = id + 1000 WHERE id IN (1, 250)",
        "ALTER TABLE c.t ADD COLUMN w INT DEFAULT 7",
        "INSERT INTO c.t VALUES (-1, 'new', 1), (500, 'new', 2)",
    ):
        mysql8.sql(statement)
    lake.run(spark)
    with closing(Store.open(lake.config.history.store)) as store:
        assert ["c.t"] == [str(name) for _, name, _ in store.stopped()]

    lake.path.write_text(whole)
    if not is_quiet:
        mysql8.sql("UPDATE c.t SET v = 'later' WHERE id % 5 = 0")
        mysql8.sql("INSERT INTO c.other VALUES (1, 1)")
    assert {} == lake.run(spark)
    mysql8.sql("UPDATE c.t SET v = 'last' WHERE id % 3 = 0")
    assert {} == lake.run(spark)

    assert assert_lake_is_what_a_server_holds(mysql8, lake.reading(spark), "^c$")


def test_of_many_tables_each_has_its_turn_though_some_stop(
    mysql8: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan looks at the tables alone that it may copy; those that stopped or are cancelled take nobody's place."""
    for module in (copying, splits):
        monkeypatch.setattr(module, "LAST_PIECES", 1)
    mysql8.clear()
    mysql8.sql("CREATE DATABASE c")
    for number in range(14):
        mysql8.sql(f"CREATE TABLE c.t{number} (id INT PRIMARY KEY)")
        mysql8.sql(f"INSERT INTO c.t{number} VALUES {', '.join(f'({i})' for i in range(1 + number))}")
    oracle = CopyingOracle(mysql8, tmp_path, CopyLimits(chunk_rows=5, connections=1), "c")
    oracle.run(plans=1)
    frontiers = oracle.frontiers()
    assert 1 == sum(frontier == "all" for frontier in frontiers.values())
    ids = {name.table: snapshot.table_id for name, snapshot in oracle.mirror.snapshots().items()}
    waiting = sorted((i for i in ids.values() if frontiers[i] is None), reverse=True)
    with closing(Store.open(oracle.url)) as store:
        for table_id in waiting[:6]:
            store.cancel_copy(table_id)
    mysql8.sql("CREATE TABLE c.later (id INT PRIMARY KEY)")
    mysql8.sql("INSERT INTO c.later VALUES (1)")

    oracle.run()

    cancelled = set(waiting[:6])
    assert {str(name) for name in oracle.stopped} == {f"c.{name}" for name, i in ids.items() if i in cancelled}
    left = {i for i, frontier in oracle.frontiers().items() if frontier != "all"}
    assert cancelled == left
    assert {} == oracle.differences("c")


def _copies(lake: Replica) -> list[CopyProgress]:
    with closing(Store.open(lake.config.history.store)) as store:
        return list(store.copies().values())
