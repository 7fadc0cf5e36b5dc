"""Rows reach changelog and mirror: order, offsets, net change, replay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from historian.schema.snapshots import ColumnType
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> HeldLake:
    return HeldLake(spark, tmp_path / "lake", Lab())


def test_a_plan_becomes_changelog_and_mirror_rows(lake: HeldLake) -> None:
    lab = lake.lab
    lab.create("shop.orders", {"id": INT, "a": text()})
    lab.insert("shop.orders", *({"id": i, "a": f"v{i}"} for i in range(5)))
    lake.cut()
    lab.update("shop.orders", {"id": 1, "a": "v1"}, a="w")
    lab.delete("shop.orders", {"id": 2, "a": "v2"})
    lab.insert("shop.orders", {"id": 9, "a": None})
    lab.update("shop.orders", {"id": 3, "a": "v3"}, id=30)
    lake.cut()

    lake.check("shop.orders")
    lake.read_by_spark("shop_orders", "shop_orders_changes")
    assert {} == lake.stopped()


def test_several_changes_of_a_key_in_one_plan_come_to_its_last_image(lake: HeldLake) -> None:
    lab = lake.lab
    lab.create("shop.orders", {"id": INT, "a": text()})
    lab.insert("shop.orders", {"id": 1, "a": "x"}, {"id": 2, "a": "x"}, {"id": 3, "a": "x"})
    lake.cut()
    lab.delete("shop.orders", {"id": 1, "a": "x"})
    lab.insert("shop.orders", {"id": 1, "a": "y"})
    lab.update("shop.orders", {"id": 1, "a": "y"}, a="z")
    lab.insert("shop.orders", {"id": 7, "a": "short"})
    lab.delete("shop.orders", {"id": 7, "a": "short"})
    lab.update("shop.orders", {"id": 2, "a": "x"}, id=3000)
    lab.delete("shop.orders", {"id": 3, "a": "x"})
    lake.cut()

    lake.check("shop.orders")


def test_keys_compare_as_stored_bytes(lake: HeldLake) -> None:
    lab = lake.lab
    lab.create("shop.words", {"w": text(), "b": ColumnType(name="varbinary", length=8), "n": INT}, key=("w", "b"))
    lab.insert("shop.words", {"w": "a", "b": b"\xff", "n": 1}, {"w": "a ", "b": b"\xff", "n": 2})
    lake.cut()
    lab.update("shop.words", {"w": "a", "b": b"\xff", "n": 1}, w="A")
    lab.update("shop.words", {"w": "a ", "b": b"\xff", "n": 2}, n=3)
    lab.insert("shop.words", {"w": "A", "b": b"", "n": 4})
    lake.cut()

    lake.check("shop.words")
    lake.read_by_spark("shop_words")


def test_a_plan_written_again_changes_nothing(lake: HeldLake) -> None:
    lab = lake.lab
    lab.create("shop.orders", {"id": INT, "a": text()})
    lab.insert("shop.orders", {"id": 1, "a": "x"})
    first = lake.cut()
    lab.update("shop.orders", {"id": 1, "a": "x"}, a="y")
    second = lake.cut()
    versions = [lake.versions(d) for d in ("shop_orders", "shop_orders_changes", "historian_plans")]

    for plan in (first, second, second):
        lake.write(plan)
    lake.reopen()
    lake.write(second)

    assert 2 == lake.held
    assert versions == [lake.versions(d) for d in ("shop_orders", "shop_orders_changes", "historian_plans")]
    lake.check("shop.orders")


def test_many_chunks_in_any_partition_keep_log_order(lake: HeldLake) -> None:
    lab = lake.lab
    lab.create("shop.orders", {"id": INT, "a": text()})
    lab.create("shop.items", {"id": INT, "a": text()})
    for i in range(40):
        lab.insert("shop.orders", {"id": i, "a": "x"})
        lab.update("shop.orders", {"id": i // 2 * 2, "a": "x"}, a="x")
        lab.insert("shop.items", {"id": i, "a": "x"})
        lab.flush()
    lake.cut(on_executors=True)

    lake.check("shop.orders", "shop.items")
    lake.read_by_spark("shop_items_changes")


@pytest.mark.parametrize("on_executors", [False, True], ids=["threads", "executors"])
def test_rows_written_by_many_tasks_fold_to_one_row_a_key(
    lake: HeldLake, on_executors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sinks.contract.chunks.SMALL_BYTES", 0)
    lab = lake.lab
    lab.create("shop.orders", {"id": INT, "a": text()})
    for i in range(30):
        lab.insert("shop.orders", {"id": i, "a": "x"})
        lab.flush()
        lab.update("shop.orders", {"id": i, "a": "x"}, a="y")
        lab.flush()
    lake.cut(on_executors=on_executors)
    for i in range(30):
        lab.update("shop.orders", {"id": i, "a": "y"}, a=f"z{i}")
        lab.flush()
        lab.delete("shop.orders", {"id": i, "a": f"z{i}"})
        lab.flush()
    lake.cut(on_executors=on_executors)

    lake.check("shop.orders")


def test_a_table_without_a_key_has_a_changelog_only(lake: HeldLake) -> None:
    lab = lake.lab
    lab.create("shop.notes", {"t": text()}, key=())
    lab.insert("shop.notes", {"t": "a"}, {"t": "a"})
    lake.cut()

    assert lab.log(1) == lake.log("shop_notes_changes")
    assert not (lake.path / "shop_notes").exists()
    assert ["shop_notes_changes"] == [status.target for status in lake.sink.status()]


def test_an_empty_plan_writes_no_target(lake: HeldLake) -> None:
    lake.lab.create("shop.orders", {"id": INT})
    lake.cut()
    before = lake.versions("shop_orders"), lake.versions("shop_orders_changes")
    lake.lab.insert("shop.orders")
    lake.cut()

    assert before == (lake.versions("shop_orders"), lake.versions("shop_orders_changes"))
    assert 2 == lake.reopen().open("shop")


@pytest.mark.parametrize("kinds", [{"changelog": None}, {"mirror": None}], ids=["mirror only", "changelog only"])
def test_one_kind_of_target_alone(spark: SparkSession, tmp_path: Path, kinds: dict[str, None]) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), **kinds)
    lab = lake.lab
    lab.create("shop.orders", {"id": INT})
    lab.insert("shop.orders", {"id": 1}, {"id": 2})
    lake.cut()
    lab.delete("shop.orders", {"id": 1})
    lake.cut()
    lab.truncate("shop.orders")
    lab.insert("shop.orders", {"id": 3})
    lake.cut()

    if "mirror" in kinds:
        assert lab.log(1) == lake.log("shop_orders_changes")
    else:
        assert [{"id": 3}] == lake.mirror("shop_orders")
    assert 1 == len(lake.sink.status())
