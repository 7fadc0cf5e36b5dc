"""Tables that stop where rows changed without row events come back by themselves, with what differs alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from replicas.first_copies import copying_config
from replicas.tracked import unlogged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CASES = {
    "statements": (
        "SET SESSION binlog_format = 'STATEMENT'",
        "UPDATE t SET v = 'stmt' WHERE id < 10",
        "DELETE FROM t WHERE id = 50",
        "SET SESSION binlog_format = 'ROW'",
        "INSERT INTO t VALUES (500, 'x', 1)",
    ),
    "rewritten": ("ALTER TABLE t MODIFY n SMALLINT", "UPDATE t SET n = 7 WHERE id = 3"),
    "rewritten twice": (
        "ALTER TABLE t MODIFY n BIGINT",
        "UPDATE t SET n = 8 WHERE id = 3",
        "ALTER TABLE t MODIFY n INT",
        "ALTER TABLE t MODIFY n SMALLINT",
        "UPDATE t SET n = 7 WHERE id = 3",
    ),
    "computed": ("ALTER TABLE t ADD COLUMN g INT AUTO_INCREMENT, ADD KEY (g)", "DELETE FROM t WHERE id = 4"),
    "not_null": (
        "SET SESSION sql_mode = ''",
        "UPDATE t SET n = NULL WHERE id = 9",
        "ALTER TABLE t MODIFY n INT NOT NULL",
        "UPDATE t SET v = 'behind' WHERE id = 9",
    ),
}


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize("kind", ["mysql8", "mariadb1011"])
def test_a_table_comes_back(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str, case: str
) -> None:
    server: Server = request.getfixturevalue(kind)
    with _replicated(server, tmp_path) as lake:
        _run(lake, spark)
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("USE c")
            for statement in _CASES[case]:
                cursor.execute(statement)
            connection.commit()
        assert {} == _run(lake, spark)
        _compare(server, lake, spark)
        server.sql(
            "INSERT INTO c.t (id, v) VALUES (900, 'later')" if case != "not_null" else "DELETE FROM c.t WHERE id = 1"
        )
        assert {} == _run(lake, spark)
        _compare(server, lake, spark)
        repairs = spark.read.format("delta").load(f"{lake.parent}/lake/historian_repairs").collect()
        assert ["c.t"] == [row.table for row in repairs]


def test_rows_that_a_new_foreign_key_takes_go(mysql8: Server, spark: SparkSession, tmp_path: Path) -> None:
    with _replicated(mysql8, tmp_path) as lake:
        _run(lake, spark)
        mysql8.sql("CREATE TABLE c.p (id INT PRIMARY KEY)")
        mysql8.sql("INSERT INTO c.p SELECT id FROM c.t")
        mysql8.sql("ALTER TABLE c.t ADD FOREIGN KEY (id) REFERENCES c.p (id) ON DELETE CASCADE")
        mysql8.sql("DELETE FROM c.p WHERE id < 5")

        assert {} == _run(lake, spark)
        _compare(mysql8, lake, spark)


def test_a_healed_table_is_compared_with_the_source_where_that_is_asked_for(
    mysql8: Server, spark: SparkSession, tmp_path: Path
) -> None:
    with _replicated(mysql8, tmp_path) as lake:
        _run(lake, spark)
        unlogged(mysql8, "ALTER TABLE c.t ADD COLUMN w INT DEFAULT 7 FIRST", "UPDATE c.t SET v = 'unseen' WHERE id = 5")
        mysql8.sql("INSERT INTO c.t (id, v) VALUES (300, 'seen')")
        run(load_config(lake), once=True, spark=spark)
        mysql8.sql("DELETE FROM c.t WHERE id = 6")

        done = CliRunner().invoke(app, ["heal", str(lake), "--table", "c.t", "--repair"])
        assert 0 == done.exit_code, done.output
        assert "the next run gives its targets what differs" in done.output
        assert {} == _run(lake, spark)
        _compare(mysql8, lake, spark)


@contextmanager
def _replicated(server: Server, directory: Path) -> Iterator[Path]:
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO c.t VALUES (%s, %s, %s)", [(i, f"v{i}", i * 3) for i in range(100)])
        connection.commit()
    yield copying_config(server, directory)


def _run(path: Path, spark: SparkSession) -> dict[str, str]:
    return dict(run(load_config(path), once=True, spark=spark))


def _compare(server: Server, path: Path, spark: SparkSession) -> None:
    found = spark.read.format("delta").load(f"{path.parent}/lake/c_t")
    columns = [str(name) for (name,) in server.sql(_COLUMNS)]
    ours: list[tuple[Any, ...]] = sorted(tuple(row[name] for name in columns) for row in found.collect())
    assert sorted(server.sql(f"SELECT {', '.join(columns)} FROM c.t")) == ours


_COLUMNS = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'c' AND table_name = 't' ORDER BY ordinal_position"
