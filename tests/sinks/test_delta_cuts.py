"""A consistent cut is every table as it was at one position, whatever else stands in the tables' logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sinks
from historian.errors import ConfigError, PositionAhead, PositionExpired, SinkError, UnknownTable
from lake import Lake
from sink_lab import INT, UUID, Lab, text
from sinks.delta import faults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake(spark, tmp_path / "lake", Lab())
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


def test_a_stopped_table_is_left_out_from_its_stop_on_and_said_to_be(lake: Lake) -> None:
    lab = lake.lab
    lab.insert("shop.t", {"id": 2, "a": 2})
    lake.cut()
    lake.spark.sql(f"INSERT INTO delta.`{lake.path}/shop_t` VALUES (99, 99)")
    lab.insert("shop.t", {"id": 3, "a": 3})
    lab.insert("shop.u", {"id": 2})
    lake.cut()

    cut = sinks.consistent(lake.spark, lake.path)
    assert (3, ["shop.u"], ["shop.t"]) == (cut.plan, list(cut.mirror), list(cut.left_out))
    with pytest.raises(UnknownTable, match=r"no mirror of that table \(shop.t\).*changed by someone else"):
        cut.mirror["shop.t"]
    with pytest.raises(UnknownTable, match=r"expected one of shop\.u"):
        cut.changelog["shop.nowhere"]
    earlier = sinks.consistent(lake.spark, lake.path, at=lab.plans[1].end)
    assert [{"id": 1, "a": 1}, {"id": 2, "a": 2}] == _rows(earlier.mirror["shop.t"])
    assert {} == earlier.left_out


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
