"""Edits and words for them where Spark merges into the mirror, where it keeps deleted rows, and where targets are missing."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakes.evolution_cases import EXPECTED, first_id, lab_of, rules
from lakes.held_rows import HeldLake
from lakes.lake import Lake
from lakes.sink_lab import INT, Lab, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = (("delta.enableChangeDataFeed", "true"),)
LENIENT = ("evolution", (("preset", "lenient"),))
EMPTIED = ("evolution", (("preset", "lenient"), ("truncate", "apply")))
OFTEN = ("changed_aside", "truncate_kept")
"""Behind each of them the rows that are merged lack another thing of the mirror's."""
SELDOM = (
    "add_ignored",
    "changed_aside_then_emptied",
    "computed_from_then_on",
    "drop_kept",
    "rename_ignored",
    "truncate_ignored",
    "widened_aside",
)
OTHERS: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = (
    ("shop.soft", (("mirror_deletes", "soft"), EMPTIED)),
    ("shop.soft_kept", (("mirror_deletes", "soft"), LENIENT)),
    ("shop.log", (("mirror", None), EMPTIED)),
    ("shop.mirror", (("changelog", None), ("history", None), LENIENT)),
    ("shop.computed", (("compute", (("c", "id + 1"),)), LENIENT)),
    ("shop.renamed", (("compute", (("c", "b + 1"),)), ("evolution", (("rename_column", "ignore"),)))),
)


@pytest.mark.parametrize("cases", [OFTEN, pytest.param(SELDOM, marks=pytest.mark.soak)], ids=["often", "seldom"])
def test_a_mirror_that_is_merged_into_does_what_is_said(
    spark: SparkSession, tmp_path: Path, cases: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """Cases in several plans, merged by Spark."""
    lake = Lake(spark, tmp_path / "lake", Lab(), changelog=None, table_properties=FEED, tables=rules())
    with caplog.at_level(logging.CRITICAL):
        lab_of(lambda _: lake.cut(), apart=True, lab=lake.lab, names=cases)

    for name in cases:
        names, rows = EXPECTED[name]
        found = sorted(lake.mirror(f"shop_{name}"), key=lambda row: row["id"])
        assert names.format(b=first_id(lake.lab, f"shop.{name}", "b")).split() == list(found[0])
        assert rows == [tuple(row.values()) for row in found]


@pytest.fixture(scope="module")
def others(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> HeldLake:
    """Tables whose column ``b`` changes its type; rows come, and all go, and come again."""
    path: Path = tmp_path_factory.mktemp("others") / "lake"
    lake = HeldLake(spark, path, Lab(), history="{database}_{table}_history", tables=OTHERS)
    lab = lake.lab
    for name, _ in OTHERS:
        lab.create(name, {"id": INT, "b": text() if name == "shop.computed" else INT})
        lab.insert(name, *({"id": i, "b": str(10 * i) if name == "shop.computed" else 10 * i} for i in (1, 2)))
    lake.cut()
    for name, _ in OTHERS[:4]:
        lab.retype(name, "b", text(), cut=True)
        lab.update(name, {"id": 1, "b": "10"}, b="ten")
    lab.retype("shop.computed", "b", INT, cut=True)
    lab.update("shop.computed", {"id": 1, "b": 10}, b=1234)
    lab.rename_column("shop.renamed", "b", "q")
    lab.update("shop.renamed", {"id": 1, "q": 10}, q=11)
    lake.cut()
    for name, _ in OTHERS[:4]:
        lab.truncate(name)
        lab.insert(name, {"id": 1, "b": "again"})
    lab.insert("shop.computed", {"id": 3, "b": 9})
    lab.insert("shop.renamed", {"id": 3, "q": 30})
    lake.cut()
    return lake


@pytest.mark.parametrize(
    "name, columns, rows",
    [
        ("soft", "id b b__h{b} _deleted", [(1, "again", None, False), (2, None, 20, True)]),
        ("soft_kept", "id b b__h{b} _deleted", [(1, "again", None, False), (2, None, 20, True)]),
        ("mirror", "id b b__h{b}", [(1, "again", None), (2, None, 20)]),
        ("computed", "id b c b__h{b}", [(1, 1234, 2, None), (2, None, 3, "20"), (3, 9, 4, None)]),
        ("renamed", "id b c", [(1, 11, 12), (2, 20, 21), (3, 30, 31)]),
    ],
)
def test_a_mirror_of_another_kind_does_what_is_said(
    others: HeldLake, name: str, columns: str, rows: list[tuple[Any, ...]]
) -> None:
    found = sorted(others.mirror(f"shop_{name}"), key=lambda row: row["id"])
    found = [{column: value for column, value in row.items() if column != "_deleted_at"} for row in found]

    assert {} == others.stopped()
    assert columns.format(b=first_id(others.lab, f"shop.{name}", "b")).split() == list(found[0])
    assert rows == [tuple(row.values()) for row in found]


def test_spark_reads_a_mirror_of_another_kind_as_its_files_hold_it(others: HeldLake) -> None:
    others.read_by_spark("shop_soft", "shop_computed", "shop_renamed")


def test_rows_are_taken_back_without_a_mirror_as_the_changelog_has_them(others: HeldLake) -> None:
    aside = f"b__h{first_id(others.lab, 'shop.log', 'b')}"
    told = [(row["op"], row["id"], row["b"], row[aside]) for row in others.raw_log("shop_log_changes")]

    assert [(0, 1, None, 10), (0, 2, None, 20), (2, 1, "10", None), (3, 1, "ten", None)] == told[:4]
    assert [(1, 1, "ten", None), (1, 2, None, 20)] == sorted(told[4:6], key=lambda row: row[1])
    assert [(0, 1, "again", None)] == told[6:]
    opened = [row.from_offset for row in others.history("shop_log_history") if row.to_offset is None]
    assert [6] == opened


def test_columns_go_by_which_someone_clusters_the_mirror(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab(), changelog=None)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "b": INT, "c": INT})
    lab.insert("shop.t", {"id": 1, "b": 10, "c": 100})
    lake.cut()
    path = f"delta.`{lake.path}/shop_t`"
    spark.sql(f"ALTER TABLE {path} CLUSTER BY (b, c)")
    for column, left in (("b", ["c"]), ("c", [])):
        lab.drop_column("shop.t", column)
        lab.insert("shop.t", {"id": len(lab.rows("shop.t")) + 1, **dict.fromkeys(left, 200)})
        lake.cut()

        assert {} == lake.stopped()
        assert left == spark.sql(f"DESCRIBE DETAIL {path}").head().clusteringColumns
        spark.sql(f"OPTIMIZE {path}").collect()
        assert lab.rows("shop.t") == sorted(lake.mirror("shop_t"), key=lambda row: row["id"])
