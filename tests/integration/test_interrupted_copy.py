"""A copy into a lake that ends half-way: the next run writes the same rows, whatever the source holds by then."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.backfill import selecting, selection
from connectors.backfill.snapshots import snapshot_behind
from connectors.cli import app
from connectors.config import load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.run import run
from connectors.readers.binlog.selected import reading
from connectors.readers.binlog.selected.columns import select_statement
from databases.servers import Server
from historian.errors import SinkError
from historian.schema.snapshots import Snapshot
from historian.store import Store
from replicas.first_copies import copying_config, fill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 60
_PREPARED = (
    "XA START 'x'",
    "INSERT INTO c.t VALUES (1000, 'prepared')",
    "UPDATE c.t SET v = 'prepared' WHERE id IN (3, 25, 55)",
    "DELETE FROM c.t WHERE id IN (5, 27, 57)",
    "UPDATE c.bag SET v = 3 WHERE v = 2",
    "INSERT INTO c.bag VALUES (1)",
    "XA END 'x'",
    "XA PREPARE 'x'",
)


class _Ended(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("kind", ["mysql8", "mariadb118"])
def test_what_was_copied_comes_again_though_the_table_has_changed(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server: Server = request.getfixturevalue(kind)
    fill(server, _ROWS)
    path = copying_config(server, tmp_path, backfill="{chunk_rows: 10, connections: 1}")

    for number, place in enumerate(("plan_recorded", "files_written", "tables_recorded", "plan_written")):
        with monkeypatch.context() as patch:
            _end_at(patch, place)
            with pytest.raises(Exception, match=place):
                run(load_config(path), once=True, spark=spark)
        server.sql(f"ALTER TABLE c.t ADD COLUMN x{number} INT DEFAULT {number}")
        server.sql(f"UPDATE c.t SET v = 'again{number}' WHERE id % 5 = {number}")
        server.sql(f"DELETE FROM c.t WHERE id = {_ROWS - number - 1}")
    assert {} == run(load_config(path), once=True, spark=spark)

    rows = spark.read.format("delta").load(f"{tmp_path}/lake/c_t")
    columns = ("id", "v", "x0", "x1", "x2", "x3")
    ours = sorted(tuple(row[name] for name in columns) for row in rows.collect())
    assert sorted(server.sql(f"SELECT {', '.join(columns)} FROM c.t")) == ours
    changes = spark.read.format("delta").load(f"{tmp_path}/lake/c_t_changes")
    appended = [row.id for row in changes.where("op = 0").collect()]
    assert len(set(appended)) == len(appended), "a row came twice"


@pytest.mark.parametrize("kind", ["mysql8", "mariadb118"])
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_transaction_prepared_before_a_plans_end_and_ended_behind_it_is_of_a_later_plan(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
    kind: str,
    is_committed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its rows stand in the log before P, and the SELECT behind P sees them: they are taken back."""
    server: Server = request.getfixturevalue(kind)
    fill(server, _ROWS)
    server.sql("CREATE TABLE c.bag (v INT)")
    server.sql("INSERT INTO c.bag VALUES (1), (1), (2)")
    path = copying_config(server, tmp_path, backfill="{chunk_rows: 10, connections: 1}")
    snapshots = 0

    def snapshot(*arguments: Any, **named: Any) -> Any:
        nonlocal snapshots
        snapshots += 1
        if snapshots == 2:
            with closing(server.connect()) as connection, connection.cursor() as cursor:
                for statement in _PREPARED:
                    cursor.execute(statement)
        if snapshots == 4:
            server.sql("XA COMMIT 'x'" if is_committed else "XA ROLLBACK 'x'")
        return snapshot_behind(*arguments, **named)

    monkeypatch.setattr(selecting, "snapshot_behind", snapshot)
    monkeypatch.setattr(selection, "snapshot_behind", snapshot)
    run(load_config(path), once=True, spark=spark)
    run(load_config(path), once=True, spark=spark)

    assert snapshots >= 4
    rows = spark.read.format("delta").load(f"{tmp_path}/lake/c_t").select("id", "v").collect()
    assert sorted(server.sql("SELECT id, v FROM c.t")) == sorted(map(tuple, rows))
    changes = spark.read.format("delta").load(f"{tmp_path}/lake/c_t_changes")
    folded = changes.selectExpr("id", "v", "CASE WHEN op IN (0, 3) THEN 1 ELSE -1 END AS n").groupBy("id", "v").sum("n")
    assert sorted(map(tuple, rows)) == sorted((i, v) for i, v, n in map(tuple, folded.collect()) if n)
    appended = [(row.id, row.v) for row in changes.where("op = 0").collect()]
    assert len(set(appended)) == len(appended), "a row came twice"
    bag = spark.read.format("delta").load(f"{tmp_path}/lake/c_bag_changes")
    counted = bag.selectExpr("v", "CASE WHEN op IN (0, 3) THEN 1 ELSE -1 END AS n").groupBy("v").sum("n").collect()
    assert sorted(server.sql("SELECT v, COUNT(*) FROM c.bag GROUP BY v")) == sorted(
        (v, n) for v, n in map(tuple, counted) if n
    )


def test_what_was_copied_is_read_again_where_the_store_was_lost(
    mysql8: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(mysql8, _ROWS)
    path = copying_config(mysql8, tmp_path, backfill="{chunk_rows: 10, connections: 1}")
    with monkeypatch.context() as patch:
        _end_at(patch, "tables_recorded")
        with pytest.raises(Exception, match="tables_recorded"):
            run(load_config(path), once=True, spark=spark)

    for file in tmp_path.glob("store.db*"):
        file.unlink()
    mysql8.sql("UPDATE c.t SET v = 'later' WHERE id < 30")
    assert {} == run(load_config(path), once=True, spark=spark)

    rows = spark.read.format("delta").load(f"{tmp_path}/lake/c_t")
    assert sorted(mysql8.sql("SELECT id, v FROM c.t")) == sorted((row.id, row.v) for row in rows.collect())


def _end_at(patch: pytest.MonkeyPatch, place: str) -> None:
    """The first write that reaches *place* ends."""
    from sinks.delta import faults

    def reached(name: str, *_: object) -> None:
        if name == place:
            raise _Ended(place)

    patch.setattr(faults, "reached", reached)


def test_a_table_that_is_never_as_the_schema_says_stops_and_does_not_wait_for_ever(
    mysql8: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mysql8.clear()
    mysql8.sql("CREATE DATABASE c")
    for table in ("t", "u"):
        mysql8.sql(f"CREATE TABLE c.{table} (id INT PRIMARY KEY, v INT)")
        mysql8.sql(f"INSERT INTO c.{table} VALUES (1, 1), (2, 2)")
    path = copying_config(mysql8, tmp_path)

    def select(snapshot: Snapshot, where: str) -> str:
        statement = select_statement(snapshot, where)
        return statement.replace("`v`", "`w`") if snapshot.name.table == "t" else statement

    with monkeypatch.context() as patch:
        patch.setattr(reading, "select_statement", select)
        run(load_config(path), once=True, spark=spark)

    with closing(Store.open(f"sqlite:///{tmp_path}/store.db")) as store:
        ((_, name, stop),) = store.stopped()
    assert str(name) == "c.t"
    assert stop.reason.startswith("its rows cannot be copied: a table is not as the schema says")
    rows = spark.read.format("delta").load(f"{tmp_path}/lake/c_u")
    assert sorted((row.id, row.v) for row in rows.collect()) == [(1, 1), (2, 2)]


def test_a_table_whose_schema_the_server_does_not_tell_stops_and_is_not_left_out_in_silence(
    mysql8: Server, spark: SparkSession, tmp_path: Path
) -> None:
    mysql8.clear()
    mysql8.sql("CREATE DATABASE c CHARACTER SET utf8mb4")
    mysql8.sql("CREATE TABLE c.t (id INT PRIMARY KEY, e ENUM('🍵', 'b'))")
    mysql8.sql("INSERT INTO c.t VALUES (1, 'b')")
    mysql8.sql("CREATE VIEW c.v AS SELECT * FROM c.t")

    run(load_config(copying_config(mysql8, tmp_path)), once=True, spark=spark)

    with closing(Store.open(f"sqlite:///{tmp_path}/store.db")) as store:
        ((_, name, stop),) = store.stopped()
    assert str(name) == "c.t"
    assert stop.reason.startswith("the server does not tell a label of column e")


def test_status_tells_how_far_a_copy_is(mysql8: Server, spark: SparkSession, tmp_path: Path) -> None:
    fill(mysql8, _ROWS)
    mysql8.sql("ANALYZE TABLE c.t")
    path = copying_config(mysql8, tmp_path, backfill="{chunk_rows: 10, connections: 1}")
    plans = iter(("", "", "ends"))

    def report(*_: object) -> None:
        if next(plans):
            raise _Ended

    with pytest.raises(SinkError):
        run(load_config(path), once=True, spark=spark, observer=on_written(report))
    (copy,) = json.loads(CliRunner().invoke(app, ["status", str(path), "--json", "--no-targets"]).stdout)["copies"]

    assert ("c.t", "copying", 30, _ROWS) == (copy["table"], copy["state"], copy["rows"], copy["estimate"])
    assert copy["rows_per_s"] > 0
    assert copy["left_s"] >= 0
