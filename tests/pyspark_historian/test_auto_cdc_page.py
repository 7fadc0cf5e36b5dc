"""docs/how-to/auto-cdc.md: what it prepares is right, and what Spark refuses it still refuses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from connectors.spark.jvm import delta_jars
from lakes.lake import Lake
from lakes.sink_lab import INT, Lab, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "auto-cdc.md").read_text()
LOG = "lake/shop_products_changes"
# Spark tries a flow thrice and waits in between; what it refuses, it refuses at once.
QUICK = """
spark.sql.pipelines.maxFlowRetryAttempts 0
spark.databricks.delta.snapshotPartitions 1
spark.sql.shuffle.partitions 2
"""


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake(spark, tmp_path / "lake", Lab())
    lab = lake.lab
    lab.create("shop.products", {"id": INT, "a": text()})
    lab.insert("shop.products", *({"id": i, "a": "x"} for i in range(5)))
    lab.update("shop.products", {"id": 1, "a": "x"}, a="y")
    lab.update("shop.products", {"id": 2, "a": "x"}, id=7)
    lab.delete("shop.products", {"id": 3, "a": "x"})
    lake.cut()
    lab.truncate("shop.products")
    lab.insert("shop.products", {"id": 3, "a": "z"}, {"id": 8, "a": "w"})
    lake.cut()
    return lake


def test_the_last_row_of_each_key_by_its_sequence_is_the_mirror(lake: Lake) -> None:
    """What AUTO CDC does with the page's arguments, by hand."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    keys, sequence, deletes = (_argument(name) for name in ("keys", "sequence_by", "apply_as_deletes"))
    changes = lake.spark.read.format("delta").load(str(lake.path / "shop_products_changes")).where("op <> 2")
    last = changes.groupBy(*eval(keys)).agg(F.max_by(F.struct(*changes.columns), eval(sequence)).alias("last"))
    rows = last.select("last.*").where(f"NOT ({eval(deletes)})").drop(*eval(_argument("except_column_list")))
    expected = lake.spark.read.format("delta").load(str(lake.path / "shop_products"))

    assert sorted(map(tuple, rows.collect())) == sorted(map(tuple, expected.collect())) == [(3, "z"), (8, "w")]


@pytest.mark.slow
def test_spark_still_refuses_the_last_step(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "products.py").write_text(_block("python").replace(LOG, str(tmp_path / LOG)))
    specification = _block("yaml").replace("/srv/pipelines/products", str(tmp_path / "storage"))
    (tmp_path / "spark-pipeline.yml").write_text(specification)
    settings = re.sub(r"^spark\.jars\.packages .*", f"spark.jars {','.join(map(str, delta_jars()))}", _block(""))
    (tmp_path / "spark-defaults.conf").write_text(settings + QUICK)
    location = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(location), "SPARK_CONF_DIR": str(tmp_path)}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    command = [str(location / "bin" / "spark-pipelines"), "run"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )

    assert "AUTOCDC_TARGET_DOES_NOT_SUPPORT_MERGE" in done.stdout + done.stderr, (done.stdout + done.stderr)[-3000:]


def _argument(name: str) -> str:
    found = re.search(rf"^    {name}=(.*),$", PAGE, re.MULTILINE)
    assert found is not None
    return found[1]


def _block(kind: str) -> str:
    found = re.search(rf"(?:\n\n|\A)```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]
