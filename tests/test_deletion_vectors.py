"""What comparisons read of deletion vectors is what Spark has written there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from lakes.deletion_vectors import deleted_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BITMAP, RUN, LIST = "id < 70000 AND id % 2 = 0", "id BETWEEN 131072 AND 190000", "id IN (200000, 200003, 262150)"


@pytest.mark.parametrize("where", [LIST, f"({BITMAP}) OR {RUN} OR {LIST} OR id > 299990"])
def test_deleted_rows_are_those_that_spark_does_not_show(spark: SparkSession, tmp_path: Path, where: str) -> None:
    path = tmp_path / "t"
    properties = {"delta.enableDeletionVectors": "true"}
    spark.range(0, 300_000, 1, 1).write.format("delta").options(**properties).save(str(path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE {where}")

    (added,) = (json.loads(line)["add"] for line in _last_commit(path).splitlines() if '"add"' in line)
    ids = pq.read_table(path / added["path"]).column("id").to_pylist()
    deleted = [ids[at] for at in deleted_rows(path, added["deletionVector"])]

    there = set(spark.read.format("delta").load(str(path)).toArrow().column("id").to_pylist())
    assert sorted(set(ids) - there) == deleted
    assert len(deleted) > 2


def _last_commit(path: Path) -> str:
    return max((path / "_delta_log").glob("*.json")).read_text()
