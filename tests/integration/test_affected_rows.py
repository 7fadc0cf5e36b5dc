"""Of the children of foreign keys that a server does not log, only the rows concerned are compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_delete_of_a_parent_reads_its_children_alone(mysql8: Server, spark: SparkSession, tmp_path: Path) -> None:
    server = mysql8
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.p (id INT PRIMARY KEY)")
    server.sql(
        "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE)"
    )
    server.sql("INSERT INTO c.p VALUES (1), (2), (3), (4)")
    for parent in (1, 2, 3, 4):
        values = ", ".join(f"({parent * 100 + i}, {parent}, 0)" for i in range(50))
        server.sql(f"INSERT INTO c.child VALUES {values}")
    path = copying_config(server, tmp_path)
    assert {} == run(load_config(path), once=True, spark=spark)

    server.sql("UPDATE c.child SET v = 1 WHERE id = 101")
    server.sql("UPDATE c.child SET v = 2 WHERE id = 201")
    server.sql("DELETE FROM c.p WHERE id = 2")
    assert {} == run(load_config(path), once=True, spark=spark)

    mirror = spark.read.format("delta").load(f"{tmp_path}/lake/c_child").select("id", "p", "v").collect()
    assert sorted(server.sql("SELECT id, p, v FROM c.child")) == sorted(map(tuple, mirror))
    (repair,) = spark.read.format("delta").load(f"{tmp_path}/lake/historian_repairs").collect()
    assert (1, 50, 1) == (repair.rows_read, repair.retracted, repair.corrected)
