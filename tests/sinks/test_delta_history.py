"""A history holds every row that ever was, with the offsets at which it begins and ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from historian.schema import ColumnType
from lake import Lake
from sink_lab import INT, Lab, text
from sinks.delta import rewrite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIGINT = ColumnType(name="bigint")
HISTORY = {"history": "{database}_{table}_history"}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake(spark, tmp_path / "lake", Lab(), **HISTORY)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": text(), "b": INT})
    lab.insert("shop.t", *({"id": i, "a": "x", "b": i} for i in range(6)))
    lake.cut()
    return lake


@pytest.fixture(params=["merged", "rewritten"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "merged":
        monkeypatch.setattr(rewrite, "SMALL_BYTES", 0)


@pytest.mark.usefixtures("_way")
def test_every_row_that_ever_was_is_there(lake: Lake) -> None:
    """Several changes of a key, keys that change, columns of every fate, within one plan and over plans."""
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
    lake.cut(partitions=2)
    lake.check("shop.t")
    lake.check_history("shop.t")

    lab.rename_column("shop.t", "a", "b")
    lab.retype("shop.t", "n", BIGINT)
    lab.update("shop.t", {"id": 3, "b": "before n", "n": 1}, n=2**40)
    lab.delete("shop.t", {"id": 8, "b": "new", "n": 2})
    lake.cut()
    lake.check("shop.t")
    lake.check_history("shop.t")

    lab.truncate("shop.t")
    lab.insert("shop.t", {"id": 3, "b": "third", "n": 1})
    lab.drop("shop.t")
    lab.create("shop.t", {"id": INT})
    lab.insert("shop.t", {"id": 3})
    lake.cut()
    lake.check_history("shop.t")
    assert {} == lake.stopped()
    own = ["valid_from timestamp", "valid_to timestamp", "from_offset bigint", "to_offset bigint", "id int"]
    gone = {"id__h1 int", "b string", "n bigint", "brief int", "b__h3 int"}
    columns = lake.columns("shop_t_history")
    assert (own, gone) == (columns[:5], set(columns[5:]))


def test_closed_rows_are_not_read_again(lake: Lake) -> None:
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
