"""First copies of children of foreign keys that the server does not log: they stay chunks while parents change, and each plan holds what the source does."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

from connectors.backfill import affected, selecting
from connectors.backfill.copying_again import copy_again
from connectors.backfill.snapshots import snapshot_behind
from connectors.backfill.spool import Spool, chunk_of
from connectors.config import CopyLimits, load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.run import run
from databases.servers import Server
from historian.changelog.operations import Op
from historian.errors import SinkError
from historian.names import TableName
from historian.plans.plans import Plan
from logs.binlog_lab import address
from replicas.copying_oracle import CopyingOracle
from replicas.first_copies import copying_config, ends_behind
from workload.seeds import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.tracking.tracker import Tracker

_TABLES = (
    "CREATE DATABASE c",
    "CREATE TABLE c.p (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE c.nulled (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE SET NULL ON UPDATE CASCADE)",
    "CREATE TABLE c.part (p INT, n INT, v INT, PRIMARY KEY (p, n), FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
)
_KEYS = {"child": ("id",), "nulled": ("id",), "part": ("p", "n")}
_PARENTS, _ROWS = 40, 400
_EXPECTED = (1062, 1205, 1213, 1451, 1452, 1761)


class _Oracle(CopyingOracle):
    """Notes how many rows each table's plans have compared."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.compared: list[int] = []
        self.taken: list[Plan] = []

    def _take(self, plan: Plan, tracker: Tracker) -> None:
        repairs = [table.copy for table in plan.tables if table.repairs and table.copy is not None]
        # Where an action sets NULL, all rows with NULL take part.
        self.compared += [copy.rows for copy in repairs if not any(each.nulls for each in copy.only)]
        self.taken.append(plan)
        super()._take(plan, tracker)


@pytest.mark.parametrize("kind", [pytest.param("mysql57", marks=pytest.mark.soak), "mysql8", "mariadb118"])
def test_each_plan_of_a_copy_holds_what_the_source_does_up_to_the_frontier(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    server: Server = request.getfixturevalue(kind)
    for seed in seeds([1]):
        rng = random.Random(seed)
        _fill(server)
        (tmp_path / str(seed)).mkdir()
        oracle = _Oracle(server, tmp_path / str(seed), CopyLimits(chunk_rows=20, connections=3), "c")
        oracle.run(plans=1)
        while not oracle.is_done():
            _change(server, rng, 10)
            oracle.run(plans=2)  # one has the log
            _compare(server, oracle)
        oracle.run()

        assert {} == oracle.stopped
        assert {} == oracle.differences("c")
        assert oracle.repaired_partly == oracle.repaired > 10
        assert max(oracle.compared) < _ROWS // 4


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["mysql8", "mariadb118"])
def test_a_copy_goes_on_chunk_by_chunk_while_parents_change(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, behind and between a plan's log and its SELECTs: rows that foreign keys give other keys cross the frontier too."""
    server: Server = request.getfixturevalue(kind)
    for seed in seeds([1]):
        _fill(server)
        (tmp_path / str(seed)).mkdir()
        oracle = _Oracle(server, tmp_path / str(seed), CopyLimits(chunk_rows=20, connections=3), "c")
        late = random.Random(f"late {seed}")

        def snapshot(*args: Any, late: random.Random = late, **kwargs: Any) -> Any:
            _change(server, late, 2)
            return snapshot_behind(*args, **kwargs)

        monkeypatch.setattr(affected, "snapshot_behind", snapshot)
        monkeypatch.setattr(selecting, "snapshot_behind", snapshot)
        oracle.run(plans=1)
        stop = threading.Event()

        def write(number: int, seed: int = seed, stop: threading.Event = stop) -> None:
            rng = random.Random(f"{seed} {number}")
            while not stop.wait(0.02):
                _change(server, rng, 1)

        plans = 0
        with ThreadPoolExecutor(2) as pool:
            writers = [pool.submit(write, number) for number in range(2)]
            try:
                while not oracle.is_done() and plans < 200:
                    plans += oracle.run(plans=1)
            finally:
                stop.set()
        for writer in writers:
            writer.result()
        assert oracle.is_done(), "the copy came no further"
        oracle.run()

        assert {} == oracle.stopped
        assert {} == oracle.differences("c")
        assert oracle.repaired_partly > 5
        assert max(oracle.compared) < _ROWS // 2


def test_rows_that_a_plan_compared_amid_a_copy_are_read_again_if_the_store_was_lost(
    mysql8: Server, tmp_path: Path
) -> None:
    _fill(mysql8)
    oracle = _Oracle(mysql8, tmp_path, CopyLimits(chunk_rows=50, connections=3), "c")
    oracle.run(plans=2)
    mysql8.sql("DELETE FROM c.p WHERE id = 3")
    mysql8.sql("UPDATE c.child SET v = 9 WHERE id IN (5, 390)")
    oracle.run(plans=2)
    (plan,) = [plan for plan in oracle.taken if any(table.repairs for table in plan.tables)]
    with oracle._tracker() as tracker, closing(Spool()) as spool:
        stored = _by_table(tracker.store.copied_chunks(plan.number))
        copy_again(tracker, address(mysql8), plan, spool)
        assert stored == _by_table(spool)
    assert 2 == len(stored)


def test_a_lake_gets_the_rows_concerned_amid_a_copy(mysql8: Server, spark: SparkSession, tmp_path: Path) -> None:
    _fill(mysql8)
    path = copying_config(mysql8, tmp_path, backfill="{chunk_rows: 100, connections: 3}")
    for parent in (3, 7):
        with pytest.raises(SinkError):
            run(load_config(path), once=True, spark=spark, observer=on_written(ends_behind(2)))
        mysql8.sql(f"DELETE FROM c.p WHERE id = {parent}")
        mysql8.sql(f"UPDATE c.p SET id = {parent + 100} WHERE id = {parent + 1}")
        mysql8.sql(f"UPDATE c.child SET v = 9 WHERE id IN ({parent + 2}, {_ROWS - parent})")
    assert {} == run(load_config(path), once=True, spark=spark)

    for name in _KEYS:
        columns = [str(column) for column, *_ in mysql8.sql(f"DESCRIBE c.{name}")]
        theirs = sorted(mysql8.sql(f"SELECT {', '.join(columns)} FROM c.{name}"), key=str)
        mirror = spark.read.format("delta").load(f"{tmp_path}/lake/c_{name}").select(*columns).collect()
        assert theirs == sorted(map(tuple, mirror), key=str)
        folded: dict[tuple[Any, ...], int] = {}
        for op, *row in (
            spark.read.format("delta").load(f"{tmp_path}/lake/c_{name}_changes").select("op", *columns).collect()
        ):
            folded[tuple(row)] = folded.get(tuple(row), 0) + (1 if op in (Op.APPEND, Op.CORRECT_TO) else -1)
        assert theirs == sorted((row for row, count in folded.items() if count), key=str)
        assert {0, 1} >= set(folded.values())
    repairs = spark.read.format("delta").load(f"{tmp_path}/lake/historian_repairs").collect()
    assert repairs
    assert max(repair.rows_read for repair in repairs) < _ROWS // 4


def _by_table(bodies: Iterable[bytes]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for chunk in map(chunk_of, bodies):
        found.setdefault(chunk.table_id, []).extend(chunk.rows.to_pylist())
    return found


def _fill(server: Server) -> None:
    server.clear()
    for statement in _TABLES:
        server.sql(statement)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO c.p VALUES (%s, 0)", [(i,) for i in range(_PARENTS)])
        rows = [(i, i % _PARENTS) for i in range(_ROWS)]
        cursor.executemany("INSERT INTO c.child VALUES (%s, %s, 0)", rows)
        cursor.executemany("INSERT INTO c.nulled VALUES (%s, %s)", rows)
        cursor.executemany("INSERT INTO c.part VALUES (%s, %s, 0)", [(p, i // _PARENTS) for i, p in rows])


def _change(server: Server, rng: random.Random, count: int) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for _ in range(count):
            parent, other, row = rng.randrange(_PARENTS), rng.randrange(2 * _PARENTS), rng.randrange(_ROWS)
            statement = rng.choice(
                (
                    f"DELETE FROM c.p WHERE id = {parent}",
                    f"UPDATE c.p SET id = {other} WHERE id = {parent}",
                    f"INSERT INTO c.p VALUES ({parent}, 1)",
                    f"UPDATE c.child SET v = v + 1 WHERE id BETWEEN {row} AND {row + 3}",
                    f"UPDATE c.child SET id = {row + _ROWS // 2} WHERE id = {row}",
                    f"UPDATE c.child SET p = {parent} WHERE id = {row}",
                    f"DELETE FROM c.child WHERE id = {row}",
                    f"INSERT INTO c.child SELECT {row}, id, 5 FROM c.p WHERE id = {parent}",
                    f"INSERT INTO c.part SELECT id, {row % 40}, 5 FROM c.p WHERE id = {parent}",
                    f"UPDATE c.part SET v = v + 1 WHERE p = {parent} AND n < 3",
                    f"UPDATE c.nulled SET p = (SELECT MIN(id) FROM c.p WHERE id >= {parent}) WHERE id = {row}",
                )
            )
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                if error.args[0] not in _EXPECTED:
                    raise


def _compare(server: Server, oracle: CopyingOracle) -> None:
    frontiers = oracle.frontiers()
    ids = {name.table: snapshot.table_id for name, snapshot in oracle.mirror.snapshots().items()}
    for name, key in _KEYS.items():
        upto = frontiers.get(ids.get(name, 0))
        rows = server.sql(f"SELECT * FROM c.{name}")
        wanted = [
            row for row in rows if upto == "all" or (upto is not None and row[: len(key)] <= tuple(map(int, upto)))
        ]
        held = [] if name not in ids else oracle.mirror.rows(TableName("c", name)).to_pylist()
        assert sorted(wanted, key=str) == sorted((tuple(row.values()) for row in held), key=str), (name, upto)
