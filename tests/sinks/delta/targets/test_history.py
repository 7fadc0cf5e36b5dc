"""A history holds every row that ever was, with the offsets at which it begins and ends."""

from __future__ import annotations

import logging
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from historian.errors import SinkError
from historian.schema.snapshots import ColumnType
from lakes.held_rows import HeldLake
from lakes.lake import Lake
from lakes.sink_lab import INT, START_US, Lab, text
from sinks.delta.rewrite import held_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIGINT = ColumnType(name="bigint")
HISTORY = {"history": "{database}_{table}_history"}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> HeldLake:
    return _lake(spark, tmp_path)


def _lake(spark: SparkSession, tmp_path: Path, **kinds: None) -> HeldLake:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), **HISTORY, **kinds)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": text(), "b": INT})
    lab.insert("shop.t", *({"id": i, "a": "x", "b": i} for i in range(6)))
    lake.cut()
    return lake


@pytest.mark.parametrize("merged", [pytest.param(True, marks=pytest.mark.soak), False], ids=["merged", "rewritten"])
def test_every_row_that_ever_was_is_there(
    spark: SparkSession, tmp_path: Path, merged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several changes of a key, keys that change, columns of every fate, within one plan and over plans."""
    if merged:
        monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
    lake = _lake(spark, tmp_path, **({"mirror": None} if merged else {}))
    lab = lake.lab
    lab.update("shop.t", {"id": 0, "a": "x", "b": 0}, a="y")
    lab.update("shop.t", {"id": 0, "a": "y", "b": 0}, a="z")
    lab.update("shop.t", {"id": 1, "a": "x", "b": 1}, id=11)
    lab.delete("shop.t", {"id": 2, "a": "x", "b": 2})
    lab.insert("shop.t", {"id": 2, "a": "again", "b": 2}, {"id": 7, "a": "brief", "b": 7})
    lab.delete("shop.t", {"id": 7, "a": "brief", "b": 7})
    lab.update("shop.t", {"id": 3, "a": "x", "b": 3}, a="before n")
    lab.add("shop.t", "n", INT, initial="7")
    lab.add("shop.t", "brief", INT, initial="8")
    lab.delete("shop.t", {"id": 4, "a": "x", "b": 4, "n": 7, "brief": 8})
    lab.drop_column("shop.t", "brief")
    lab.drop_column("shop.t", "b")
    lab.update("shop.t", {"id": 3, "a": "before n", "n": 7}, n=1)
    lab.insert("shop.t", {"id": 8, "a": "new", "n": 2})
    lake.cut(on_executors=True)
    assert lab.log(1) == lake.log("shop_t_changes")
    lake.check_history("shop.t")

    lab.rename_column("shop.t", "a", "b")
    lab.retype("shop.t", "n", BIGINT)
    lab.update("shop.t", {"id": 3, "b": "before n", "n": 1}, n=2**40)
    lab.delete("shop.t", {"id": 8, "b": "new", "n": 2})
    lake.cut()
    lake.check_history("shop.t")
    if not merged:
        lake.check("shop.t")

    lab.truncate("shop.t")
    lab.insert("shop.t", {"id": 3, "b": "third", "n": 1})
    lab.drop("shop.t")
    lab.create("shop.t", {"id": INT})
    lab.insert("shop.t", {"id": 3})
    lake.cut()
    lake.check_history("shop.t")
    lake.read_by_spark("shop_t_history", "shop_t_changes")
    assert {} == lake.stopped()
    own = ["valid_from timestamp", "valid_to timestamp", "from_offset bigint", "to_offset bigint", "id int"]
    gone = {"id__h1 int", "b string", "n bigint", "brief int", "b__h3 int"}
    columns = lake.columns("shop_t_history")
    assert (own, gone) == (columns[:5], set(columns[5:]))


def test_closed_rows_are_not_read_again(lake: HeldLake) -> None:
    lab = lake.lab
    for turn in range(3):
        lab.update("shop.t", {"id": 0, "a": f"x{turn or ''}", "b": 0}, a=f"x{turn + 1}")
        lake.cut()

    lake.check_history("shop.t")
    frame = lake.spark.read.format("delta").load(str(lake.path / "shop_t_history"))
    files = frame.selectExpr("_metadata.file_name AS file", "to_offset IS NULL AS open").groupBy("file")
    assert [[False]] * 3 + [[True]] == sorted(
        row.open for row in files.agg({"open": "collect_set"}).toDF("f", "open").collect()
    )


def test_without_a_changelog_offsets_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), changelog=None, mirror=None, **HISTORY)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", *({"id": i, "a": i} for i in range(3)))
    lab.delete("shop.t", {"id": 1, "a": 1})
    lake.cut()
    lab.truncate("shop.t")
    lab.insert("shop.t", {"id": 2, "a": 5})
    lake.cut()
    lake.reopen()
    lab.update("shop.t", {"id": 2, "a": 5}, a=6)
    lake.cut()

    lake.check_history("shop.t")
    assert [(0, 4), (1, 3), (2, 5), (6, 7), (8, None)] == [
        (row.from_offset, row.to_offset) for row in lake.history("shop_t_history")
    ]


def test_times_are_called_as_auto_cdc_calls_them_and_a_lake_keeps_its_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab(), mirror=None, history_names="auto_cdc", **HISTORY)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "valid_from": INT})
    lab.insert("shop.t", {"id": 1, "valid_from": 2})
    lake.cut()
    lab.update("shop.t", {"id": 1, "valid_from": 2}, valid_from=3)
    lake.cut()

    own = ["__START_AT timestamp", "__END_AT timestamp", "from_offset bigint", "to_offset bigint"]
    assert [*own, "id int", "valid_from int"] == lake.columns("shop_t_history")
    lake.check_history("shop.t")
    assert [("history", 2)] == [(s.kind, s.plan) for s in lake.sink.status() if s.target == "shop_t_history"]
    with pytest.raises(SinkError, match="changelog,history \\(auto_cdc\\)"):
        Lake(spark, tmp_path / "lake", lab, mirror=None, **HISTORY)


@pytest.mark.parametrize("what", ["no key", "system name", "absent columns", "absent columns, soft deletes"])
def test_what_a_history_cannot_follow_stops_its_table_only(
    spark: SparkSession, tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    kinds = {"mirror_deletes": "soft"} if "soft" in what else {"mirror": None, **HISTORY}
    lake = HeldLake(spark, tmp_path / "lake", Lab(), **kinds)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.create("shop.keyless", {"a": INT}, key=())
    lab.insert("shop.t", {"id": 1, "a": 1})
    lake.cut()
    if what == "no key":
        lab.set_key("shop.t")
    elif "absent" in what:
        lab.update_part("shop.t", {"id": 1}, a=2)
    else:
        lab.rename_column("shop.t", "a", "Valid_To")
    lab.insert("shop.keyless", {"a": 1})
    with caplog.at_level(logging.CRITICAL):
        lake.cut()

    assert ["shop.t"] == list(lake.stopped())
    assert ("a mirror that keeps" if "soft" in what else "history") in lake.stopped()["shop.t"]
    assert lab.log(2) == lake.log("shop_keyless_changes")
    assert {"shop_keyless_changes"} == {s.target for s in lake.sink.status() if s.table == "shop.keyless"}


def test_a_history_that_counts_otherwise_than_its_changelog_stops(
    lake: HeldLake, caplog: pytest.LogCaptureFixture
) -> None:
    spark, lab = lake.spark, lake.lab
    other = Lake(spark, lake.path.parent / "other", Lab(), **HISTORY)
    other.lab.create("shop.t", {"id": INT, "a": text(), "b": INT})
    other.lab.insert("shop.t", {"id": 1, "a": "x", "b": 1})
    other.cut()
    shutil.rmtree(lake.path / "shop_t_history")
    shutil.copytree(other.path / "shop_t_history", lake.path / "shop_t_history")
    lake.reopen()
    lab.insert("shop.t", {"id": 7, "a": "x", "b": 1})
    with caplog.at_level(logging.CRITICAL):
        lake.cut()

    assert "a history does not go on where its changelog does" in lake.stopped()["shop.t"]
    assert 6 == len(lake.log("shop_t_changes"))


@pytest.mark.parametrize("merged", [True, False], ids=["merged", "rewritten"])
def test_a_mirror_can_keep_deleted_rows(
    spark: SparkSession, tmp_path: Path, merged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if merged:
        monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
    lake = HeldLake(spark, tmp_path / "lake", Lab(), mirror_deletes="soft")
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", *({"id": i, "a": i} for i in range(5)))
    lake.cut()
    lab.update("shop.t", {"id": 0, "a": 0}, a=10)
    lab.delete("shop.t", {"id": 0, "a": 10})
    lab.delete("shop.t", {"id": 1, "a": 1})
    lab.insert("shop.t", {"id": 1, "a": 11}, {"id": 9, "a": 9})
    lab.delete("shop.t", {"id": 9, "a": 9})
    lab.update("shop.t", {"id": 2, "a": 2}, id=12)
    lab.delete("shop.t", {"id": 3, "a": 3})
    lake.cut()

    assert ["id int", "a int", "_deleted boolean", "_deleted_at timestamp"] == lake.columns("shop_t")
    first = _time(lab)
    assert _soft(lake) == {
        0: (10, first),
        1: (11, None),
        2: (2, first),
        3: (3, first),
        4: (4, None),
        9: (9, first),
        12: (2, None),
    }

    lab.add("shop.t", "n", INT, initial="7")
    lab.insert("shop.t", {"id": 3, "a": 33, "n": 1})
    lab.truncate("shop.t")
    second = _time(lab)
    lab.insert("shop.t", {"id": 4, "a": 44, "n": 2})
    lake.cut()
    assert ["id int", "a int", "n int", "_deleted boolean", "_deleted_at timestamp"] == lake.columns("shop_t")
    gone = {
        0: (10, first),
        1: (11, second),
        2: (2, first),
        3: (33, second),
        4: (44, None),
        9: (9, first),
        12: (2, second),
    }
    assert _soft(lake) == gone
    lake.read_by_spark("shop_t")
    assert lake.log("shop_t_changes") == lab.log(1), "a row that is gone already is not taken back again"

    lab.drop("shop.t")
    lake.cut()
    assert _soft(lake) == {**gone, 4: (44, _time(lab))}

    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", {"id": 1, "a": 1})
    lake.cut()
    assert _soft(lake) == {1: (1, None)}
    assert {} == lake.stopped()


def _soft(lake: HeldLake) -> dict[int, tuple[int, datetime | None]]:
    rows = lake.mirror("shop_t")
    assert all(row["_deleted"] is (row["_deleted_at"] is not None) for row in rows)
    return {row["id"]: (row["a"], row["_deleted_at"]) for row in rows}


def _time(lab: Lab) -> datetime:
    """The event time of the lab's last change."""
    return datetime.fromtimestamp(START_US // 1_000_000 + lab.clock, timezone.utc)
