"""A consistent cut is every table as it was at one position, whatever else stands in the tables' logs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

import sinks
from connectors.cli import app
from connectors.cli.terminal.outcome import ExitCode
from connectors.config import load_config
from connectors.pipeline.lakes import consistent
from historian.errors import ConfigError, PositionAhead, PositionExpired, SinkError, UnknownTable
from lakes.lake import Lake
from lakes.sink_lab import INT, UUID, Lab, text
from sinks.delta import faults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return _lake(spark, tmp_path / "lake")


def _lake(spark: SparkSession, path: Path) -> Lake:
    """A lake of two tables and one plan."""
    lake = Lake(spark, path, Lab())
    lake.lab.create("shop.t", {"id": INT, "a": INT})
    lake.lab.create("shop.u", {"id": INT})
    lake.lab.insert("shop.t", {"id": 1, "a": 1})
    lake.lab.insert("shop.u", {"id": 1})
    lake.cut()
    return lake


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in frame.collect()), key=repr)


def test_each_plan_has_its_cut_whatever_came_between(lake: Lake) -> None:
    lab = lake.lab
    noted = {1: (lab.rows("shop.t"), len(lab.log(1)))}
    for value in range(2, 5):  # only shop.t: shop.u stands at its own Delta version in every cut
        lab.insert("shop.t", {"id": value, "a": value})
        if value == 3:
            lab.add("shop.t", "late", INT, initial="7")
        plan = lake.cut()
        noted[plan.number] = (lab.rows("shop.t"), len(lab.log(1)))
        lake.spark.sql(f"OPTIMIZE delta.`{lake.path}/shop_t_changes`")
        lake.spark.sql(f"ALTER TABLE delta.`{lake.path}/shop_t` SET TBLPROPERTIES ('mine' = '{value}')")

    assert {1, 2, 3, 4} == set(noted)
    for number, (rows, logged) in noted.items():
        cut = sinks.consistent(lake.spark, lake.path, at=str(lab.plans[number - 1].end))
        assert (number, lab.plans[number - 1].end) == (cut.plan, cut.position)
        assert rows == _rows(cut.mirror["shop.t"])
        assert logged == cut.changelog["shop.t"].count()
    assert [{"id": 1}] == _rows(cut.mirror["shop.u"])
    newest = sinks.consistent(lake.spark, str(lake.path), kinds=["mirror"])
    assert (4, lab.rows("shop.t"), []) == (newest.plan, _rows(newest.mirror["shop.t"]), list(newest.changelog))
    assert {} == newest.left_out


def test_what_compaction_replaced_is_not_needed(lake: Lake) -> None:
    for value in (2, 3):
        lake.lab.insert("shop.t", {"id": value, "a": value})
        lake.cut()
    rows = lake.lab.rows("shop.t")
    path = f"delta.`{lake.path}/shop_t_changes`"
    lake.spark.sql(f"OPTIMIZE {path}")
    lake.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        lake.spark.sql(f"VACUUM {path} RETAIN 0 HOURS")
    finally:
        lake.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    lake.lab.insert("shop.t", {"id": 4, "a": 4})
    lake.cut()

    cut = sinks.consistent(lake.spark, lake.path, at=f"{UUID}:6")

    assert 3 == cut.plan
    assert rows == _rows(cut.changelog["shop.t"].select("id", "a"))


def test_a_transaction_asks_for_the_first_cut_that_has_it(lake: Lake) -> None:
    for value in (2, 3):
        lake.lab.insert("shop.t", {"id": value, "a": value})
        lake.cut()
    assert [f"{UUID}:1-4", f"{UUID}:1-5", f"{UUID}:1-6"] == [plan.end.gtids for plan in lake.lab.plans]

    assert [1, 1, 2, 3] == [sinks.consistent(lake.spark, lake.path, at=f"{UUID}:{n}").plan for n in (2, 4, 5, 6)]
    with pytest.raises(PositionAhead, match=rf"does not hold that position yet.*{UUID}:7"):
        sinks.consistent(lake.spark, lake.path, at=f"{UUID}:7")


def test_a_plan_that_is_half_written_is_in_no_cut(lake: Lake) -> None:
    lab = lake.lab
    lab.create("shop.new", {"id": INT})
    lab.rename(("shop.u", "shop.w"))
    lab.insert("shop.t", {"id": 2, "a": 2})
    reached: list[str] = []

    def crash(place: str) -> None:
        reached.append(place)
        if "files_written" in reached and reached[reached.index("files_written") :].count("commit_begun") > 1:
            raise _CrashError

    faults.arm(crash)
    with pytest.raises(_CrashError):
        lake.cut()
    faults.disarm()

    cut = sinks.consistent(lake.spark, lake.path)
    assert (1, ["shop.t", "shop.u"]) == (cut.plan, list(cut.mirror))
    assert ([{"id": 1, "a": 1}], 1) == (_rows(cut.mirror["shop.t"]), cut.changelog["shop.t"].count())
    with pytest.raises(PositionAhead):
        sinks.consistent(lake.spark, lake.path, at=lab.plans[1].end)
    lake.catch_up()
    cut = sinks.consistent(lake.spark, lake.path)
    assert (2, ["shop.new", "shop.t", "shop.w"]) == (cut.plan, list(cut.mirror))
    earlier = sinks.consistent(lake.spark, lake.path, at=lab.plans[0].end)
    assert ["shop.t", "shop.u"] == list(earlier.mirror)


class _CrashError(Exception):
    pass


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake of three plans, the last of which stops shop.t."""
    lake = _lake(spark, tmp_path_factory.mktemp("stopped") / "lake")
    lake.lab.insert("shop.t", {"id": 2, "a": 2})
    lake.cut()
    lake.spark.sql(f"INSERT INTO delta.`{lake.path}/shop_t` VALUES (99, 99)")
    lake.lab.insert("shop.t", {"id": 3, "a": 3})
    lake.lab.insert("shop.u", {"id": 2})
    lake.cut()
    return lake


def test_a_stopped_table_is_left_out_from_its_stop_on_and_said_to_be(stopped: Lake) -> None:
    cut = sinks.consistent(stopped.spark, stopped.path)
    assert (3, ["shop.u"], ["shop.t"]) == (cut.plan, list(cut.mirror), list(cut.left_out))
    with pytest.raises(UnknownTable, match=r"no mirror of that table \(shop.t\).*changed by someone else"):
        cut.mirror["shop.t"]
    with pytest.raises(UnknownTable, match=r"expected one of shop\.u"):
        cut.changelog["shop.nowhere"]
    earlier = sinks.consistent(stopped.spark, stopped.path, at=stopped.lab.plans[1].end)
    assert [{"id": 1, "a": 1}, {"id": 2, "a": 2}] == _rows(earlier.mirror["shop.t"])
    assert {} == earlier.left_out


@pytest.fixture
def config(stopped: Lake, tmp_path: Path) -> Path:
    """A configuration that writes the lake, and a file beside it."""
    return _config(tmp_path, f"[{{type: console}}, {{type: delta, path: {stopped.path}}}]")


def _config(directory: Path, sinks: str) -> Path:
    file = directory / "lab.yaml"
    file.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {directory}}}\nsinks: {sinks}\n")
    return file


def _shown(*words: object) -> Result:
    return CliRunner().invoke(app, ["cut", *map(str, words)])


def test_the_command_line_shows_a_cut(stopped: Lake, config: Path) -> None:
    second = _shown(config, "--at", f"{UUID}:5")
    newest = _shown(config)

    assert (0, "") == (second.exit_code, second.stderr), second.output
    lines = [re.sub("[│┃]", " ", line).split() for line in second.stdout.splitlines()]
    assert f"plan 2, up to {stopped.lab.plans[1].end}" == second.stdout.splitlines()[0]
    assert ["table", "kind", "version", "path"] == lines[2]
    cut = sinks.consistent(stopped.spark, stopped.path, at=stopped.lab.plans[1].end)
    assert [[t.name, t.kind, str(t.version), t.path] for t in cut.tables] == lines[4:]
    assert 4 == len(lines[4:])
    assert 0 == newest.exit_code
    assert ["shop.u", "shop.u"] == [line.split()[0] for line in newest.stdout.splitlines()[4:]]
    assert ["left out: shop.t", True] == [newest.stderr.splitlines()[0], "changed by someone else" in newest.stderr]


def test_the_command_line_prints_a_cut_as_json(stopped: Lake, config: Path) -> None:
    second = json.loads(_shown(config, "--at", f"{UUID}:5", "--json").stdout)
    newest = json.loads(_shown(config, "--json").stdout)

    assert ["plan", "position", "tables", "left_out"] == list(second)
    assert (2, f"{UUID}:1-5", {}) == (second["plan"], second["position"]["gtids"], second["left_out"])
    told = [(table["name"], table["kind"], Path(table["path"]).name) for table in second["tables"]]
    assert told == [
        ("shop.t", "changelog", "shop_t_changes"),
        ("shop.t", "mirror", "shop_t"),
        ("shop.u", "changelog", "shop_u_changes"),
        ("shop.u", "mirror", "shop_u"),
    ]
    mirror = second["tables"][1]
    rows = stopped.spark.read.format("delta").option("versionAsOf", mirror["version"]).load(mirror["path"])
    assert [{"id": 1, "a": 1}, {"id": 2, "a": 2}] == _rows(rows)
    assert (3, ["shop.t"], {"shop.u"}) == (newest["plan"], [*newest["left_out"]], {t["name"] for t in newest["tables"]})


def test_a_cut_that_cannot_be_had_ends_the_command(config: Path, tmp_path: Path) -> None:
    ahead = _shown(config, "--at", f"{UUID}:99")
    strange = _shown(config, "--at", "yesterday")
    nowhere = _shown(_config(tmp_path, f"[{{type: delta, path: {tmp_path}/nowhere}}]"))

    assert (ExitCode.STORE, True) == (ahead.exit_code, "the same command can be tried again" in ahead.stderr)
    assert (ExitCode.USAGE, ExitCode.SINK) == (strange.exit_code, nowhere.exit_code), strange.output + nowhere.output


def test_a_configuration_names_the_lake(stopped: Lake, config: Path, tmp_path: Path) -> None:
    spark, second = stopped.spark, stopped.lab.plans[1].end
    cut = consistent(spark, config, at=str(second), kinds=["mirror"])
    same = consistent(spark, load_config(config), at=second, kinds=["mirror"])

    assert (cut, cut.position) == (same, second)
    assert cut == sinks.consistent(spark, stopped.path, at=second, kinds=["mirror"])
    assert [{"id": 1}] == _rows(cut.mirror["shop.u"])
    two = f"[{{type: delta, path: {tmp_path}/a}}, {{type: delta, path: {tmp_path}/b}}]"
    for found, lakes in (("none", "[{type: console}]"), (f"{tmp_path}/a, {tmp_path}/b", two)):
        with pytest.raises(ConfigError, match=rf"expected one sink of type delta @ \$.sinks \(got {found}\)"):
            consistent(spark, _config(tmp_path, lakes))


def test_a_dropped_tables_successor_takes_its_place_in_later_cuts(lake: Lake) -> None:
    lab = lake.lab
    lab.drop("shop.t")
    lake.cut()
    lab.create("shop.t", {"id": INT, "b": text()})
    lab.insert("shop.t", {"id": 5, "b": "x"})
    lake.cut()

    cuts = [sinks.consistent(lake.spark, lake.path, at=plan.end) for plan in lab.plans]
    assert [["shop.t", "shop.u"], ["shop.u"], ["shop.t", "shop.u"]] == [list(cut.mirror) for cut in cuts]
    assert [{"id": 1, "a": 1}] == _rows(cuts[0].mirror["shop.t"])
    assert [{"id": 5, "b": "x"}] == _rows(cuts[2].mirror["shop.t"])


def test_a_log_that_was_cleaned_is_an_error(lake: Lake) -> None:
    for value in range(2, 14):
        lake.lab.insert("shop.t", {"id": value, "a": value})
        lake.cut()
    log = lake.path / "shop_t" / "_delta_log"
    assert (log / "00000000000000000010.checkpoint.parquet").exists() or list(log.glob("*10.checkpoint*"))
    for name in [path for path in log.iterdir() if path.name[:20].isdigit() and int(path.name[:20]) < 10]:
        name.unlink()

    assert 13 == sinks.consistent(lake.spark, lake.path).plan
    late = sinks.consistent(lake.spark, lake.path, at=lake.lab.plans[11].end)
    assert 12 == late.mirror["shop.t"].count()
    with pytest.raises(PositionExpired, match=r"not kept as it was.*plan 2 in .*shop_t"):
        sinks.consistent(lake.spark, lake.path, at=lake.lab.plans[1].end)


def test_what_cannot_be_read_is_an_error(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=r"no lake to read.*nowhere"):
        sinks.consistent(lake.spark, tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"expected one of changelog, mirror, history \(got 'views'\)"):
        sinks.consistent(lake.spark, lake.path, kinds=["mirror", "views"])
