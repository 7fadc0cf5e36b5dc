"""The primary key of a table changes: rows that are there already are found by the new one."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text
from sinks.delta.rewrite import few_rows, held_rows

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


@pytest.mark.parametrize(
    "settings, cuts",
    [
        pytest.param({}, True, id="plan by plan"),
        pytest.param({}, False, id="at once"),
        pytest.param({"cluster": True}, False, id="clustered"),
        pytest.param({"mirror_every_us": 100}, True, id="late"),
        pytest.param({"changelog": None}, False, id="without changelog"),
        pytest.param({"writer": "spark"}, False, id="by Spark", marks=pytest.mark.soak),
        pytest.param({**KEPT, "history": None}, False, id="merged by Spark"),
        pytest.param(KEPT, False, id="merged by Spark, with a history", marks=pytest.mark.soak),
        pytest.param({"writer": "spark"}, True, id="by Spark, plan by plan", marks=pytest.mark.soak),
        pytest.param(KEPT, True, id="merged by Spark, plan by plan", marks=pytest.mark.soak),
    ],
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
    if "history" not in settings:
        lake.check_history("shop.t")
    assert {} == lake.stopped()


@pytest.mark.soak
def test_files_are_rewritten_by_executors_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
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


@pytest.mark.parametrize("small_bytes", [0, held_rows.SMALL_BYTES], ids=["by Spark", "here"])
@pytest.mark.parametrize("kind", ["mirror", "history"])
@pytest.mark.parametrize("what", ["two rows", "no value", "a number"])
def test_rows_that_show_what_the_log_does_not_tell_stop_their_table(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    what: str,
    kind: str,
    small_bytes: int,
) -> None:
    monkeypatch.setattr(few_rows, "SMALL_BYTES", small_bytes)
    lake = HeldLake(spark, tmp_path / "lake", Lab(), **(HISTORY | {"mirror": None} if kind == "history" else {}))
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "n": INT})
    rows = [{"id": 0, "n": 5}, {"id": 1, "n": 5 if what == "two rows" else None}]
    lab.insert("shop.t", *rows)
    lab.delete("shop.t", {"id": 0, "n": 5})
    lab.insert("shop.t", rows[0])
    if what == "a number":
        lab.make_auto_increment("shop.t", "id")
    else:
        lab.set_key("shop.t", "n")
    lab.insert("shop.t", {"id": 7, "n": 7})
    with caplog.at_level(logging.CRITICAL):
        lake.cut()

    (reason,) = lake.stopped().values()
    assert "a statement has changed rows without row events" in reason
    assert {"two rows": "n = 5", "no value": "n = None", "a number": "id = 0"}[what] in reason
    directory = "shop_t" if kind == "mirror" else "shop_t_history"
    assert {row["id"] for row in lake.mirror(directory)} == {0, 1}


def test_a_configured_key_stays_where_the_primary_key_was_the_same(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, history=None, key=("id",))
    lake.lab.set_key("shop.t", "a")
    lake.lab.update("shop.t", {"id": 5, "a": "k4", "b": 2}, b=7)
    lake.lab.update("shop.t", {"id": 6, "a": "k3", "b": 0}, a="new")
    lake.cut()

    lake.check("shop.t")
    assert ["id"] == [lake.schema("shop_t").fields[0].name]
    assert (1,) == lake.locations()[1].key_columns
