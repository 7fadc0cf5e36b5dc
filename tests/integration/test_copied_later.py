"""Tables that come into view of a connector that copies rows: their rows from before come too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from replicas.first_copies import copying_config

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
