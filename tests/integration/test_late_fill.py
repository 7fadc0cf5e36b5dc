"""A mirror that Spark writes gets a new column's default in a run whose first need of Spark that is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lakes.lake import Lake
from lakes.sink_lab import INT, Lab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPORT = Path(__file__).parents[1] / "support"
SCRIPT = f"""
import sys
from runpy import run_path

run_path({__file__!r})["write_late"](sys.argv[1])
"""


def test_a_run_that_only_adds_a_column_with_a_default_makes_its_session_for_that(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = _lab()
    lake = Lake(spark, tmp_path, lab, writer="spark")
    lake.write(lab.plans[0])
    assert [{"id": 1, "a": 1}] == lake.mirror("shop_t")

    environment = os.environ | {"PYTHONPATH": str(SUPPORT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path], capture_output=True, text=True, check=False, env=environment
    )

    assert done.returncode == 0, done.stderr
    assert "1 [{'id': 1, 'a': 1, 'n': 7}]" == done.stdout.splitlines()[-1]


def _lab() -> Lab:
    """Two plans: a row, and a column with a default."""
    lab = Lab()
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", {"id": 1, "a": 1})
    lab.cut()
    lab.add("shop.t", "n", INT, initial="7")
    lab.cut()
    return lab


def write_late(directory: str) -> None:
    """What a process of its own does: the second plan, in a session that is made when something needs it."""
    from connectors.spark.jvm_s3 import jars_for
    from sinks.session import late_session

    lab = _lab()
    spark = late_session(jars=jars_for([]), master="local[1]", name="late", settings={"spark.ui.enabled": "false"})
    lake = Lake(spark, Path(directory), lab, writer="spark")
    assert not spark.is_made, "somebody needed it before"
    lake.write(lab.plans[lake.held])
    print(lake.held, lake.mirror("shop_t"))
