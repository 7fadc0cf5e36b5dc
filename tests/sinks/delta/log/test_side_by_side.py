"""Tables of a plan are written side by side: none waits for another, and what one meets is its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab
from sinks.delta import faults
from sinks.delta.log.side_by_side import own_session, side_by_side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("quiet")

WAIT_S = 120


def _lake(spark: SparkSession, path: Path, count: int, **settings: object) -> tuple[HeldLake, list[str]]:
    """A lake of *count* tables with one row each."""
    lake = HeldLake(spark, path / "lake", Lab(), **settings)
    names = [f"shop.t{number}" for number in range(count)]
    for name in names:
        lake.lab.create(name, {"id": INT, "a": INT})
        lake.lab.insert(name, {"id": 1, "a": 1})
    lake.cut()
    return lake, names


def _change(lake: HeldLake, names: list[str]) -> None:
    for name in names:
        lake.lab.update(name, lake.lab.rows(name)[0], a=2 + len(lake.lab.plans))
        lake.lab.insert(name, {"id": 2 + len(lake.lab.plans), "a": 1})


def _meet(place: str) -> Callable[[str, str], None]:
    """A fault that lets none of two go on before both are at *place*."""
    barrier = threading.Barrier(2)

    def fault(reached: str, at: str) -> None:
        if reached == place:
            barrier.wait(WAIT_S)

    return fault


def test_a_small_plan_of_many_tables_takes_no_job_of_sparks(spark: SparkSession, tmp_path: Path) -> None:
    """Neither rows that come nor ones that change; each job would cost a table what its commit does."""
    jobs = spark.sparkContext.statusTracker()
    lake, names = _lake(spark, tmp_path, 12, history="{database}_{table}_history")
    before = set(jobs.getJobIdsForGroup())
    _change(lake, names)
    lake.cut()
    during = set(jobs.getJobIdsForGroup()) - before

    assert during == set()
    lake.check_all()
    spark.range(1).collect()
    assert len(set(jobs.getJobIdsForGroup()) - before) > 0


def test_results_stand_in_order_though_later_items_end_first() -> None:
    later = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert later.wait(WAIT_S)
        else:
            later.set()
        return item * 2

    assert side_by_side(work, [0, 1]) == [0, 2]


def test_an_error_is_raised_when_all_that_were_begun_have_ended() -> None:
    failing, ended = threading.Event(), threading.Event()

    def work(item: int) -> None:
        if item == 0:
            assert failing.wait(WAIT_S)
            ended.set()
        else:
            failing.set()
            raise KeyboardInterrupt("second")

    with pytest.raises(KeyboardInterrupt, match="second"):
        side_by_side(work, [0, 1])
    assert ended.is_set()


def test_one_item_is_worked_at_by_the_caller() -> None:
    assert side_by_side(lambda _: threading.get_ident(), [0]) == [threading.get_ident()]


def test_commits_of_two_tables_do_not_wait_for_each_other(spark: SparkSession, tmp_path: Path) -> None:
    lake, names = _lake(spark, tmp_path, 2)
    for place in ("changelog_committed", "mirror_taken_up", "mirror_committed"):
        _change(lake, names)
        faults.arm_at(_meet(place))
        lake.cut()
        faults.disarm()
    lake.check(*names)


def test_merges_by_spark_side_by_side_carry_each_their_own_identifier(spark: SparkSession, tmp_path: Path) -> None:
    lake, names = _lake(spark, tmp_path, 2, table_properties=(("delta.enableChangeDataFeed", "true"),))
    _change(lake, names)
    faults.arm_at(_meet("statement_begun"))
    lake.cut()
    faults.disarm()
    lake.check(*names)
    lake.read_by_spark("shop_t0", "shop_t1_changes")
    assert lake.reopen().open("shop") == 2
    assert lake.stopped() == {}
    assert "spark.databricks.delta.write.txnAppId" not in spark.conf.getAll


def test_a_thread_has_a_session_like_the_callers(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone") or ""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        together = threading.Barrier(2)

        def own(_: int) -> tuple[SparkSession, str | None]:
            together.wait(WAIT_S)
            assert own_session(spark) is own_session(spark)
            return own_session(spark), own_session(spark).conf.get("spark.sql.session.timeZone")

        (one, zone), (other, _) = side_by_side(own, [0, 1])
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert zone == "Asia/Tokyo"
    assert len({id(one._jsparkSession), id(other._jsparkSession), id(spark._jsparkSession)}) == 3
    assert own_session(spark) is spark


def test_tables_that_stop_among_many_leave_the_others(spark: SparkSession, tmp_path: Path) -> None:
    lake, names = _lake(spark, tmp_path, 4)
    for stopped in ("shop_t1", "shop_t3_changes"):
        spark.range(1).selectExpr("cast(id as int) as id").write.format("delta").mode("append").option(
            "mergeSchema", "true"
        ).save(str(tmp_path / "lake" / stopped))
    _change(lake, names)
    lake.cut()
    assert set(lake.stopped()) == {"shop.t1", "shop.t3"}
    others = [name for name in names if name not in ("shop.t1", "shop.t3")]
    _change(lake, others)
    lake.cut()
    lake.check(*others)


def test_a_crash_in_one_of_many_tables_is_made_good(spark: SparkSession, tmp_path: Path) -> None:
    lake, names = _lake(spark, tmp_path, 4)
    for place, table in (("changelog_committed", "t3_changes"), ("commit_begun", "t2 "), ("mirror_committed", "t1 ")):
        _change(lake, names)

        def fault(reached: str, at: str, wanted: tuple[str, str] = (place, table)) -> None:
            if reached == wanted[0] and wanted[1] in at:
                raise KeyboardInterrupt

        faults.arm_at(fault)
        with pytest.raises(KeyboardInterrupt):
            lake.cut()
        faults.disarm()
        lake.catch_up()
    lake.check_all()
