"""``historian backfill --where``: rows for which a condition holds at the source are compared, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from connectors.backfill import rows_of_keys
from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.recovery import repairing_rows
from databases.servers import Server
from replicas.first_copies import copying_config
from replicas.tracked import unlogged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 60


@pytest.fixture(params=["mysql57", "mysql9", "mariadb118"])
def filled(request: pytest.FixtureRequest) -> Server:
    database: Server = request.getfixturevalue(request.param)
    database.clear()
    database.sql("CREATE DATABASE c")
    database.sql(
        "CREATE TABLE c.t (d DECIMAL(5,2), b VARBINARY(8), id INT, v VARCHAR(20), at TIMESTAMP NULL, PRIMARY KEY (d, b, id))"
    )
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+05:00'")
        rows = [(i / 4, bytes([0, 255, i]), i, f"v{i}", "2020-01-01 05:00:00") for i in range(_ROWS)]
        cursor.executemany("INSERT INTO c.t VALUES (%s, %s, %s, %s, %s)", rows)
        connection.commit()
    return database


def test_rows_of_a_condition_are_compared_and_no_others(
    filled: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copying_config(filled, tmp_path)
    assert {} == run(load_config(path), once=True, spark=spark)
    unlogged(
        filled, "UPDATE c.t SET v = 'unseen' WHERE id < 50", "INSERT INTO c.t VALUES (9.99, 'new', 9, 'unseen', NULL)"
    )
    # What the log tells behind the last plan is no part of what is compared.
    filled.sql("UPDATE c.t SET v = 'logged' WHERE id = 12")
    filled.sql("DELETE FROM c.t WHERE id = 13")
    monkeypatch.setattr(rows_of_keys, "_PLAN_ROWS", 4)

    condition = "id BETWEEN 9 AND 20 AND v LIKE '%e%' AND (at = '2020-01-01 00:00:00' OR at IS NULL) -- of '%s'"
    code, said = _backfill(path, "--table", "c.t", "--where", condition)
    assert (0, True) == (code, "holds for 12 rows; the next run gives its targets what differs, in 3 plans" in said), (
        said
    )
    filled.sql("DELETE FROM c.t WHERE id = 14")
    assert {} == run(load_config(path), once=True, spark=spark)

    mirror = spark.read.format("delta").load(f"{tmp_path}/lake/c_t").collect()
    held = {(row.d, bytes(row.b), row.id): row.v for row in mirror}
    there = {(d, bytes(b), i): v for d, b, i, v, _ in filled.sql("SELECT * FROM c.t")}
    compared = {key: v for key, v in there.items() if 9 <= key[-1] <= 20}
    assert compared == {key: v for key, v in held.items() if 9 <= key[-1] <= 20}
    assert {f"v{i}" for i in range(_ROWS) if not 9 <= i <= 20} == {
        v for key, v in held.items() if not 9 <= key[-1] <= 20
    }
    code, said = _backfill(path, "--table", "c.t", "--where", "id > 1000")
    assert (0, True) == (code, "holds for 0 rows; nothing is compared" in said), said
    repairs = spark.read.format("delta").load(f"{tmp_path}/lake/historian_repairs").orderBy("plan").collect()
    assert [4, 4, 4] == [row.rows_read for row in repairs]
    assert all(row.reason == f"copied again where {condition}" for row in repairs)


@pytest.mark.parametrize("filled", ["mysql9"], indirect=True)
def test_a_condition_that_cannot_be_taken_is_told_with_a_next_step(
    filled: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.sql("CREATE TABLE c.words (word VARCHAR(20) PRIMARY KEY)")
    filled.sql("CREATE TABLE c.bag (word VARCHAR(20))")
    path = copying_config(filled, tmp_path)
    assert {} == run(load_config(path), once=True, spark=spark)
    monkeypatch.setattr(repairing_rows, "MOST_ROWS", 10)
    for table, condition, reason in (
        ("c.words", "word = 'a'", "its key's values are compared by the server alone"),
        ("c.bag", "word = 'a'", "no primary key"),
        ("c.t", "nowhere = 1", "nowhere"),
        ("c.t", "id < 1) OR (1", "the condition holds for too many rows"),
        ("c.t", "id IN (", "the server refuses a statement"),
    ):
        code, said = _backfill(path, "--table", table, "--where", condition)
        assert (True, True) == (code not in (0, 70), reason in " ".join(said.split())), said
    for wrong in (
        ("--where", "1"),
        ("--table", "c.t", "--table", "c.bag", "--where", "1"),
        ("--cancel", "--table", "c.t", "--where", "1"),
    ):
        assert 2 == _backfill(path, *wrong)[0]

    path.write_text(path.read_text().replace('lake"}', 'lake", tables: {"c.t": {mask: {v: none}}}}'))
    code, said = _backfill(path, "--table", "c.t", "--where", "id = 1")
    assert (True, True) == (code not in (0, 70), "do not tell the table's rows by the source's values" in said), said


def _backfill(path: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["backfill", str(path), *arguments])
    return done.exit_code, done.output
