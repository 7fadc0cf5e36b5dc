"""``historian status`` tells where targets stand as the run noted it, without Spark. That is what the lake says."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.monitoring import targets
from connectors.monitoring.observer import Observer
from connectors.pipeline.opening import make_sinks
from connectors.pipeline.pipeline import Pipeline
from connectors.pipeline.run import run
from databases.servers import Server
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_what_is_noted_is_what_the_lake_says(
    mysql9: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mysql9.clear()
    mysql9.sql("CREATE DATABASE c")
    for table in ("t", "late", "gone", "stops"):
        mysql9.sql(f"CREATE TABLE c.{table} (id INT PRIMARY KEY, v INT)")
    path = copying_config(mysql9, tmp_path)
    late = '{"c.late": {mirror_every: 1 hour}, "c.stops": {evolution: {change_type: quarantine}}}'
    path.write_text(path.read_text().replace('lake"}', f'lake", tables: {late}}}'))
    assert {} == run(load_config(path), once=True, spark=spark)
    assert _same_as_in_the_lake(path, spark) == {"up to date"}

    for table in ("t", "late", "stops"):
        mysql9.sql(f"INSERT INTO c.{table} VALUES (1, 1)")
    mysql9.sql("DROP TABLE c.gone")
    mysql9.sql("ALTER TABLE c.stops MODIFY v SMALLINT")
    mysql9.sql("INSERT INTO c.stops VALUES (2, 2)")
    assert ["c.stops"] == list(run(load_config(path), once=True, spark=spark))
    assert _same_as_in_the_lake(path, spark) == {"up to date", "stopped", "ended"}

    shown = CliRunner().invoke(app, ["status", str(path)], env={"COLUMNS": "80"})
    assert shown.exit_code == 1
    last = shown.output.rstrip().splitlines()[-1]
    assert last.startswith("8 targets: ")
    assert last.endswith("(as the run noted; --targets asks the lake)")
    assert "c.t " in shown.output
    monkeypatch.setattr(targets, "MOST_LISTED", 2)
    some, everything = (CliRunner().invoke(app, ["status", str(path), *more]).output for more in ((), ("--all",)))
    assert ("c.t " in some, "c.stops " in some, "c.t " in everything) == (False, True, True)


def test_a_table_that_stops_shortly_before_quiet_is_noted(mysql9: Server, spark: SparkSession, tmp_path: Path) -> None:
    """And plans that no target has rows of leave targets up to date."""
    mysql9.clear()
    mysql9.sql("CREATE DATABASE c")
    mysql9.sql("CREATE DATABASE other")
    mysql9.sql("CREATE TABLE other.t (id INT)")
    for table in ("t", "stops"):
        mysql9.sql(f"CREATE TABLE c.{table} (id INT PRIMARY KEY, v INT)")
    path = copying_config(mysql9, tmp_path)
    path.write_text(path.read_text().replace('lake"}', 'lake", evolution: {change_type: quarantine}}'))
    config = load_config(path)
    with Pipeline.opened(config, spark, Observer()) as pipeline:
        pipeline.run(once=True, until=None, stopping=threading.Event())
        mysql9.sql("ALTER TABLE c.stops MODIFY v SMALLINT")
        mysql9.sql("INSERT INTO c.stops VALUES (2, 2)")
        # Of what a sink has stopped nothing is read again: others may have broken it.
        pipeline.run(once=True, until=None, stopping=threading.Event())
        for entry in (tmp_path / "lake" / "c_stops" / "_delta_log").iterdir():
            entry.write_text("broken")
        mysql9.sql("INSERT INTO c.t VALUES (1, 1)")
        pipeline.run(once=True, until=None, stopping=threading.Event())
        for number in range(3):
            mysql9.sql(f"INSERT INTO other.t VALUES ({number})")
            pipeline.run(once=True, until=None, stopping=threading.Event())

        shown = CliRunner().invoke(app, ["status", str(path)])
        assert (1, "4 targets: 2 up to date, 2 stopped") == (
            shown.exit_code,
            shown.output.splitlines()[-1].partition(" (")[0],
        )


def test_neither_spark_nor_kernels_are_loaded_for_it(mysql9: Server, spark: SparkSession, tmp_path: Path) -> None:
    mysql9.clear()
    mysql9.sql("CREATE DATABASE c")
    mysql9.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v INT)")
    path = copying_config(mysql9, tmp_path)
    assert {} == run(load_config(path), once=True, spark=spark)

    heavy = {"pyspark", "numba", "llvmlite", "pandas"}
    code = f"import sys\nfrom connectors.cli import app\ntry:\n    app(['status', {str(path)!r}])\nfinally:\n    assert not {heavy} & set(sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert "2 targets: 2 up to date" in done.stdout


def _same_as_in_the_lake(path: Path, spark: SparkSession) -> set[str]:
    """In what states the targets are, once what is noted of them is what the sink says."""
    found = json.loads(CliRunner().invoke(app, ["status", str(path), "--json"]).stdout)
    assert found["targets_noted"]
    (sink,) = make_sinks(load_config(path), spark)
    names = ("table", "target", "kind", "plan", "position", "stopped", "ended")
    lake = [{name: getattr(target, name) for name in names} for target in sink.status()]
    noted = [{name: row[name] for name in names} for row in found["targets"]]
    assert lake == noted
    last = found["last_plan"]["number"]
    return {
        "stopped" if row["stopped"] else "ended" if row["ended"] else "up to date" if row["plan"] == last else "behind"
        for row in noted
    }
