"""Tables that the sink wrote are Delta tables like any other for those who use them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakes.delta_uses import assert_usable
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("quiet")

KEYS = {"shop_t_changes": "offset", "shop_t": "id", "shop_t_history": "from_offset"}
ROW_IDS = {"table_properties": (("delta.enableRowTracking", "true"),)}


@pytest.mark.parametrize(
    "settings,directories",
    [
        ({}, ("shop_t",)),
        pytest.param({}, ("shop_t_changes", "shop_t_history"), marks=pytest.mark.soak),
        pytest.param(ROW_IDS, ("shop_t_changes", "shop_t"), marks=pytest.mark.soak),
        pytest.param({"writer": "spark"}, tuple(KEYS), marks=pytest.mark.soak),
        pytest.param({"cluster": True}, ("shop_t",), marks=pytest.mark.soak),
        pytest.param({"mirror_deletes": "soft"}, ("shop_t",), marks=pytest.mark.soak),
    ],
    ids=["a mirror", "its changelog and history", "with row ids", "by Spark", "clustered", "soft deletes"],
)
def test_people_may_do_with_a_table_what_delta_can(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], directories: tuple[str, ...]
) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), history="{database}_{table}_history", compact=None, **settings)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": INT, "b": text()})
    lab.insert("shop.t", *({"id": i, "a": i, "b": "é"} for i in range(4)))
    lake.cut()
    lab.update("shop.t", lab.rows("shop.t")[0], a=7)
    lab.rename_column("shop.t", "b", "c")
    lab.add("shop.t", "d", text(), initial="x")
    lab.insert("shop.t", {"id": 9, "a": None, "c": None, "d": "y"})
    lake.cut()

    for directory in directories:
        assert_usable(spark, str(lake.path / directory), KEYS[directory])
