"""Rows whose images lack columns reach changelog and mirror: what is absent is named, what is known is right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": INT, "a": text(), "b": INT, "c": text()}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> HeldLake:
    return HeldLake(spark, tmp_path / "lake", Lab())


def row(key: int, **values: Any) -> dict[str, Any]:
    return {"id": key, "a": f"a{key}", "b": key, "c": None, **values}


@pytest.mark.parametrize("small_bytes", [pytest.param(8 << 20, id="rewritten"), pytest.param(-1, id="merged")])
def test_a_mirror_sets_what_is_there_and_keeps_the_rest(
    lake: HeldLake, small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sinks.delta.rewrite.held_rows.SMALL_BYTES", small_bytes)
    lab = lake.lab
    lab.create("shop.orders", COLUMNS)
    lab.insert("shop.orders", *(row(key, c=f"c{key}") for key in range(9)))
    lake.cut()
    lab.update_part("shop.orders", {"id": 1}, b=10)
    lab.update_part("shop.orders", {"id": 1}, a=None)
    lab.flush()
    lab.update_part("shop.orders", {"id": 1}, b=12)
    lab.update("shop.orders", row(2, c="c2"), b=20)
    lab.update_part("shop.orders", {"id": 2}, c="changed")
    lab.update_part("shop.orders", {"id": 3}, id=30, a="moved")
    lab.update_part("shop.orders", {"id": 30}, id=300)
    lab.update_part("shop.orders", {"id": 300}, c="thrice")
    lab.delete("shop.orders", row(4, c="c4"))
    lab.update_part("shop.orders", {"id": 5}, id=4)
    lab.insert("shop.orders", row(5, a="new"))
    lab.update_part("shop.orders", {"id": 5}, b=None)
    lab.update_part("shop.orders", {"id": 6}, id=77)
    lab.update_part("shop.orders", {"id": 7}, id=6)
    lab.update_part("shop.orders", {"id": 77}, id=7)
    lab.delete("shop.orders", row(8, c="c8"))
    lake.cut()

    lake.check("shop.orders")
    assert {} == lake.stopped()
    columns = lake.columns("shop_orders_changes")
    assert ["schema_version bigint", "absent array<string>", "unseen array<string>", "id int"] == columns[4:8]

    lab.update("shop.orders", row(0, c="c0"), a="whole again")
    lab.rename_column("shop.orders", "c", "d")
    lab.update_part("shop.orders", {"id": 0}, b=1)
    lab.add("shop.orders", "e", INT, initial="5")
    lab.update_part("shop.orders", {"id": 0}, a="w")
    lab.update_part("shop.orders", {"id": 7}, e=6)
    lake.cut()
    lake.check("shop.orders")
    lake.read_by_spark("shop_orders", "shop_orders_changes")


def test_a_column_that_changed_unseen_stops_the_mirror_unless_it_is_seen_in_the_same_plan(lake: HeldLake) -> None:
    lab = lake.lab
    for name in ("shop.orders", "shop.items"):
        lab.create(name, COLUMNS)
        lab.insert(name, row(1))
    lake.cut()
    lab.update_part("shop.orders", {"id": 1}, unseen=["c"], b=10)
    lab.update_part("shop.orders", {"id": 1}, c="seen")
    lab.update_part("shop.items", {"id": 1}, unseen=["c"], b=10)
    lake.cut()

    lake.check("shop.orders")
    assert ["shop.items"] == list(lake.stopped())
    assert (
        "columns of a row changed, and its images do not tell to what ({'id': 1}, columns c)"
        in lake.stopped()["shop.items"]
    )
    assert [{**row(1)}] == lake.mirror("shop_items")
    assert lake.log("shop_items_changes") == lab.log(lab.table_id("shop.items"))


@pytest.mark.parametrize("small_bytes", [pytest.param(8 << 20, id="rewritten"), pytest.param(-1, id="merged")])
def test_a_partial_row_that_the_mirror_lacks_stops_it(
    lake: HeldLake, small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lake.lab
    for name in ("shop.orders", "shop.items"):
        lab.create(name, COLUMNS)
        lab.insert(name, row(1))
    lab.tables[lab.table_id("shop.items")].pending.clear()
    lab.insert("shop.items", row(2))
    lake.cut()
    lab.update_part("shop.orders", {"id": 1}, b=2)
    lab.update_part("shop.items", {"id": 1}, b=2)
    with monkeypatch.context() as patch:
        patch.setattr("sinks.delta.rewrite.held_rows.SMALL_BYTES", small_bytes)
        lake.cut()

    lake.check("shop.orders")
    assert ["shop.items"] == list(lake.stopped())
    assert "a change of a row that the mirror lacks" in lake.stopped()["shop.items"]
    assert [row(2)] == lake.mirror("shop_items")


def test_a_column_of_the_name_stops_only_a_table_that_needs_it(lake: HeldLake) -> None:
    lab = lake.lab
    for name in ("shop.orders", "shop.items"):
        lab.create(name, {"id": INT, "absent": INT, "b": INT})
        lab.insert(name, {"id": 1, "absent": 1, "b": 1})
    lake.cut()
    lab.update_part("shop.orders", {"id": 1}, b=2)
    lake.cut()

    lake.check("shop.items")
    assert ["shop.orders"] == list(lake.stopped())
    assert "a data column is named like a column of the changelog" in lake.stopped()["shop.orders"]


@pytest.mark.parametrize("on_executors", [False, True], ids=["here", "on executors"])
@pytest.mark.parametrize("rules", [{}, {"where": "b > 0", "compute": (("d", "b + 1"),)}], ids=["", "expressions"])
def test_columns_that_are_left_out_may_be_absent(
    spark: SparkSession, tmp_path: Path, rules: dict[str, Any], on_executors: bool
) -> None:
    tables = tuple((name, (("exclude", ("c",)), *rules.items())) for name in ("shop.orders", "shop.items"))
    lake = HeldLake(spark, tmp_path / "lake", Lab(), tables=tables, history="{database}_{table}_history")
    lab = lake.lab
    for name in ("shop.orders", "shop.items"):
        lab.create(name, COLUMNS)
        lab.insert(name, row(1), row(2))
    lake.cut(on_executors=on_executors)
    lab.update_part("shop.orders", {"id": 1, "a": "a1", "b": 1}, b=7)
    lab.update_part("shop.items", {"id": 1, "a": "a1"}, a="b is absent")
    lake.cut(on_executors=on_executors)

    more = {"d": 8} if rules else {}
    assert {"id": 1, "a": "a1", "b": 7, **more} in lake.mirror("shop_orders")
    assert [1, 3] == sorted(one.from_offset for one in lake.history("shop_orders_history") if one.to_offset is None)
    assert ["shop.items"] == list(lake.stopped())
    assert not {"absent array<string>"} & set(lake.columns("shop_orders_changes"))


def test_what_truncate_takes_back_must_be_told(spark: SparkSession, tmp_path: Path) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), mirror=None)
    lab = lake.lab
    for name in ("shop.orders", "shop.items"):
        lab.create(name, COLUMNS)
        lab.insert(name, row(1), row(2))
        lab.update_part(name, {"id": 1}, b=2)
    lab.update("shop.orders", row(1, b=2), b=3)
    lab.update("shop.orders", row(2), b=3)
    lake.cut()
    lab.truncate("shop.orders")
    lab.truncate("shop.items")
    lake.cut()

    assert lake.log("shop_orders_changes") == lab.log(lab.table_id("shop.orders"))
    assert ["shop.items"] == list(lake.stopped())
    assert "rows that the changelog does not tell whole" in lake.stopped()["shop.items"]
