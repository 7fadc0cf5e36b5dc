"""A schema of a Spark catalog in place of a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from historian.errors import SinkError
from lakes.crashes import Crashes
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab
from sinks.contract.locations import TableLocation
from sinks.delta import DeltaSettings, DeltaSink
from sinks.delta.lake.catalog import catalog_names

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMA = "spark_catalog.lake_of_tests"
STATE = ["historian_plans", "historian_schema_changes", "historian_tables"]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> HeldLake:
    spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    spark.sql(f"CREATE SCHEMA {SCHEMA} LOCATION '{tmp_path / 'schema'}'")
    lake = HeldLake(spark, tmp_path / "schema", Lab(), catalog=SCHEMA)
    lake.lab.create("shop.t", {"id": INT, "a": INT})
    lake.lab.create("shop.other", {"id": INT})
    lake.lab.insert("shop.t", {"id": 1, "a": 1})
    lake.lab.insert("shop.other", {"id": 2})
    lake.cut()
    return lake


def tables(lake: HeldLake) -> list[str]:
    listed = [row.tableName for row in lake.spark.sql(f"SHOW TABLES IN {SCHEMA}").collect()]
    assert sorted(listed)[: len(STATE)] == STATE
    return sorted(set(listed) - set(STATE))


def rows(lake: HeldLake, table: str) -> list[dict[str, object]]:
    return [row.asDict() for row in lake.spark.table(f"{SCHEMA}.{table}").orderBy("id").collect()]


def test_targets_are_tables_of_the_schema(lake: HeldLake) -> None:
    assert tables(lake) == ["shop_other", "shop_other_changes", "shop_t", "shop_t_changes"]
    assert rows(lake, "shop_t") == [{"id": 1, "a": 1}]
    lake.check("shop.t", "shop.other")


def test_a_renamed_table_is_renamed_in_the_catalog_and_keeps_its_files(lake: HeldLake) -> None:
    lake.lab.rename(("shop.t", "shop.u"))
    lake.lab.insert("shop.u", {"id": 3, "a": 3})
    lake.cut()
    assert tables(lake) == ["shop_other", "shop_other_changes", "shop_u", "shop_u_changes"]
    assert rows(lake, "shop_u") == [{"id": 1, "a": 1}, {"id": 3, "a": 3}]
    assert (lake.path / "shop_t").is_dir()
    lake.lab.create("shop.t", {"id": INT})
    lake.lab.insert("shop.t", {"id": 9})
    lake.cut()
    assert rows(lake, "shop_t") == [{"id": 9}]
    assert rows(lake, "shop_u") == [{"id": 1, "a": 1}, {"id": 3, "a": 3}]


def test_swapped_tables_swap_names(lake: HeldLake) -> None:
    lake.lab.rename(("shop.t", "shop.x"), ("shop.other", "shop.t"), ("shop.x", "shop.other"))
    lake.cut()
    assert rows(lake, "shop_other") == [{"id": 1, "a": 1}]
    assert rows(lake, "shop_t") == [{"id": 2}]


def test_a_catalog_that_forgot_or_half_renamed_is_mended_when_the_sink_opens(lake: HeldLake) -> None:
    lake.spark.sql(f"DROP TABLE {SCHEMA}.shop_t")
    lake.spark.sql(f"ALTER TABLE {SCHEMA}.shop_other RENAME TO {SCHEMA.partition('.')[2]}.shop_other__renamed")
    lake.reopen()
    assert tables(lake) == ["shop_other", "shop_other_changes", "shop_t", "shop_t_changes"]
    assert rows(lake, "shop_t") == [{"id": 1, "a": 1}]
    assert rows(lake, "shop_other") == [{"id": 2}]


def test_a_table_of_somebody_else_is_never_touched(lake: HeldLake, tmp_path: Path) -> None:
    lake.spark.sql(f"CREATE TABLE {SCHEMA}.shop_new (x INT) USING delta LOCATION '{tmp_path / 'theirs'}'")
    lake.reopen()
    lake.lab.create("shop.new", {"id": INT})
    with pytest.raises(SinkError, match="stands in the way of a target") as raised:
        lake.cut()
    assert (raised.value.found, raised.value.expected) == (f"{tmp_path / 'theirs'}", f"{lake.path}/shop_new")
    assert lake.spark.table(f"{SCHEMA}.shop_new").columns == ["x"]
    lake.spark.sql(f"ALTER TABLE {SCHEMA}.shop_new RENAME TO {SCHEMA.partition('.')[2]}.theirs")
    lake.catch_up()
    assert lake.spark.table(f"{SCHEMA}.shop_new").columns == ["id"]


def test_an_unknown_catalog_is_named(spark: SparkSession) -> None:
    with pytest.raises(SinkError, match="a catalog's schema that Spark does not find"):
        DeltaSink(spark, DeltaSettings(catalog="nowhere.lake"))


def test_names_are_the_sources_present_ones_as_far_as_free() -> None:
    def location(table_id: int, name: str, directory: str, dropped: int = 0) -> TableLocation:
        return TableLocation(table_id=table_id, name=name, changelog="", mirror=directory, since=1, dropped=dropped)

    locations = [
        location(1, "s.b", "s_a"),
        location(2, "s.A", "s_a__t2"),
        location(3, "s.a", "s_b", 7),
        location(4, "s.a", "s_a__t4"),
    ]
    names = catalog_names({location.table_id: location for location in locations}, DeltaSettings(path="lake"))
    assert {name: names[name] for name in names if name not in STATE} == {
        "s_a": "s_b",
        "s_a__t2": "s_A",
        "s_b": "s_a__t3",
        "s_a__t4": "s_a__t4",
    }


def test_a_crash_between_two_changes_of_the_catalog_is_mended_by_the_next_start(lake: HeldLake) -> None:
    lake.lab.rename(("shop.t", "shop.swap"), ("shop.other", "shop.t"), ("shop.swap", "shop.other"))
    lake.lab.create("shop.third", {"id": INT})
    lake.lab.insert("shop.third", {"id": 1})
    crashes = Crashes(at=["catalog_changed"])
    crashes.write(lake, lake.lab.cut())
    assert crashes.count == 10
    assert tables(lake) == [
        "shop_other",
        "shop_other_changes",
        "shop_t",
        "shop_t_changes",
        "shop_third",
        "shop_third_changes",
    ]
    assert rows(lake, "shop_t") == [{"id": 2}]
    assert rows(lake, "shop_other") == [{"id": 1, "a": 1}]
    assert rows(lake, "shop_third") == [{"id": 1}]
