"""Spark's executors SELECT the rows of a first copy, and one that is killed meanwhile costs no row."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from databases.servers import Server
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = Path(__file__).parent.parent / "support" / "replicas" / "copy_on_executors.py"
ROWS = 40_000


@pytest.mark.slow
def test_executors_select_the_rows_and_one_that_is_killed_costs_none(
    mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    mysql9.clear()
    mysql9.sql("CREATE DATABASE c")
    mysql9.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(1000))")
    with mysql9.connect() as connection, connection.cursor() as cursor:
        for first in range(0, ROWS, 5000):
            rows = [(i, f"{i} " * 150) for i in range(first, first + 5000)]
            cursor.executemany("INSERT INTO c.t VALUES (%s, %s)", rows)
        connection.commit()
    path = copying_config(mysql9, tmp_path, backfill="{connections: 2, chunk_rows: 10000}")

    command = [sys.executable, str(SCRIPT), str(path), "1"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=os.environ)

    assert done.returncode == 0, done.stderr[-3000:]
    killed, _, asked = done.stdout.strip().removeprefix("killed ").partition(", asked by ")
    assert (1, True) == (int(killed), int(asked.split()[0]) >= 2), done.stdout
    for target in ("c_t", "c_t_changes"):
        found = spark.read.format("delta").load(f"{tmp_path}/lake/{target}").select("id", "v").collect()
        assert sorted(mysql9.sql("SELECT id, v FROM c.t")) == sorted(map(tuple, found)), target
