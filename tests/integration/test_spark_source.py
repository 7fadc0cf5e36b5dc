"""``format("historian")`` gives the same rows at once and as a stream, in one process and on executors of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databases.servers import Server
from replicas.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPORT = Path(__file__).parent.parent / "support"


@pytest.fixture
def mysql9(fresh_server: Callable[..., Server]) -> Server:
    """A server of this test's own: the log of a shared one holds what other tests write."""
    return fresh_server("mysql9")


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """A database of the test's own: the log of a shared server never forgets a table."""
    return f"typed_{abs(hash(request.node.name)) % 10**6}"


@pytest.fixture
def replica(mysql9: Server, tmp_path: Path, database: str) -> Replica:
    """A connector on a table with a few versions."""
    for statement in (
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(8,2), at DATETIME(3))",
        f"INSERT INTO {database}.t VALUES (1, 'one', 1.50, '2024-02-29 12:00:00.123'), (2, 'zwölf', NULL, NULL)",
        f"ALTER TABLE {database}.t ADD COLUMN note VARCHAR(10) DEFAULT 'none' FIRST",
        f"UPDATE {database}.t SET price = 2.25 WHERE id = 2",
        f"UPDATE {database}.t SET id = 20 WHERE id = 1",
        f"ALTER TABLE {database}.t DROP COLUMN name",
        f"DELETE FROM {database}.t WHERE id = 2",
    ):
        mysql9.sql(statement)
    return Replica(mysql9, tmp_path / "typed", [database])


EXPECTED = [
    # op, id, note, price: of the last version, which earlier rows are projected to by column id
    (0, 1, "none", "1.50"),
    (0, 2, "none", None),
    (2, 2, "none", None),
    (3, 2, "none", "2.25"),
    (1, 1, "none", "1.50"),
    (0, 20, "none", "1.50"),
    (1, 2, "none", "2.25"),
]


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    ordered = table.to_pylist()
    ordered.sort(key=lambda row: (int(row["position"].rpartition(":")[2]), row["ordinal"]))
    return [(row["op"], row["id"], row["note"], None if row["price"] is None else str(row["price"])) for row in ordered]


@pytest.mark.slow
def test_executors_in_other_processes_give_the_same_rows(replica: Replica, database: str, tmp_path: Path) -> None:
    """local[2] and local-cluster[2,1,1024], batch and stream: four times the same rows."""
    found = {}
    for master in ("local[2]", "local-cluster[2,1,1024]"):
        output = tmp_path / master.partition("[")[0]
        command = [
            sys.executable,
            str(SUPPORT / "replicas" / "read_source.py"),
            master,
            str(replica.path),
            f"{database}.t",
            str(output),
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=os.environ)
        assert done.returncode == 0, done.stderr[-3000:]
        for kind in ("batch", "stream"):
            found[master, kind] = _rows(pq.read_table(f"{output}-{kind}.parquet"))
    assert set(map(tuple, found.values())) == {tuple(EXPECTED)}
    assert (tmp_path / "local-cluster-executors.txt").read_text() == "2"


@pytest.mark.slow
def test_an_edit_that_cannot_be_projected_ends_a_typed_read_at_its_position(
    replica: Replica, database: str, mysql9: Server, spark: SparkSession
) -> None:
    mysql9.sql(f"TRUNCATE TABLE {database}.t")
    rows = spark.read.format("historian").option("config", str(replica.path)).option("table", f"{database}.t").load()

    with pytest.raises(Exception, match=rf"TRUNCATE TABLE {database}\.t: rows went without row events"):
        rows.collect()


def test_options_are_checked_by_name(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"missing @ \$\.config"):
        spark.read.format("historian").option("tabel", "a.b").load()
    with pytest.raises(Exception, match=r"unknown option @ \$\.tabel"):
        spark.read.format("historian").option("tabel", "a.b").load()
