"""``historian verify``: what differs between source and lake is found by value, and mended where that is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from connectors.backfill import splits
from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from replicas.first_copies import copying_config
from replicas.tracked import unlogged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def replicated(mysql8: Server, spark: SparkSession, tmp_path: Path) -> Path:
    mysql8.clear()
    mysql8.sql("CREATE DATABASE c")
    mysql8.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(20), f FLOAT)")
    mysql8.sql("CREATE TABLE c.u (id INT PRIMARY KEY)")
    mysql8.sql("INSERT INTO c.t VALUES (1, 'a', 1.1), (2, 'b', NULL), (3, 'c', 3.3)")
    path = copying_config(mysql8, tmp_path)
    assert {} == run(load_config(path), once=True, spark=spark)
    return path


def test_an_equal_lake_has_nothing_to_mend(replicated: Path) -> None:
    code, lines = _verify(replicated)

    assert 0 == code
    assert ["c.t: 3 rows", "c.u: 0 rows"] == [line.split(" at ")[0] for line in lines]


@pytest.mark.parametrize("least", [splits._EVEN_FROM_ROWS, 1], ids=["in one piece", "in pieces"])
def test_each_difference_is_printed_and_mended(
    mysql8: Server, replicated: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    monkeypatch.setattr(splits, "_EVEN_FROM_ROWS", least)
    unlogged(
        mysql8,
        "UPDATE c.t SET f = 1.2 WHERE id = 1",
        "DELETE FROM c.t WHERE id = 2",
        "INSERT INTO c.t VALUES (9, 'n', 0)",
        "INSERT INTO c.u VALUES (5)",
    )

    assert "c.u" not in "".join(_verify(replicated, "--table", "c.t")[1])
    code, lines = _verify(replicated, "--repair")
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    assert 1 == code
    assert [
        ("-C", {"id": 1, "v": "a", "f": 1.1}),
        ("+C", {"id": 1, "v": "a", "f": 1.2}),
        ("-R", {"id": 2, "v": "b", "f": None}),
        ("+A", {"id": 9, "v": "n", "f": 0.0}),
        ("+A", {"id": 5}),
    ] == [(row["op"], row["data"]) for row in rows]

    assert {} == run(load_config(replicated), once=True, spark=spark)
    assert 0 == _verify(replicated)[0]
    mirror = spark.read.format("delta").load(f"{tmp_path}/lake/c_t")
    assert [1, 3, 9] == sorted(row.id for row in mirror.collect())


def test_a_mirror_that_someone_else_wrote_to_is_told(
    mysql8: Server, replicated: Path, spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql(f"UPDATE delta.`{tmp_path}/lake/c_t` SET v = 'theirs' WHERE id = 3")
    versions = _versions(spark, tmp_path)

    code, lines = _verify(replicated, "--table", "c.t")
    assert 1 == code
    assert "c.t: c_t was changed by someone else: UPDATE at version" in lines[0]
    assert "`historian verify --table c.t --repair` puts back what was changed" in lines[1]
    assert versions == _versions(spark, tmp_path), "a comparison writes nothing"


def test_targets_that_a_gap_left_behind_are_told_and_brought_back(
    mysql8: Server, replicated: Path, spark: SparkSession, tmp_path: Path
) -> None:
    unlogged(mysql8, "ALTER TABLE c.t ADD hidden INT AFTER id")
    mysql8.sql("UPDATE c.t SET v = 'z' WHERE id = 1")
    run(load_config(replicated), once=True, spark=spark)
    done = CliRunner().invoke(app, ["heal", str(replicated), "--table", "c.t", "--no-repair"])
    assert 0 == done.exit_code, done.output
    mysql8.sql("UPDATE c.t SET v = 'y' WHERE id = 2")
    run(load_config(replicated), once=True, spark=spark)
    versions = _versions(spark, tmp_path)

    code, lines = _verify(replicated, "--table", "c.t")
    assert 1 == code
    assert "a target was left behind" in lines[0]
    assert "--repair" in lines[0]
    assert versions == _versions(spark, tmp_path), "a comparison writes nothing"

    assert "c.t: the next run compares" in _verify(replicated, "--table", "c.t", "--repair")[1][-1]
    assert {} == run(load_config(replicated), once=True, spark=spark)
    assert 0 == _verify(replicated)[0]
    mirror = spark.read.format("delta").load(f"{tmp_path}/lake/c_t")
    assert [(1, None, "z"), (2, None, "y"), (3, None, "c")] == sorted(
        (row.id, row.hidden, row.v) for row in mirror.collect()
    )


@pytest.mark.parametrize("kind", ["mysql8", "mariadb1011"])
def test_a_sample_compares_about_that_much_of_each_table(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """A dense number, a key of two columns, one without an order that targets tell, and a hashed one."""
    server: Server = request.getfixturevalue(kind)
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.dense (id INT PRIMARY KEY, v INT)")
    server.sql("CREATE TABLE c.hashed (id INT PRIMARY KEY, v INT)")
    server.sql("CREATE TABLE c.pairs (d DATE, id BIGINT, v INT, PRIMARY KEY (d, id))")
    server.sql("CREATE TABLE c.texts (id VARCHAR(20) PRIMARY KEY, v INT)")
    with server.connect() as connection, connection.cursor() as cursor:
        rows = [(f"2020-01-{1 + number % 9:02}", 7919 * number, number) for number in range(4000)]
        cursor.executemany("INSERT INTO c.pairs VALUES (%s, %s, %s)", rows)
        cursor.execute("INSERT INTO c.dense SELECT v, 0 FROM c.pairs")
        cursor.execute("INSERT INTO c.hashed SELECT v, 0 FROM c.pairs WHERE v < 9")
        cursor.execute("INSERT INTO c.texts SELECT v, 0 FROM c.pairs WHERE v < 9")
        connection.commit()
    server.sql("ANALYZE TABLE c.dense, c.pairs")
    path = copying_config(server, tmp_path)
    rules = '/lake", tables: {"c.hashed": {hash: {id: {salt: pepper}}}}}'
    path.write_text(path.read_text().replace('/lake"}', rules))
    assert {} == run(load_config(path), once=True, spark=spark)
    unlogged(server, "UPDATE c.dense SET v = 1", "UPDATE c.pairs SET v = -1")

    compared: dict[str, set[str]] = {"c.dense": set(), "c.pairs": set()}
    for percent, least, most in ((10, 150, 700), (1, 10, 100), (10, 150, 700)):
        code, lines = _verify(path, "--sample", str(percent))
        assert 1 == code, lines[-8:]
        told = [json.loads(line) for line in lines if line.startswith("{")]
        said = [line for line in lines if not line.startswith("{")]
        for table, found in compared.items():
            ids = [row["data"]["id"] for row in told if (row["table"], row["op"]) == (table, "+C")]
            assert least <= len(ids) <= most
            (line,) = (line for line in said if line.startswith(table))
            assert f"{len(ids)} of about " in line
            assert 3000 < int(line.split("of about ")[1].split()[0]) < 5000
            assert line.endswith(f"ranges of its key, {2 * len(ids)} changelog rows would mend its targets")
            found.add(str(sorted(ids)))
        for table in ("c.hashed", "c.texts"):
            whole, all_rows = (line for line in said if line.startswith(table))
            assert "compared as a whole" in whole
            assert f"{table}: 9 rows at" in all_rows
    # Of one table two samples of two parts in twenty may be the same by chance.
    assert sum(len(found) for found in compared.values()) >= 5, "others each time"

    assert 1 == _verify(path, "--sample", "5", "--repair")[0]
    assert {} == run(load_config(path), once=True, spark=spark)
    assert 0 == _verify(path, "--sample", "100")[0]
    assert 0 == _verify(path)[0]


def test_a_sample_of_nothing_is_refused(replicated: Path) -> None:
    assert 2 == _verify(replicated, "--sample", "0")[0]


def _versions(spark: SparkSession, tmp_path: Path) -> list[int]:
    tables = [f"{tmp_path}/lake/{name}" for name in ("c_t", "c_t_changes")]
    return [spark.sql(f"DESCRIBE HISTORY delta.`{table}`").count() for table in tables]


def _verify(path: Path, *arguments: str) -> tuple[int, list[str]]:
    done = CliRunner().invoke(app, ["verify", str(path), *arguments])
    return done.exit_code, done.output.splitlines()
