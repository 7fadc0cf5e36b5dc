"""Commands that start Spark say what they do, and not what Spark says at its start."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from command_line import HISTORIAN
from connectors.spark.quiet import quiet_child

pytestmark = pytest.mark.spark
SHOP = Path(__file__).parents[3] / "examples" / "shop"
NOISE = ("WARN", "log4j", "log level", "incubator")


def _said(*command: str, directory: Path) -> str:
    done = subprocess.run([*HISTORIAN, *command], cwd=directory, capture_output=True, text=True, check=True)
    return done.stderr


@pytest.fixture
def config(tmp_path: Path) -> str:
    source = f"{{type: binlog-files, directory: {SHOP / 'binlog'}, tables: [shop.coupons]}}"
    (tmp_path / "shop.yaml").write_text(f"name: shop\nsource: {source}\nsinks: [{{type: delta, path: lake}}]\n")
    return "shop.yaml"


def test_a_run_tells_first_what_starts_and_where_and_spark_is_quiet(config: str, tmp_path: Path) -> None:
    first = _said("run", config, "--once", directory=tmp_path)
    again = _said("run", config, "--once", directory=tmp_path)

    assert first.startswith(
        "shop: replicates binlog files; begins at earliest, up to the log's present end; Spark starts\n"
    )
    assert again.startswith("shop: replicates binlog files; goes on behind plan 1, ")
    assert [] == [noise for noise in NOISE if noise in first + again + _said("status", config, directory=tmp_path)]


def test_debug_shows_what_spark_says(config: str, tmp_path: Path) -> None:
    assert "incubator" in _said("--debug", "run", config, "--once", directory=tmp_path)


def test_java_that_starts_beside_a_run_leaves_the_run_s_standard_error_alone(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    says = "import sys; sys.stderr.write('WARNING: Using incubator modules: one\\nheap is full\\n')"
    before = os.fstat(2)

    with quiet_child() as stderr:
        inside = os.fstat(2)
        assert stderr is not None
        os.write(2, b"an error of the run\n")
        subprocess.run([sys.executable, "-c", says], check=True, stderr=stderr)
    for thread in threading.enumerate():
        if thread.name == "historian stderr":
            thread.join(60)

    assert (before.st_dev, before.st_ino) == (inside.st_dev, inside.st_ino)
    assert "an error of the run\nheap is full\n" == capfd.readouterr().err
