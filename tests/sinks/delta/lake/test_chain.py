"""A lake belongs to one connector, and each target holds an unbroken chain of its plans."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.errors import ChainBroken, SinkError
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab
from sinks.delta import DeltaSettings, DeltaSink, faults
from sinks.delta.lake.state_rows import STATE_SCHEMAS
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.settings import Compaction
from sinks.delta.targets import mirror

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("quiet")


def _go_on(lake: HeldLake) -> None:
    lake.lab.insert("shop.t", {"id": 2, "a": 2})
    lake.lab.insert("shop.other", {"id": 1})
    lake.cut()


def test_maintenance_does_not_break_the_chain(lake: HeldLake) -> None:
    _go_on(lake)
    for directory in ("shop_t", "shop_t_changes", "historian_plans", "historian_tables", "historian_schema_changes"):
        path = f"delta.`{lake.path / directory}`"
        lake.spark.sql(f"ALTER TABLE {path} SET TBLPROPERTIES ('delta.logRetentionDuration' = '90 days')")
        if directory in ("shop_t", "historian_plans"):
            lake.spark.sql(f"OPTIMIZE {path}")
        if directory == "historian_plans":
            lake.spark.sql(f"VACUUM {path}")
    lake.lab.insert("shop.t", {"id": 3, "a": 3})
    lake.cut()
    lake.reopen()
    lake.lab.insert("shop.t", {"id": 4, "a": 4})
    lake.cut()

    lake.check("shop.t")
    lake.read_by_spark("shop_t", "shop_t_changes")
    assert {} == lake.stopped()


@pytest.mark.parametrize("reopened", [False, True], ids=["in one run", "after a restart"])
def test_a_row_of_someone_else_stops_the_table(lake: HeldLake, reopened: bool) -> None:
    lake.spark.sql(f"INSERT INTO delta.`{lake.path}/shop_t` VALUES (99, 99)")
    if reopened:
        lake.reopen()
    _go_on(lake)

    stopped = lake.stopped()
    assert ["shop.t"] == list(stopped)
    assert "changed by someone else" in stopped["shop.t"]
    assert "WRITE" in stopped["shop.t"]
    assert [{"id": 1}] == lake.mirror("shop_other")


def test_a_restored_target_stops_the_table(lake: HeldLake) -> None:
    _go_on(lake)
    lake.spark.sql(f"RESTORE TABLE delta.`{lake.path}/shop_t_changes` TO VERSION AS OF 1")
    lake.reopen()
    lake.lab.insert("shop.t", {"id": 3, "a": 3})
    lake.cut()

    assert "RESTORE" in lake.stopped()["shop.t"]


def test_a_target_put_back_from_a_copy_stops_the_table(lake: HeldLake) -> None:
    shutil.copytree(lake.path / "shop_t", lake.path.parent / "copy")
    _go_on(lake)
    lake.reopen()
    shutil.rmtree(lake.path / "shop_t")
    shutil.copytree(lake.path.parent / "copy", lake.path / "shop_t")
    lake.lab.insert("shop.t", {"id": 3, "a": 3})
    lake.cut()

    assert "a plan is missing in a target" in lake.stopped()["shop.t"]
    assert "expected plan 2" in lake.stopped()["shop.t"]


def test_a_deleted_target_stops_the_table(lake: HeldLake) -> None:
    shutil.rmtree(lake.path / "shop_t_changes")
    _go_on(lake)

    assert "shop_t_changes" in lake.stopped()["shop.t"]


def test_a_place_that_is_taken_stops_the_table(lake: HeldLake) -> None:
    lake.spark.range(3).write.format("delta").save(str(lake.path / "shop_new"))
    lake.lab.create("shop.new", {"id": INT})
    lake.lab.insert("shop.new", {"id": 1})
    _go_on(lake)

    assert ["shop.new"] == list(lake.stopped())
    assert "taken by another table" in lake.stopped()["shop.new"]
    assert 3 == len(lake.mirror("shop_new"))


def test_a_stopped_tables_successor_does_not_use_its_targets(lake: HeldLake) -> None:
    lake.spark.sql(f"DELETE FROM delta.`{lake.path}/shop_t`")
    lake.lab.drop("shop.t")
    lake.lab.create("shop.t", {"id": INT})
    lake.lab.insert("shop.t", {"id": 5})
    lake.cut()
    lake.lab.drop("shop.t")
    lake.lab.create("shop.t", {"id": INT})
    lake.lab.insert("shop.t", {"id": 6})
    lake.cut()

    assert [] == lake.mirror("shop_t")
    assert [{"id": 6}] == lake.mirror("shop_t__t4")


def test_another_connector_is_refused(lake: HeldLake) -> None:
    with pytest.raises(SinkError, match=r"made by another connector.*expected warehouse; found shop"):
        DeltaSink(lake.spark, lake.settings).open("warehouse")


def test_other_kinds_of_tables_are_refused(lake: HeldLake) -> None:
    settings = DeltaSettings(path=str(lake.path), mirror=None)

    with pytest.raises(SinkError, match="expected changelog; found changelog,mirror"):
        DeltaSink(lake.spark, settings).open("shop")


def test_plans_that_do_not_fit_are_refused(lake: HeldLake) -> None:
    lab, plan = lake.lab, lake.lab.plans[0]
    _go_on(lake)
    for other, message in [
        (replace(plan, connector="warehouse"), "of a connector that the sink was not opened for"),
        (replace(plan, number=4, previous=3), "a plan is missing in the lake"),
        (replace(plan, number=3, previous=1), "a plan is missing in the lake"),
        (replace(plan, system_time_us=1), "not the one that the lake recorded"),
        (replace(lab.plans[1], system_time_us=1), "not the one that the lake recorded"),
    ]:
        with pytest.raises(SinkError, match=message), lab.delivered(plan) as chunks:
            lake.sink.write(other, lab.timeline, chunks)
    with pytest.raises(ChainBroken, match=r"rows.*instead of"), lab.delivered(plan) as chunks:
        lake.sink.write(lab.plans[1], lab.timeline, chunks)


def test_rows_that_a_plan_does_not_name_are_refused(lake: HeldLake) -> None:
    plan = lake.lab.cut()
    stray = replace(lake.lab.chunks[1][0], table_id=77)
    lake.lab.chunks[2] = [stray]

    with pytest.raises(SinkError, match=r"does not name.*77"), lake.lab.delivered(plan) as chunks:
        lake.sink.write(plan, lake.lab.timeline, chunks)
    assert 1 == lake.reopen().open("shop")


def test_what_the_lake_holds_is_recovered(lake: HeldLake) -> None:
    _go_on(lake)
    sink = DeltaSink(lake.spark, lake.settings)

    recovered = sink.recover()

    assert recovered is not None
    assert ("shop", lake.lab.plans, lake.lab.entries) == (
        recovered.connector,
        list(recovered.plans),
        list(recovered.timeline),
    )
    assert list(lake.sink.status()) == list(sink.status())
    assert [2, 2, 2, 2] == [status.plan for status in sink.status()]
    assert (1, 1) == (sink.held(), lake.sink.held())  # plan 2 may be half written
    assert {str(lake.lab.plans[1].end)} == {status.position for status in sink.status()}


def test_nothing_is_recovered_where_nothing_is(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(spark, DeltaSettings(path=str(tmp_path / "none")))

    assert sink.recover() is None
    assert () == sink.status()
    assert 0 == sink.held()
    assert not (tmp_path / "none").exists()


def test_schema_changes_of_a_plan_that_never_came_are_dropped(lake: HeldLake) -> None:
    lab = lake.lab
    lab.add("shop.t", "b", INT)
    faults.arm(_crash_at("schema_changes_recorded"))
    with pytest.raises(_CrashError):
        lake.cut()
    faults.disarm()
    assert 3 == lake.spark.read.format("delta").load(f"{lake.path}/historian_schema_changes").count()
    lab.plans.pop()
    lake.reopen()

    recovered = lake.sink.recover()

    assert recovered is not None
    assert lab.entries[:2] == list(recovered.timeline)
    assert 2 == lake.spark.read.format("delta").load(f"{lake.path}/historian_schema_changes").count()


def test_the_lakes_own_tables_are_compacted_at_a_start(lake: HeldLake, monkeypatch: pytest.MonkeyPatch) -> None:
    _go_on(lake)
    lake.lab.insert("shop.t", {"id": 30, "a": 3})
    lake.cut()
    monkeypatch.setattr("sinks.delta.lake.state._MANY_FILES", Compaction(files=2, target_bytes=1_000_000))
    lake.reopen()
    plans = lake.spark.read.format("delta").load(f"{lake.path}/historian_plans")
    assert 1 == len(plans.inputFiles())
    lake.lab.insert("shop.t", {"id": 3, "a": 3})
    lake.cut()

    assert [1, 2, 3, 4] == [row.plan for row in plans.orderBy("plan").collect()]
    recovered = lake.sink.recover()
    assert recovered is not None
    assert lake.lab.plans == list(recovered.plans)


def test_a_merge_leaves_no_setting_in_the_session(lake: HeldLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "taken_up", lambda *_: None)
    lake.lab.update("shop.t", {"id": 1, "a": 1}, a=2)
    lake.cut()

    lake.check("shop.t")
    names = ("write.txnAppId", "write.txnVersion", "commitInfo.userMetadata")
    assert not {f"spark.databricks.delta.{name}" for name in names} & lake.spark.conf.getAll.keys()


def test_plans_say_their_transactions_and_versions(lake: HeldLake) -> None:
    _go_on(lake)
    row = lake.spark.read.format("delta").load(f"{lake.path}/historian_plans").where("plan = 2").collect()[0]

    assert "3e11fa47-71ca-11e1-9e33-c80aa9429562:4-5" == row.gtids
    assert '{"shop.other":[2],"shop.t":[1]}' == row.schema_versions
    assert '{"1":1,"2":1}' == row.rows
    assert '{"shop.other":{"+A":1},"shop.t":{"+A":1}}' == row.operations


@pytest.mark.parametrize("on_executors", [False, True])
def test_plans_say_what_their_rows_do(spark: SparkSession, tmp_path: Path, on_executors: bool) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), tables=(("shop.t", (("where", "a > 0"),)),))
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.create("shop.u", {"id": INT, "a": INT})
    for name in ("shop.t", "shop.u"):
        lab.insert(name, {"id": 1, "a": 1}, {"id": 2, "a": 0}, {"id": 3, "a": 2})
        lab.update(name, {"id": 1, "a": 1}, a=5)
        lab.update(name, {"id": 2, "a": 0}, a=5)
        lab.delete(name, {"id": 3, "a": 2})
    lab.rename(("shop.u", "shop.v"))
    lake.cut(on_executors=on_executors)

    [row] = spark.read.format("delta").load(f"{lake.path}/historian_plans").collect()
    assert {
        "shop.t": {"+A": 3, "-R": 1, "-C": 1, "+C": 1},
        "shop.v": {"+A": 3, "-R": 1, "-C": 2, "+C": 2},
    } == json.loads(row.operations)


def test_a_lake_older_than_a_column_of_its_plans_goes_on_without_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = tuple(f for f in STATE_SCHEMAS["historian_plans"].fields if f.name != "operations")
    with monkeypatch.context() as older:
        older.setitem(STATE_SCHEMAS, "historian_plans", DeltaSchema(fields))
        lake = HeldLake(spark, tmp_path / "lake", Lab())
    lake.lab.create("shop.t", {"id": INT})
    lake.lab.insert("shop.t", {"id": 1})
    lake.cut()
    lake.reopen()

    lake.check("shop.t")
    [row] = spark.read.format("delta").load(f"{lake.path}/historian_plans").collect()
    assert ("operations" in row, row.rows) == (False, '{"1":1}')


class _CrashError(Exception):
    pass


def _crash_at(wanted: str):  # noqa: ANN202
    def fault(place: str) -> None:
        if place == wanted:
            raise _CrashError(place)

    return fault


def test_each_table_has_the_kinds_of_the_name_that_it_came_with(spark: SparkSession, tmp_path: Path) -> None:
    kept = {"mirror": None, "history": "{table}_history"}
    rules: dict[str, Any] = {
        "tables": (("shop.kept", tuple(kept.items())), ("shop.soft", (("mirror_deletes", "soft"),)))
    }
    lake = HeldLake(spark, tmp_path / "lake", Lab(), **rules)
    for name in ("shop.kept", "shop.soft", "shop.plain"):
        lake.lab.create(name, {"id": INT, "a": INT})
        lake.lab.insert(name, {"id": 1, "a": 1}, {"id": 2, "a": 2})
    lake.cut()
    lake.lab.rename(("shop.kept", "shop.named"))
    for name in ("shop.named", "shop.soft", "shop.plain"):
        lake.lab.delete(name, {"id": 1, "a": 1})
    lake.reopen()
    lake.cut()

    made = {path.name for path in lake.path.iterdir() if not path.name.startswith("historian_")}
    assert {
        "shop_kept_changes",
        "kept_history",
        "shop_soft_changes",
        "shop_soft",
        "shop_plain_changes",
        "shop_plain",
    } == made
    assert [1, 2] == sorted(row["id"] for row in lake.mirror("shop_soft"))
    assert [{"id": 2, "a": 2}] == lake.mirror("shop_plain")
    assert [None] == [row.to_offset for row in lake.history("kept_history") if row.to_offset is None]

    with pytest.raises(SinkError, match="targets were made for other kinds of tables") as raised:
        HeldLake(spark, tmp_path / "lake", lake.lab)
    assert (raised.value.expected, raised.value.found) == ("changelog,mirror", "changelog,history")
