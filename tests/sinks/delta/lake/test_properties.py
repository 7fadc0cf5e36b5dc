"""Properties that a configuration gives its tables: a change data feed, and a table that other engines read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from historian.errors import ConfigError
from historian.schema.snapshots import ColumnType
from lakes.crashes import Crashes
from lakes.lake import Lake
from lakes.sink_lab import INT, Lab, text
from sinks.delta import DeltaSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = (("delta.enableChangeDataFeed", "true"),)
PLAIN: tuple[tuple[str, str | None], ...] = (("delta.enableTypeWidening", None), ("delta.feature.timestampNtz", None))


def test_the_change_data_feed_of_a_mirror_tells_the_changes_under_each_schema(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab(), table_properties=FEED)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": text()})
    lab.insert("shop.t", *({"id": i, "a": "x"} for i in (1, 2, 3)))
    lake.cut()
    first = lake.versions("shop_t")
    lab.update("shop.t", {"id": 1, "a": "x"}, a="y")
    lab.delete("shop.t", {"id": 2, "a": "x"})
    lab.insert("shop.t", {"id": 4, "a": "x"})
    lake.cut()
    second = lake.versions("shop_t")
    lab.rename_column("shop.t", "a", "b")
    lab.update("shop.t", {"id": 3, "b": "x"}, b="z")
    lake.cut()
    third = lake.versions("shop_t")
    lab.truncate("shop.t")
    lake.cut()

    lake.check("shop.t")
    assert _feed(lake, 0, first) == [("insert", 1, "x"), ("insert", 2, "x"), ("insert", 3, "x")]
    assert _feed(lake, first + 1, second) == [
        ("delete", 2, "x"),
        ("insert", 4, "x"),
        ("update_postimage", 1, "y"),
        ("update_preimage", 1, "x"),
    ]
    assert _feed(lake, third, third) == [("update_postimage", 3, "z"), ("update_preimage", 3, "x")]
    assert _feed(lake, third + 1, third + 1) == [("delete", 1, "y"), ("delete", 3, "z"), ("delete", 4, "x")]


def _feed(lake: Lake, first: int, last: int) -> list[tuple[Any, ...]]:
    feed = lake.spark.read.format("delta").option("readChangeFeed", "true")
    rows = feed.option("startingVersion", first).option("endingVersion", last).load(str(lake.path / "shop_t"))
    names = [name for name in rows.columns if not name.startswith("_")]
    return sorted((row["_change_type"], *(row[name] for name in names)) for row in rows.collect())


def test_rows_come_behind_a_truncate_into_a_mirror_with_a_feed(spark: SparkSession, tmp_path: Path) -> None:
    """Also where a crash comes between the commit that takes all rows and the one that brings new ones."""
    lake = Lake(spark, tmp_path / "lake", Lab(), table_properties=FEED)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": text()})
    lab.insert("shop.t", {"id": 1, "a": "x"}, {"id": 2, "a": "x"})
    lake.cut()
    lab.add("shop.t", "b", INT, initial="7")
    lab.truncate("shop.t")
    lab.insert("shop.t", {"id": 2, "a": "y", "b": 1}, {"id": 3, "a": "y", "b": 1})
    crashes = Crashes(at=["mirror_cleared"])
    crashes.write(lake, lab.cut())

    assert crashes.count == 1
    lake.check_all()
    last = lake.versions("shop_t")
    assert _feed(lake, last, last) == [("insert", 2, "y", 1), ("insert", 3, "y", 1)]
    assert _feed(lake, last - 1, last - 1) == [("delete", 1, "x", 7), ("delete", 2, "x", 7)]


def test_delta_rs_reads_what_spark_does_where_features_that_it_refuses_are_left_off(
    spark: SparkSession, tmp_path: Path
) -> None:
    from deltalake import DeltaTable, QueryBuilder

    told = {"table_properties": PLAIN, "evolution": (("widen_type", "new_column"),)}
    lake = Lake(spark, tmp_path / "lake", Lab(), history="{database}_{table}_history", **told)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": text(), "gone": INT})
    lab.insert("shop.t", *({"id": i, "a": "x", "gone": i} for i in range(4)))
    lake.cut()
    lab.add("shop.t", "n", INT, initial="7")
    lab.rename_column("shop.t", "a", "b")
    lab.drop_column("shop.t", "gone")
    lab.update("shop.t", {"id": 1, "b": "x", "n": 7}, b="y")
    lab.delete("shop.t", {"id": 2, "b": "x", "n": 7})
    lake.cut()

    lake.check("shop.t")
    for directory in ("shop_t", "shop_t_changes", "shop_t_history"):
        # Its to_pyarrow_table looks for columns by their names in the schema, and gives NULLs for all that files call otherwise.
        table = DeltaTable(str(lake.path / directory))
        found = pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()).to_pylist()
        assert _sorted(found) == _sorted(lake.mirror(directory))
        assert found


def test_a_type_that_widens_stops_a_table_without_the_feature_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab())
    lab = lake.lab
    for name in ("shop.t", "shop.other"):
        lab.create(name, {"id": INT, "a": INT})
        lab.insert(name, {"id": 1, "a": 1})
    lake.cut()
    spark.sql(f"ALTER TABLE delta.`{lake.path}/shop_t` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")
    for name in ("shop.t", "shop.other"):
        lab.retype(name, "a", ColumnType(name="bigint"))
        lab.insert(name, {"id": 2, "a": 1 << 40})
    lake.cut()

    lake.check("shop.other")
    assert lake.mirror("shop_t") == [{"id": 1, "a": 1}]
    assert "a table without type widening" in lake.stopped()["shop.t"]


def _sorted(rows: list[dict[str, Any]]) -> list[list[tuple[str, Any]]]:
    return sorted((list(row.items()) for row in rows), key=repr)


def test_a_word_that_needs_what_is_left_out_is_a_problem_at_start() -> None:
    DeltaSettings(path="lake", table_properties=PLAIN, evolution=(("widen_type", "quarantine"),))
    said = (("shop.*", (("table_properties", PLAIN),)),)
    with pytest.raises(
        ConfigError, match=r"without delta.enableTypeWidening @ \$.tables\['shop.\*'\].evolution.widen_type"
    ):
        DeltaSettings(path="lake", tables=said)


@pytest.mark.parametrize("name", ["historian.connector", "delta.columnMapping.mode"])
def test_what_a_target_cannot_be_without_is_not_set(name: str) -> None:
    with pytest.raises(ConfigError, match="table_properties"):
        DeltaSettings(path="lake", table_properties=((name, None),))
