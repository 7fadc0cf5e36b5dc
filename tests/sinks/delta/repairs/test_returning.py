"""Mirrors and histories that stand behind their changelog, and that a repair brings to the table's rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakes.crashes import Crashes
from lakes.held_rows import HeldLake
from lakes.repaired import check_repaired
from lakes.sink_lab import INT, Lab
from sinks.delta import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

HISTORY = "{database}_{table}_history"


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_a_mirror_and_a_history_that_ended_at_a_gap_go_on(spark: SparkSession, tmp_path: Path, deletes: str) -> None:
    """Rows have come, changed and gone in the gap and behind it, and a column was added with a default."""
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, history=HISTORY, mirror_deletes=deletes)
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", *({"id": n, "a": n} for n in range(8)))
    lake.cut()
    lab.unlogged("shop.t", *({"id": n, "a": n * 10} for n in range(2, 10)))
    lab.resume("shop.t")
    lab.delete("shop.t", {"id": 2, "a": 20})
    lake.cut()
    lab.add("shop.t", "b", INT, initial="7")
    lab.update("shop.t", {"id": 3, "a": 30, "b": 7}, a=33, b=8)
    lab.update("shop.t", {"id": 4, "a": 40, "b": 7}, id=14)
    lab.insert("shop.t", {"id": 20, "a": 1, "b": 1})
    lake.cut()
    assert "they lack what changed" in lake.stopped()["shop.t"]
    lab.unlogged("shop.t", *(row for row in lab.rows("shop.t") if row["id"] != 5), {"id": 30})
    crashes = Crashes(["target_brought_back", "repairs_recorded", "changelog_committed"])
    crashes.write(lake, lab.cut({"shop.t": "a gap"}))
    lab.update("shop.t", {"id": 30}, a=2)
    lake.cut()

    assert crashes.places["target_brought_back"] == 2
    check_repaired(lake, "shop.t", gap=True)
    if deletes == "soft":
        gone = sorted(row["id"] for row in lake.mirror("shop_t") if row["_deleted"])
        assert gone == [0, 1, 2, 4, 5]


def test_a_gap_in_the_plan_that_repairs_ends_no_mirror(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, history=HISTORY)
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", *({"id": n, "a": n} for n in range(4)))
    lake.cut()
    lab.unlogged("shop.t", *({"id": n, "a": n * 10} for n in range(2, 6)))
    lab.resume("shop.t")
    lake.write(lab.cut({"shop.t": "a gap"}))

    check_repaired(lake, "shop.t")


@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_rows_that_wait_come_before_the_repair(spark: SparkSession, tmp_path: Path, deletes: str) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, history=HISTORY, mirror_every_us=100, mirror_deletes=deletes)
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", *({"id": n, "a": n} for n in range(4)))
    lake.cut()
    lab.update("shop.t", {"id": 1, "a": 1}, a=5)
    lab.delete("shop.t", {"id": 2, "a": 2})
    lake.cut()
    lab.delete("shop.t", {"id": 3, "a": 3})
    lake.cut()
    assert len(lake.mirror("shop_t")) == 4
    lab.unlogged("shop.t", {"id": 1, "a": 6}, {"id": 9})
    Crashes(["target_brought_back", "mirror_committed"]).write(lake, lab.cut({"shop.t": "a test"}))

    check_repaired(lake, "shop.t")
    told = [(row["op"], row["id"], row["a"]) for row in lake.raw_log("shop_t_changes")[8:]]
    assert told == [(1, 0, 0), (2, 1, 5), (3, 1, 6), (0, 9, None)]
