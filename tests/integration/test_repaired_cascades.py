"""Rows that foreign keys change on servers which do not log that: each plan holds them as the source does."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pymysql
import pytest

from connectors.config import CopyLimits, load_config
from connectors.pipeline.run import run
from databases.servers import Server
from historian.changelog.operations import Op
from replicas.copying_oracle import CopyingOracle
from replicas.first_copies import copying_config
from workload.seeds import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES = (
    "CREATE DATABASE c",
    "CREATE DATABASE x",
    "CREATE TABLE c.p (id INT PRIMARY KEY, code VARCHAR(10) NOT NULL UNIQUE, v INT)",
    "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE c.nulled (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL)",
    "CREATE TABLE c.grand (id INT PRIMARY KEY, child INT, FOREIGN KEY (child) REFERENCES c.child (id) ON DELETE CASCADE)",
    "CREATE TABLE c.coded (id INT PRIMARY KEY, code VARCHAR(10), FOREIGN KEY (code) REFERENCES c.p (code) ON UPDATE CASCADE ON DELETE CASCADE)",
    "CREATE TABLE c.tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES c.tree (id) ON DELETE CASCADE)",
    "CREATE TABLE c.plain (id INT PRIMARY KEY, p INT)",
    "CREATE TABLE x.between (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE)",
    "CREATE TABLE c.below (id INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES x.between (id) ON DELETE CASCADE)",
)
_NAMES = ("p", "child", "nulled", "grand", "coded", "tree", "plain", "below")
_KEYS = 40
_EXPECTED = (1062, 1146, 1205, 1213, 1451, 1452)
"""Duplicate key, a table that was renamed, lock wait, deadlock, and what foreign keys refuse."""


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("kind", ["mysql57", "mysql8", "mariadb118", "mysql9"])
def test_children_of_cascades_are_what_the_source_holds(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    server: Server = request.getfixturevalue(kind)
    for seed in seeds([1]):
        rng = random.Random(seed)
        server.clear()
        for statement in _TABLES:
            server.sql(statement)
        _change(server, rng, 150)
        (tmp_path / str(seed)).mkdir()
        path = copying_config(server, tmp_path / str(seed))
        for number in range(5):
            if number == 2:
                server.sql("ALTER TABLE c.plain ADD FOREIGN KEY f (p) REFERENCES c.p (id) ON DELETE CASCADE")
            if number == 3:
                server.sql("RENAME TABLE c.p TO c.q, x.between TO x.mid")
                server.sql("RENAME TABLE c.q TO c.p")
            assert {} == run(load_config(path), once=True, spark=spark)
            _compare(server, path, spark)
            _change(server, rng, 60)
            server.sql("DELETE c.plain FROM c.plain LEFT JOIN c.p ON c.p.id = c.plain.p WHERE c.p.id IS NULL")
        run(load_config(path), once=True, spark=spark)
        _compare(server, path, spark)
        _check_changelogs(path, spark)
        assert (kind != "mysql9") == (path.parent / "lake" / "historian_repairs").exists()


@pytest.mark.parametrize("kind", ["mysql57", "mysql8", "mariadb105", "mariadb118"])
def test_children_are_followed_under_load(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    server: Server = request.getfixturevalue(kind)
    for seed in seeds([1]):
        server.clear()
        for statement in _TABLES:
            server.sql(statement)
        _change(server, random.Random(seed), 200)
        oracle = CopyingOracle(server, tmp_path / str(seed), CopyLimits(chunk_rows=10, connections=2), "c")
        (tmp_path / str(seed)).mkdir()
        stop = threading.Event()

        def write(number: int, seed: int = seed, stop: threading.Event = stop) -> None:
            rng = random.Random(f"{seed} {number}")
            while not stop.is_set():
                _change(server, rng, 20)

        with ThreadPoolExecutor(3) as pool:
            writers = [pool.submit(write, number) for number in range(3)]
            try:
                for _ in range(12):
                    oracle.run(plans=1)
            finally:
                stop.set()
        for writer in writers:
            writer.result()
        oracle.run()
        assert {} == oracle.stopped
        assert {} == oracle.differences("c")
        assert oracle.repaired > 3


def test_a_foreign_key_that_comes_and_goes_within_a_plan_counts(mysql8: Server, tmp_path: Path) -> None:
    mysql8.clear()
    for statement in _TABLES:
        mysql8.sql(statement)
    mysql8.sql("INSERT INTO c.p VALUES (1, 'a', 1), (2, 'b', 2)")
    mysql8.sql("INSERT INTO c.plain VALUES (1, 1), (2, 2)")
    oracle = CopyingOracle(mysql8, tmp_path, CopyLimits(), "c")
    oracle.run()
    mysql8.sql("ALTER TABLE c.plain ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE")
    mysql8.sql("DELETE FROM c.p WHERE id = 1")
    mysql8.sql("ALTER TABLE c.plain DROP FOREIGN KEY f")
    mysql8.sql("DELETE FROM c.p WHERE id = 2")
    oracle.run()

    assert {} == oracle.differences("c")
    assert oracle.repaired > 0


def _change(server: Server, rng: random.Random, count: int) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for _ in range(count):
            key, other = rng.randrange(_KEYS), rng.randrange(_KEYS)
            statement = rng.choice(
                (
                    f"INSERT INTO c.p VALUES ({key}, 'k{key}', {other})",
                    f"INSERT INTO c.p VALUES ({key}, 'k{key}', {other})",
                    f"UPDATE c.p SET v = v + 1 WHERE id = {key}",
                    f"DELETE FROM c.p WHERE id = {key}",
                    f"REPLACE INTO c.p VALUES ({key}, 'k{key}', {other})",
                    f"UPDATE c.p SET code = 'n{other}' WHERE id = {key}",
                    f"INSERT INTO c.child SELECT {other}, {key}, 1 FROM c.p WHERE id = {key}",
                    f"INSERT INTO c.nulled SELECT {other}, {key} FROM c.p WHERE id = {key}",
                    f"INSERT INTO c.grand SELECT {other}, id FROM c.child WHERE p = {key} LIMIT 1",
                    f"INSERT INTO c.coded SELECT {other}, code FROM c.p WHERE id = {key}",
                    f"INSERT INTO c.tree SELECT {other}, id FROM c.tree WHERE id = {key}",
                    f"INSERT INTO c.tree VALUES ({other}, NULL)",
                    f"DELETE FROM c.tree WHERE id = {key}",
                    f"INSERT INTO x.between SELECT {other}, {key} FROM c.p WHERE id = {key}",
                    f"INSERT INTO c.below SELECT {other}, id FROM x.between WHERE p = {key} LIMIT 1",
                    f"UPDATE c.child SET v = v + 1 WHERE p = {key}",
                )
            )
            try:
                cursor.execute(statement)
            except pymysql.err.MySQLError as error:
                if error.args[0] not in _EXPECTED:
                    raise
            if rng.random() < 0.5:
                connection.commit()
        connection.commit()


def _compare(server: Server, path: Path, spark: SparkSession) -> None:
    for name in _NAMES:
        columns = [str(column[0]) for column in server.sql(f"SHOW COLUMNS FROM c.{name}")]
        found = spark.read.format("delta").load(f"{path.parent}/lake/c_{name}").collect()
        ours = Counter(tuple(row[column] for column in columns) for row in found)
        assert Counter(server.sql(f"SELECT {', '.join(columns)} FROM c.{name}")) == ours, name


def _check_changelogs(path: Path, spark: SparkSession) -> None:
    """Each row that is taken back is there as it is, none comes twice, and what is left is the mirror."""
    for name in _NAMES:
        changes = spark.read.format("delta").load(f"{path.parent}/lake/c_{name}_changes").orderBy("offset")
        held: dict[int, tuple[object, ...]] = {}
        for op, *values in changes.drop("offset", "system_time", "event_time", "schema_version").collect():
            if op in (Op.RETRACT, Op.CORRECT_FROM):
                assert tuple(values) == held.pop(values[0]), name
            else:
                assert held.setdefault(values[0], tuple(values)) == tuple(values), name
        mirror = spark.read.format("delta").load(f"{path.parent}/lake/c_{name}").collect()
        assert {row.id: tuple(row) for row in mirror} == held, name
