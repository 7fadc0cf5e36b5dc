"""Words for edits beside rules for columns, configured keys, mirrors of whole rows and mirrors that Spark merges."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.secret import Secret
from lakes.evolution_cases import first_id
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LENIENT = ("evolution", (("preset", "lenient"),))
TABLES: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = (
    ("shop.keyed", (("key", ("a",)), ("evolution", (("truncate", "ignore"),)))),
    ("shop.hashed", (("hash", (("b", Secret("salt")),)), LENIENT)),
    ("shop.replaced", (("cluster", True), ("evolution", (("change_type", "new_column"),)))),
    ("shop.bag", (("keyless", "rows"), ("evolution", (("truncate", "keep"),)))),
    (
        "shop.merged",
        (
            ("table_properties", (("delta.enableChangeDataFeed", "true"),)),
            ("evolution", (("rename_column", "ignore"), ("drop_column", "keep"))),
        ),
    ),
    ("shop.computed", (("compute", (("c", "b + 1"),)), LENIENT)),
)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> HeldLake:
    """A lake of four plans."""
    path: Path = tmp_path_factory.mktemp("rules") / "lake"
    lake = HeldLake(spark, path, Lab(), history="{database}_{table}_history", tables=TABLES)
    lab = lake.lab
    for name, _ in TABLES:
        lab.create(name, {"id": INT, "a": text(), "b": INT}, () if name == "shop.bag" else ("id",))
        lab.insert(name, {"id": 1, "a": "x", "b": 10}, {"id": 2, "a": "y", "b": 20})
    lake.cut()
    lab.truncate("shop.keyed")
    lab.insert("shop.keyed", {"id": 3, "a": "x", "b": 30})
    lab.retype("shop.hashed", "b", text(), cut=True)
    lab.update("shop.hashed", {"id": 1, "a": "x", "b": "10"}, b="ten")
    lab.add("shop.replaced", "c", INT)
    lab.insert("shop.replaced", {"id": 3, "a": "z", "b": 30, "c": 1})
    lab.truncate("shop.bag")
    lab.insert("shop.bag", {"id": 1, "a": "x", "b": 10})
    lab.rename_column("shop.merged", "b", "q")
    lab.add("shop.merged", "d", INT, initial="7")
    lab.insert("shop.merged", {"id": 3, "a": "z", "q": 30, "d": 1})
    lab.drop_column("shop.computed", "a")
    lab.insert("shop.computed", {"id": 3, "b": 30})
    lake.cut()
    lab.delete("shop.keyed", {"id": 3, "a": "x", "b": 30})
    lab.insert("shop.hashed", {"id": 3, "a": "z", "b": "thirty"})
    lab.drop_column("shop.replaced", "c")
    lake.cut()
    lab.retype("shop.replaced", "b", text(), cut=True)
    lab.insert("shop.replaced", {"id": 4, "a": "w", "b": "forty"})
    lab.delete("shop.bag", {"id": 1, "a": "x", "b": 10})
    lab.update("shop.merged", {"id": 1, "a": "x", "q": 10, "d": 7}, q=11)
    lab.drop_column("shop.merged", "a")
    lab.update("shop.computed", {"id": 3, "b": 30}, b=31)
    lake.cut()
    return lake


def _hash(value: str) -> str:
    return sha256(f"salt{value}".encode()).hexdigest()


EXPECTED: dict[str, Callable[[int], tuple[str, list[tuple[Any, ...]]]]] = {
    "keyed": lambda _: ("id a b", [(2, "y", 20)]),
    "hashed": lambda b: (
        f"id a b b__h{b}",
        [(1, "x", _hash("ten"), None), (2, "y", None, _hash("20")), (3, "z", _hash("thirty"), None)],
    ),
    "replaced": lambda b: (
        f"id a b b__h{b}",
        [(1, "x", None, 10), (2, "y", None, 20), (3, "z", None, 30), (4, "w", "forty", None)],
    ),
    "bag": lambda _: ("id a b", [(1, "x", 10), (2, "y", 20)]),
    "merged": lambda _: ("id b d a", [(1, 11, 7, "x"), (2, 20, 7, "y"), (3, 30, 1, "z")]),
    "computed": lambda _: ("id b c a", [(1, 10, 11, "x"), (2, 20, 21, "y"), (3, 31, 32, None)]),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_mirror_does_what_is_said_of_edits_and_of_rows(lake: HeldLake, name: str) -> None:
    names, rows = EXPECTED[name](first_id(lake.lab, f"shop.{name}", "b"))
    found = sorted(lake.mirror(f"shop_{name}"), key=lambda row: row["id"])

    assert lake.stopped() == {}
    assert names.split() == list(found[0])
    assert rows == [tuple(row.values()) for row in found]


def test_spark_reads_them_as_their_files_hold_them(lake: HeldLake) -> None:
    lake.read_by_spark("shop_merged", "shop_replaced", "shop_hashed", "shop_computed", "shop_hashed_changes")


def test_a_changelog_of_ids_that_were_set_aside_is_whole(lake: HeldLake) -> None:
    b = first_id(lake.lab, "shop.hashed", "b")
    rows = lake.raw_log("shop_hashed_changes")

    assert [
        (1, _hash("10")),
        (2, _hash("20")),
    ] == [(row["id"], row[f"b__h{b}"]) for row in rows[:2]]
    assert [(_hash("10"), None), (_hash("ten"), None), (_hash("thirty"), None)] == [
        (row["b"], row[f"b__h{b}"]) for row in rows[2:]
    ]
