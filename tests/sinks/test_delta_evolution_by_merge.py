"""Edits and words for them where Spark merges into the mirror, where it keeps deleted rows, and where targets are missing."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evolution_cases import CASES, EXPECTED, lab_of, rules
from lake import Lake
from sink_lab import INT, Lab, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = (("delta.enableChangeDataFeed", "true"),)
LENIENT = ("evolution", (("preset", "lenient"),))
EMPTIED = ("evolution", (("preset", "lenient"), ("truncate", "apply")))
MERGED = [
    name for name in CASES if not name.startswith(("move_", "drop_archived", "drop_ignored", "drop_quar", "key_"))
]
"""Those in which something is merged behind an edit."""
OTHERS: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = (
    ("shop.soft", (("mirror_deletes", "soft"), EMPTIED)),
    ("shop.soft_kept", (("mirror_deletes", "soft"), LENIENT)),
    ("shop.log", (("mirror", None), EMPTIED)),
    ("shop.mirror", (("changelog", None), ("history", None), LENIENT)),
    ("shop.computed", (("compute", (("c", "id + 1"),)), LENIENT)),
    ("shop.renamed", (("compute", (("c", "b + 1"),)), ("evolution", (("rename_column", "ignore"),)))),
)


@pytest.fixture(scope="module")
def merged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Cases in several plans, merged by Spark."""
    path = tmp_path_factory.mktemp("merged") / "lake"
    logging.disable(logging.CRITICAL)
    try:
        lake = Lake(spark, path, Lab(), changelog=None, table_properties=FEED, tables=rules())
        lab_of(lambda _: lake.cut(), apart=True, lab=lake.lab, names=MERGED)
    finally:
        logging.disable(logging.NOTSET)
    return lake


@pytest.mark.parametrize("name", MERGED)
def test_a_mirror_that_is_merged_into_does_what_is_said(merged: Lake, name: str) -> None:
    names, rows = EXPECTED[name]
    found = sorted(merged.mirror(f"shop_{name}"), key=lambda row: row["id"])

    assert names.format(b=_id_of(merged, f"shop.{name}", "b")).split() == list(found[0])
    assert rows == [tuple(row.values()) for row in found]


@pytest.fixture(scope="module")
def others(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Tables whose column ``b`` changes its type; rows come, and all go, and come again."""
    path: Path = tmp_path_factory.mktemp("others") / "lake"
    lake = Lake(spark, path, Lab(), history="{database}_{table}_history", tables=OTHERS)
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
    others: Lake, name: str, columns: str, rows: list[tuple[Any, ...]]
) -> None:
    found = sorted(others.mirror(f"shop_{name}"), key=lambda row: row["id"])
    found = [{column: value for column, value in row.items() if column != "_deleted_at"} for row in found]

    assert {} == others.stopped()
    assert columns.format(b=_id_of(others, f"shop.{name}", "b")).split() == list(found[0])
    assert rows == [tuple(row.values()) for row in found]


def test_rows_are_taken_back_without_a_mirror_as_the_changelog_has_them(others: Lake) -> None:
    aside = f"b__h{_id_of(others, 'shop.log', 'b')}"
    told = [(row["op"], row["id"], row["b"], row[aside]) for row in others.raw_log("shop_log_changes")]

    assert [(0, 1, None, 10), (0, 2, None, 20), (2, 1, "10", None), (3, 1, "ten", None)] == told[:4]
    assert [(1, 1, "ten", None), (1, 2, None, 20)] == sorted(told[4:6], key=lambda row: row[1])
    assert [(0, 1, "again", None)] == told[6:]
    opened = [row.from_offset for row in others.history("shop_log_history") if row.to_offset is None]
    assert [6] == opened


@pytest.mark.parametrize("left", [("c",), ()])
def test_columns_go_by_which_someone_clusters_the_mirror(
    spark: SparkSession, tmp_path: Path, left: tuple[str, ...]
) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab(), changelog=None)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "b": INT, "c": INT})
    lab.insert("shop.t", {"id": 1, "b": 10, "c": 100})
    lake.cut()
    path = f"delta.`{lake.path}/shop_t`"
    spark.sql(f"ALTER TABLE {path} CLUSTER BY (b, c)")
    rows = [{"id": 1, "c": 100}, {"id": 2, "c": 200}]
    for column in {"b", "c"} - set(left):
        lab.drop_column("shop.t", column)
    lab.insert("shop.t", {name: value for name, value in rows[1].items() if name in ("id", *left)})
    lake.cut()

    assert {} == lake.stopped()
    found = sorted(lake.mirror("shop_t"), key=lambda row: row["id"])
    assert [{name: row[name] for name in ("id", *left)} for row in rows] == found
    assert [*left] == spark.sql(f"DESCRIBE DETAIL {path}").head().clusteringColumns
    spark.sql(f"OPTIMIZE {path}").collect()
    assert found == sorted(lake.mirror("shop_t"), key=lambda row: row["id"])


def _id_of(lake: Lake, table: str, column: str) -> int:
    """The id with which a column came."""
    firsts = (t.versions[0].snapshot for t in lake.lab.plans[0].tables)
    snapshot = next(s for s in firsts if s is not None and str(s.name) == table)
    return next(c.id for c in snapshot.columns if c.name == column)
