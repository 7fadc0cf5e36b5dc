"""A mirror that Spark writes gets a new column's default in a run whose first need of Spark that is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).parents[1] / "support"
SCRIPT = """
import sys
from pathlib import Path

from connectors.spark.jvm_s3 import jars_for
from lakes.lake import Lake
from lakes.sink_lab import INT, Lab
from sinks.session import late_session

lab = Lab()
lab.create("shop.t", {"id": INT, "a": INT})
lab.insert("shop.t", {"id": 1, "a": 1})
lab.cut()
lab.add("shop.t", "n", INT, initial="7")
lab.cut()
spark = late_session(jars=jars_for([]), master="local[1]", name="late", settings={"spark.ui.enabled": "false"})
lake = Lake(spark, Path(sys.argv[1]), lab, writer="spark")
assert not spark.is_made, "somebody needed it before"
lake.write(lab.plans[lake.held])
print(lake.held, lake.mirror("shop_t"))
"""


def test_a_run_that_only_adds_a_column_with_a_default_makes_its_session_for_that(tmp_path: Path) -> None:
    assert "0 [{'id': 1, 'a': 1}]" == _written(tmp_path)

    assert "1 [{'id': 1, 'a': 1, 'n': 7}]" == _written(tmp_path)


def _written(lake: Path) -> str:
    """What a process of its own tells that writes the next plan."""
    environment = os.environ | {"PYTHONPATH": str(SUPPORT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, lake], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]
