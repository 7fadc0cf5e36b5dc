"""Repairs of tables that are shaped, that have stopped, that are shards, and in sinks that cannot compare rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from historian.plans.plans import Plan, PlannedVersion
from historian.schema.snapshots import ColumnType
from lakes.held_rows import HeldLake
from lakes.repaired import check_repaired
from lakes.sink_lab import INT, Lab, text
from sinks.parquet import ParquetSettings, ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORY = "{database}_{table}_history"


def test_rows_are_compared_in_the_shape_of_the_lake(spark: SparkSession, tmp_path: Path) -> None:
    """A masked column that differs at the source alone is no difference, and a row that is filtered away is gone."""
    rules = (("mask", (("note", "*"),)), ("compute", (("twice", "a * 2"),)), ("where", "a < 10"))
    lake = HeldLake(spark, tmp_path / "lake", Lab(), history=HISTORY, tables=(("shop.t", rules),))
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": INT, "note": text()})
    lab.insert("shop.t", *({"id": n, "a": n, "note": f"n{n}"} for n in range(4)))
    lake.cut()
    rows = [{"id": n, "a": n, "note": f"other {n}"} for n in range(4)]
    lab.unlogged("shop.t", rows[0], rows[1] | {"a": 5}, rows[2] | {"a": 11}, {"id": 9, "a": 9, "note": ""})
    lake.write(lab.cut({"shop.t": "a test"}))

    told = [(row["op"], row["id"], row["a"], row["twice"]) for row in lake.raw_log("shop_t_changes")[4:]]
    assert told == [(2, 1, 1, 2), (3, 1, 5, 10), (1, 2, 2, 4), (1, 3, 3, 6), (0, 9, 9, 18)]
    shown = sorted((row["id"], row["a"], row["twice"]) for row in lake.mirror("shop_t"))
    assert shown == [(0, 0, 0), (1, 5, 10), (9, 9, 18)]
    assert lake.stopped() == {}


def test_a_table_that_stopped_goes_on_where_the_plan_says_from_where(
    spark: SparkSession, tmp_path: Path, quiet: None
) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), history=HISTORY)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", {"id": 1, "a": 1}, {"id": 2, "a": 2})
    lake.cut()
    lab.retype("shop.t", "a", text(), cut=True)
    lab.insert("shop.t", {"id": 3, "a": "3"})
    lake.cut()
    lab.rename_column("shop.t", "a", "b")
    lake.cut()
    assert set(lake.stopped()) == {"shop.t"}
    lab.unlogged("shop.t", {"id": 1, "b": "1"}, {"id": 3, "b": "3"})
    lab.cut({"shop.t": "a stop"})
    lab.plans[-1] = _going_on(lab, behind=1)
    lake.write(lab.plans[-1])
    lab.insert("shop.t", {"id": 4, "b": "4"})
    lake.cut()

    assert lake.stopped() == {}
    assert lake.columns("shop_t") == ["id int", "b string"]
    assert sorted((row["id"], row["b"]) for row in lake.mirror("shop_t")) == [(1, "1"), (3, "3"), (4, "4")]
    told = [(row["op"], row["id"], row["b"]) for row in lake.raw_log("shop_t_changes")]
    assert told[2:] == [(2, 1, None), (3, 1, "1"), (1, 2, None), (0, 3, "3"), (0, 4, "4")]
    still = [row.values for row in lake.history("shop_t_history") if row.to_offset is None]
    assert [(1, "1"), (3, "3"), (4, "4")] == [tuple(values.values()) for values in still]


def _going_on(lab: Lab, *, behind: int) -> Plan:
    """The last plan with the table's versions since plan *behind*, which its targets hold."""
    plan = lab.plans[-1]
    versions: list[PlannedVersion] = []
    segment = 0
    for earlier in lab.plans[behind:]:
        before, *placed = earlier.tables[0].versions
        versions += [] if versions else [before]
        versions += [replace(version, segment=segment + version.segment) for version in placed]
        segment = versions[-1].segment
    lab.chunks[plan.number] = [replace(chunk, segment=segment) for chunk in lab.chunks[plan.number]]
    return replace(plan, tables=(replace(plan.tables[0], versions=tuple(versions), behind=behind),))


def test_a_group_of_shards_stops_where_one_of_them_is_repaired(
    spark: SparkSession, tmp_path: Path, quiet: None
) -> None:
    into = ("into", ("shop.orders", (("shard", "{database}"),)))
    lake = HeldLake(spark, tmp_path / "lake", Lab(), tables=(("shop_*.orders", (into,)),))
    lab = lake.lab
    for name in ("shop_a.orders", "shop_b.orders"):
        lab.create(name, {"id": INT})
        lab.insert(name, {"id": 1})
    lake.cut()
    held = lake.raw_log("shop_orders_changes")
    lab.unlogged("shop_b.orders", {"id": 2})
    plan = lab.cut({"shop_b.orders": "a test"})
    lake.write(plan)
    lake.catch_up()

    assert "a shard cannot be repaired" in lake.stopped()["shop.orders"]
    assert held == lake.raw_log("shop_orders_changes")


def test_files_of_changelogs_are_not_repaired(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab()
    for name in ("shop.t", "shop.u"):
        lab.create(name, {"id": INT})
        lab.insert(name, {"id": 1})
    lab.cut()
    lab.unlogged("shop.t", {"id": 2})
    lab.insert("shop.u", {"id": 2})
    lab.cut({"shop.t": "a test"})
    sink = ParquetSink(spark, ParquetSettings(path=str(tmp_path)))
    sink.open("shop")
    for plan in lab.plans:
        with lab.delivered(plan) as chunks:
            sink.write(plan, lab.timeline, chunks)

    assert ["shop.t"] == list(sink.stopped())
    assert "a repair compares rows" in sink.stopped()["shop.t"]
    assert [1, 2] == [len([*(tmp_path / f"shop_{name}_changes").glob("[0-9]*")]) for name in "tu"]


def test_a_table_with_variants_stops(spark: SparkSession, tmp_path: Path, quiet: None) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab())
    lake.lab.create("shop.t", {"id": INT, "j": ColumnType(name="json", options="variant")})
    lake.lab.insert("shop.t", {"id": 1, "j": "{}"})
    lake.cut()
    lake.write(lake.lab.cut({"shop.t": "a test"}))

    assert "VARIANT values do not compare" in lake.stopped()["shop.t"]


def test_a_table_that_a_repair_begins_is_copied(spark: SparkSession, tmp_path: Path) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), history=HISTORY)
    lab = lake.lab
    lab.create("shop.t", {"id": INT})
    lab.unlogged("shop.t", {"id": 1}, {"id": 2})
    lake.write(lab.cut({"shop.t": "a test"}))

    assert [(0, 1), (0, 2)] == [(row["op"], row["id"]) for row in lake.raw_log("shop_t_changes")]
    check_repaired(lake, "shop.t")


@pytest.mark.parametrize("rows", [(), ({"id": 5},)])
def test_a_statement_that_takes_all_rows_in_the_plan_leaves_the_rest_to_the_repair(
    spark: SparkSession, tmp_path: Path, rows: tuple[dict[str, int], ...]
) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), history=HISTORY)
    lab = lake.lab
    lab.create("shop.t", {"id": INT})
    lab.insert("shop.t", {"id": 1}, {"id": 5})
    lake.cut()
    lab.truncate("shop.t")
    lab.insert("shop.t", {"id": 7})
    lab.unlogged("shop.t", *rows)
    lake.write(lab.cut({"shop.t": "a test"}))

    taken = [(1, 1), (1, 5), *((0, row["id"]) for row in rows)]
    assert taken == [(row["op"], row["id"]) for row in lake.raw_log("shop_t_changes")[2:]]
    assert [*rows] == lake.mirror("shop_t")
    assert lake.stopped() == {}
