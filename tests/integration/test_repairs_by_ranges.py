"""Repairs go range by range while the table is written to: targets end as the source, and the changelog stays strict on the way."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import CopyLimits, load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.pipeline import Pipeline
from connectors.pipeline.run import run
from databases.servers import Server
from historian.changelog.operations import Op
from historian.names import TableName
from historian.plans.plans import Plan, TableCopy
from replicas.first_copies import copying_config
from replicas.repairing_oracle import RepairingOracle
from replicas.tracked import unlogged
from workload.beside import beside
from workload.seeds import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 1500
_EXPECTED = (1062, 1205, 1213, 1054, 1136, 1412, 1060, 1091, 1146, 1050)
"""Duplicate key, lock wait, deadlock; and what a statement meets that another one has just changed."""


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("kind", ["mysql9", "mariadb118"])
def test_a_table_is_repaired_while_it_is_written_to(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    server: Server = request.getfixturevalue(kind)
    lake = _replicated(server, tmp_path)
    assert {} == _run(lake, spark)
    _execute(server, *_UNSEEN)
    with _written(server, 1, _changes):
        _run_until_repaired(lake, spark, server)
    assert {} == _run(lake, spark)

    repairs = _read(spark, lake, "historian_repairs").collect()
    assert len(repairs) > 5
    assert sum(row.rows_changed for row in repairs) > _ROWS / 3
    columns = [str(column[0]) for column in server.sql("SHOW COLUMNS FROM c.t")]
    expected = {tuple(row[:2]): tuple(row) for row in server.sql(f"SELECT {', '.join(columns)} FROM c.t")}
    mirror = _read(spark, lake, "c_t").select(*columns).collect()
    assert expected == {tuple(row)[:2]: tuple(row) for row in mirror}
    assert len(expected) == len(mirror)
    assert expected == _folded(_read(spark, lake, "c_t_changes"), columns)
    history = _read(spark, lake, "c_t_history").where("to_offset IS NULL").select(*columns).collect()
    assert expected == {tuple(row)[:2]: tuple(row) for row in history}
    assert len(expected) == len(history)


@pytest.mark.usefixtures("few_rows")
def test_a_table_that_its_sink_stops_is_compared_by_ranges_or_else_as_a_whole(
    mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    """The hashed keys of one table say nothing of the source's ranges."""
    _filled(mysql9)
    mysql9.sql("CREATE TABLE c.hashed (id INT PRIMARY KEY, n INT)")
    mysql9.sql("INSERT INTO c.hashed SELECT id, n FROM c.t WHERE id < 200")
    path = copying_config(mysql9, tmp_path, backfill="{connections: 2, chunk_rows: 40}")
    rules = '/lake", tables: {"c.hashed": {hash: {id: {salt: pepper}}}}}'
    path.write_text(path.read_text().replace('/lake"}', rules))
    mysql9.sql("DELETE FROM c.t WHERE id >= 400")
    assert {} == _run(path, spark)
    for name in ("t", "hashed"):
        mysql9.sql(f"ALTER TABLE c.{name} MODIFY n SMALLINT")
        mysql9.sql(f"UPDATE c.{name} SET n = n + 1 WHERE id < 20")
    assert {} == _run(path, spark)

    repairs = Counter(row.table for row in _read(spark, path, "historian_repairs").collect())
    assert (True, 1) == (repairs["c.t"] > 4, repairs["c.hashed"])
    for name in ("t", "hashed"):
        ours = sorted(row.n for row in _read(spark, path, f"c_{name}").collect())
        assert [n for (n,) in mysql9.sql(f"SELECT n FROM c.{name} ORDER BY n")] == ours

    done = CliRunner().invoke(app, ["backfill", str(path), "--table", "c.t"])
    assert "reads the rest" in done.output, done.output
    told = CliRunner().invoke(app, ["status", str(path), "--json", "--no-targets"])
    (copy,) = (copy for copy in json.loads(told.stdout)["copies"] if copy["table"] == "c.t")
    assert ("repairing", "copied again by historian backfill") == (copy["state"], copy["repairs"])
    assert 40 < copy["rows"] < 100
    assert {} == _run(path, spark)
    again = _read(spark, path, "historian_repairs").where("reason LIKE 'copied again%'").collect()
    assert (True, 0) == (len(again) > 4, sum(row.rows_changed for row in again))


@pytest.mark.parametrize("kind", ["mysql9", "mariadb118"])
def test_what_comes_amid_a_repair_is_followed_or_begins_it_anew(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    """New keys, TRUNCATE, more statements without row events, columns that come and go, RENAME, restarts."""
    server: Server = request.getfixturevalue(kind)
    for seed in seeds([1]):
        _filled(server)
        (tmp_path / str(seed)).mkdir()
        oracle = RepairingOracle(server, tmp_path / str(seed), CopyLimits(chunk_rows=120, connections=2), "c")
        oracle.run()
        with _written(server, seed, _changes):
            for statements in _AMID:
                _execute(server, *statements)
                oracle.run(plans=5)
                oracle.repair()
        for _ in range(3):
            oracle.run()
            oracle.repair()
        assert {} == oracle.differences("c")
        assert oracle.is_done()
        assert {"changed by a statement", "the key by whose ranges"} <= {
            reason[:23].strip(" ,") for reason in oracle.reasons
        }
        assert oracle.begun_anew > 1


def test_a_table_that_is_healed_amid_its_repair_is_repaired_from_the_beginning(mysql9: Server, tmp_path: Path) -> None:
    _filled(mysql9)
    oracle = RepairingOracle(mysql9, tmp_path, CopyLimits(chunk_rows=120, connections=2), "c")
    oracle.run()
    _execute(mysql9, *_UNSEEN)
    oracle.run()
    oracle.repair()
    oracle.run(plans=2)
    unlogged(mysql9, "ALTER TABLE c.t DROP COLUMN v", "UPDATE c.t SET n = 99")
    _execute(mysql9, "UPDATE t SET n = 0 WHERE id < 9")
    oracle.run(plans=1)
    assert ["t"] == [name.table for name in oracle.stopped]
    oracle.heal(TableName("c", "t"))
    oracle.run()
    assert not oracle.is_done()  # What was captured comes with the log that follows.
    _execute(mysql9, "UPDATE t SET n = 1 WHERE id < 9")
    oracle.run()

    assert {} == oracle.differences("c")
    assert oracle.is_done()


_UNSEEN = (
    "SET binlog_format = 'STATEMENT'",
    "UPDATE t SET v = 'unseen' WHERE id % 3 = 0",
    "DELETE FROM t WHERE id % 17 = 0",
)
_AMID = (
    _UNSEEN,
    ("ALTER TABLE t ADD COLUMN w INT DEFAULT 7",),
    ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (d, id)", "UPDATE t SET n = 1 WHERE id < 900"),
    ("UPDATE t SET w = 8 WHERE id < 900", "ALTER TABLE t CHANGE w x BIGINT"),
    _UNSEEN,
    ("RENAME TABLE t TO u", "RENAME TABLE u TO t"),
    (
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, d)",
        "TRUNCATE TABLE t",
        "INSERT INTO t (id, d) VALUES (5000, '2020-01-01')",
    ),
    ("ALTER TABLE t DROP COLUMN x",),
    (*(f"INSERT IGNORE INTO t (id, d, v) SELECT id + {10_000 << number}, d, v FROM t" for number in range(9)),),
    _UNSEEN,
    ("TRUNCATE TABLE t", "INSERT INTO t (id, d) VALUES (5000, '2020-01-01')"),
)


def _replicated(server: Server, directory: Path) -> Path:
    _filled(server)
    path = copying_config(server, directory, backfill="{connections: 2, chunk_rows: 150}")
    text = path.read_text()
    path.write_text(text.replace('/lake"}', '/lake", history: "{database}_{table}_history"}'))
    return path


def _filled(server: Server) -> None:
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.t (id BIGINT UNSIGNED, d DATETIME(3), v VARCHAR(20), n INT, PRIMARY KEY (id, d))")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO c.t VALUES (%s, %s, %s, %s)",
            [(i, f"2020-01-01 00:00:0{i % 10}.125", f"v{i}", i * 3) for i in range(_ROWS)],
        )
        connection.commit()


def _execute(server: Server, *statements: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("USE c")
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def _run(path: Path, spark: SparkSession) -> dict[str, str]:
    return dict(run(load_config(path), once=True, spark=spark))


def _run_until_repaired(path: Path, spark: SparkSession, server: Server) -> None:
    """While the repair is under way: the statement that it is for once more, one that adds a column, another run."""
    plans: list[TableCopy] = []
    amid = {3: _UNSEEN, 7: ("ALTER TABLE t ADD COLUMN w INT NOT NULL DEFAULT 7 AFTER v",)}
    stopping = threading.Event()

    def report(plan: Plan, stopped: Mapping[str, str]) -> None:
        assert {} == stopped
        plans.extend(table.copy for table in plan.tables if table.copy is not None and table.copy.repairs)
        if statements := amid.pop(len(plans), ()):
            _execute(server, *statements)
        if len(plans) == 9 or any(copy.is_done for copy in plans):
            stopping.set()

    end_s = time.monotonic() + 120
    while not any(copy.is_done for copy in plans):
        assert time.monotonic() < end_s
        stopping.clear()
        with Pipeline.opened(load_config(path), spark, on_written(report)) as pipeline:
            pipeline.run(once=False, until=None, stopping=stopping)
    # Plans with log lie between those that compare ranges.
    assert any(copy.behind == copy.upto for copy in plans)


def _read(spark: SparkSession, path: Path, name: str) -> Any:
    return spark.read.format("delta").load(f"{path.parent}/lake/{name}")


def _written(server: Server, seed: int, act: Callable[[random.Random, Any], None]) -> AbstractContextManager[None]:
    """Changes the table meanwhile."""

    def write(ended: threading.Event) -> None:
        rng = random.Random(seed)
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("USE c")
            while not ended.wait(0.01):
                try:
                    act(rng, cursor)
                    connection.commit()
                except pymysql.err.MySQLError as error:
                    if error.args[0] not in _EXPECTED:
                        raise
                    connection.rollback()
                    cursor.execute("SET binlog_format = 'ROW'")

    return beside(write)


def _changes(rng: random.Random, cursor: Any) -> None:
    key, other = rng.randrange(_ROWS * 2), rng.randrange(_ROWS * 2)
    cursor.execute(
        rng.choice(
            (
                f"UPDATE t SET n = n + 1 WHERE id BETWEEN {key} AND {key + 5}",
                f"DELETE FROM t WHERE id = {key}",
                f"INSERT INTO t (id, d, v) VALUES ({key}, '2021-02-03 04:05:06.789', 'new')",
                f"UPDATE t SET id = {other} WHERE id = {key}",
                f"UPDATE t SET d = '2022-01-01' WHERE id = {key}",
            )
        )
    )


def _folded(changes: Any, columns: list[str]) -> dict[Any, tuple[Any, ...]]:
    """What the changelog amounts to: each row that is taken back is there as it is, and none comes twice."""
    held: dict[Any, tuple[Any, ...]] = {}
    for row in changes.orderBy("offset").collect():
        values = tuple(7 if name == "w" and row[name] is None else row[name] for name in columns)
        if row.op in (Op.RETRACT, Op.CORRECT_FROM):
            assert values == held.pop(values[:2]), row
        else:
            assert held.setdefault(values[:2], values) is values, row
    return held
