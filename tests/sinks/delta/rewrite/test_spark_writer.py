"""Spark's own writer makes the same lake: values, offsets, types, and each plan once, wherever a run ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.errors import ConfigError
from historian.schema.snapshots import ColumnType
from lakes.crashes import Crashes
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text
from sinks.delta import DeltaSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("quiet")

T = "shop.t"
DIRECTORIES = ("shop_t_changes", "shop_t", "shop_t_history")
PLACES = ("changelog_prepared", "statement_begun", "statement_done", "changelog_committed", "mirror_schema_committed")


def _lake(spark: SparkSession, path: Path, lab: Lab, **settings: Any) -> HeldLake:
    return HeldLake(spark, path, lab, history="{database}_{table}_history", changelog_columns=("position",), **settings)


def _live(lab: Lab) -> list[Any]:
    """Plans with every kind of edit, each a list of steps that begin it."""
    row = lab.rows
    return [
        lambda: (lab.create(T, {"id": INT, "a": INT}), lab.insert(T, {"id": 1, "a": 1}, {"id": 2, "a": None})),
        lambda: (
            *(lab.update(T, row(T)[0], a=7), lab.delete(T, row(T)[1]), lab.insert(T, {"id": 3, "a": 3})),
            *(lab.add(T, "b", text(), initial="x"), lab.insert(T, {"id": 4, "a": 4, "b": "é"})),
        ),
        lambda: (lab.retype(T, "a", ColumnType(name="bigint")), lab.update(T, row(T)[0], a=1 << 40)),
        lambda: (lab.rename_column(T, "b", "c"), lab.truncate(T), lab.insert(T, {"id": 9, "a": 9, "c": "n"})),
        lambda: (lab.drop_column(T, "c"), lab.truncate(T), lab.insert(T, {"id": 10, "a": 10})),
    ]


@pytest.mark.parametrize(
    "but", [PLACES[:-1], pytest.param((), marks=pytest.mark.soak)], ids=["each place", "each plan"]
)
def test_the_lake_is_the_one_that_the_native_writer_makes(
    spark: SparkSession, tmp_path: Path, but: tuple[str, ...]
) -> None:
    """Every value and type is compared; plans of the one are ended once at each of their places, and come again."""
    lab, crashes = Lab(), Crashes(at=PLACES)
    native, other = _lake(spark, tmp_path / "native", lab), _lake(spark, tmp_path / "spark", lab, writer="spark")
    for number, live in enumerate(_live(lab)):
        live()
        plan = lab.cut()
        native.write(plan)
        if number in (2, 3):
            once = {"often": 1} if but else {}
            crashes.write(other, plan, but=but if number == 2 else (), **once)
        else:
            other.write(plan)
    for directory in DIRECTORIES:
        fields = [[(field.name, field.type) for field in lake.schema(directory).fields] for lake in (native, other)]
        assert fields[0] == fields[1]
    other.read_by_spark(*DIRECTORIES)
    assert native.raw_log("shop_t_changes") == other.raw_log("shop_t_changes")
    assert sorted(map(repr, native.mirror("shop_t"))) == sorted(map(repr, other.mirror("shop_t")))
    assert native.history("shop_t_history") == other.history("shop_t_history")
    other.check(T)
    assert set(PLACES) == set(crashes.places)
    assert [("native", "native", "native"), ("spark", "spark", "spark")] == [
        tuple(status.writer for status in lake.sink.status()) for lake in (native, other)
    ]
    commits = spark.sql(f"DESCRIBE HISTORY delta.`{other.path}/shop_t_changes`").where("operation = 'WRITE'").collect()
    assert {"Apache-Spark"} == {commit.engineInfo.partition("/")[0] for commit in commits}


def test_the_writer_may_change_from_run_to_run(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab()
    lake = _lake(spark, tmp_path / "lake", lab)
    lab.create(T, {"id": INT, "a": INT})
    for number in range(1, 5):
        chosen = (("shop.*", (("writer", "spark" if number % 2 else "native"),)),)
        lake.settings = replace(lake.settings, tables=chosen)
        lake.reopen()
        lab.insert(T, {"id": number, "a": number})
        lake.cut()
    lake.check(T)
    lake.check_history(T)


@pytest.mark.parametrize(
    "name, reason",
    [
        ("delta.enableChangeDataFeed", "change data feed"),
        ("delta.enableRowTracking", "row tracking"),
        ("delta.enableDeletionVectors", "deletion vectors"),
    ],
)
def test_status_tells_why_spark_writes_what_was_to_be_native(
    spark: SparkSession, tmp_path: Path, name: str, reason: str
) -> None:
    lab = Lab()
    lake = _lake(spark, tmp_path / "lake", lab, table_properties=((name, "true"),))
    lab.create(T, {"id": INT, "a": INT})
    lab.insert(T, {"id": 1, "a": 1})
    lake.cut()

    writers = {status.kind: status.writer for status in lake.sink.status()}
    assert {"changelog": "native", "mirror": f"spark ({reason})", "history": f"spark ({reason})"} == writers


def test_a_mirror_by_whole_rows_has_no_other_writer() -> None:
    with pytest.raises(ConfigError, match=r"\$\.writer"):
        DeltaSettings(path="lake", keyless="rows", writer="spark")
