"""The primary key of a table changes: rows that are there already are found by the new one."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from held_rows import HeldLake
from sink_lab import INT, Lab, text
from sinks.delta import rewrite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORY = {"history": "{database}_{table}_history"}
KEPT = {"table_properties": (("delta.enableRowTracking", "true"),)}


def _lake(spark: SparkSession, path: Path, **settings: Any) -> HeldLake:
    lake = HeldLake(spark, path / "lake", Lab(), **{**HISTORY, **settings})
    lake.lab.create("shop.t", {"id": INT, "a": text(), "b": INT})
    lake.lab.insert("shop.t", *({"id": i, "a": f"k{9 - i}", "b": i % 3} for i in range(9)))
    lake.cut()
    return lake


def _go_on(lake: HeldLake, *, cuts: bool) -> None:
    """Rows under the first key, under one of two columns, and under one of a column that came with a default."""
    lab = lake.lab
    between = lake.cut if cuts else lab.flush
    lab.update("shop.t", {"id": 0, "a": "k9", "b": 0}, b=7)
    lab.update("shop.t", {"id": 1, "a": "k8", "b": 1}, id=21)
    lab.delete("shop.t", {"id": 2, "a": "k7", "b": 2})
    between()
    lab.set_key("shop.t", "b", "a")
    lab.update("shop.t", {"id": 0, "a": "k9", "b": 7}, id=3)
    lab.update("shop.t", {"id": 3, "a": "k6", "b": 0}, b=8)
    lab.delete("shop.t", {"id": 4, "a": "k5", "b": 1})
    lab.insert("shop.t", {"id": 3, "a": "k5", "b": 1}, {"id": 3, "a": "k9", "b": 8})
    between()
    lab.add("shop.t", "tenant", INT, initial="5", after="")
    lab.set_key("shop.t", "tenant", "a", "b")
    lab.update("shop.t", {"tenant": 5, "id": 5, "a": "k4", "b": 2}, id=55)
    lab.update("shop.t", {"tenant": 5, "id": 6, "a": "k3", "b": 0}, tenant=6)
    lab.delete("shop.t", {"tenant": 5, "id": 7, "a": "k2", "b": 1})
    lab.insert("shop.t", {"tenant": 7, "id": 8, "a": "k1", "b": 2})
    lake.cut()


@pytest.mark.parametrize("cuts", [True, False], ids=["plan by plan", "at once"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"cluster": True}, {"mirror_every_us": 100}, {"changelog": None}, {"writer": "spark"}, KEPT],
    ids=["plain", "clustered", "late", "without changelog", "by Spark", "merged by Spark"],
)
def test_rows_are_found_by_the_new_key(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], cuts: bool
) -> None:
    lake = _lake(spark, tmp_path, **settings)
    _go_on(lake, cuts=cuts)

    if settings.get("changelog", "") is None:
        assert lake.lab.rows("shop.t") == sorted(
            lake.mirror("shop_t"), key=lambda row: lake.lab.rows("shop.t").index(row)
        )
    else:
        lake.check("shop.t")
    lake.check_history("shop.t")
    assert {} == lake.stopped()


def test_files_are_rewritten_by_executors_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "SMALL_BYTES", 0)
    lake = _lake(spark, tmp_path)
    _go_on(lake, cuts=False)
    lake.lab.truncate("shop.t")
    lake.lab.insert("shop.t", {"tenant": 1, "id": 8, "a": "k1", "b": 2})
    lake.cut()

    lake.check_all()


def test_partial_images_name_rows_by_the_new_key(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, history=None)
    lake.lab.add("shop.t", "tenant", INT, initial="5", after="")
    lake.lab.set_key("shop.t", "tenant", "a")
    lake.lab.update_part("shop.t", {"tenant": 5, "a": "k4"}, id=55)
    lake.lab.update_part("shop.t", {"tenant": 5, "a": "k3"}, tenant=6)
    lake.cut()

    lake.check("shop.t")


def test_all_rows_are_taken_back_under_the_new_key(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path)
    lake.lab.set_key("shop.t", "a")
    lake.lab.update("shop.t", {"id": 5, "a": "k4", "b": 2}, id=6)
    lake.lab.truncate("shop.t")
    lake.lab.insert("shop.t", {"id": 1, "a": "x", "b": 1}, {"id": 1, "a": "y", "b": 1})
    lake.cut()

    lake.check_all()


@pytest.mark.parametrize("what", ["lost", "gained", "soft", "kept"])
def test_a_key_that_does_not_tell_held_rows_apart_stops_its_table(
    spark: SparkSession, tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    said: dict[str, Any] = {"soft": {"mirror_deletes": "soft"}, "gained": {"keyless": "rows"}}.get(what, {})
    lake = _lake(spark, tmp_path, **said)
    lab = lake.lab
    lab.create("shop.bag", {"id": INT}, key=())
    lab.insert("shop.bag", {"id": 1})
    lake.cut()
    if what == "kept":
        lake.settings = type(lake.settings)(
            path=lake.settings.path, history=lake.settings.history, evolution=(("truncate", "keep"),)
        )
        lake.reopen()
        lab.truncate("shop.t")
    name = "shop.bag" if what == "gained" else "shop.t"
    lab.set_key(name, *(() if what == "lost" else ("id",) if what == "gained" else ("a",)))
    before = lake.mirror("shop_bag" if what == "gained" else "shop_t")
    with caplog.at_level(logging.CRITICAL):
        lake.cut()

    assert [name] == list(lake.stopped())
    assert "the primary key of a mirrored table changes" in lake.stopped()[name]
    assert before == lake.mirror("shop_bag" if what == "gained" else "shop_t")
