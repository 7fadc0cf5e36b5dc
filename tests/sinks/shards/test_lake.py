"""Shards of one table in a lake: one changelog, mirror and history, through changes of rows and of schemas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.errors import ConfigError, SinkError
from historian.schema.snapshots import ColumnType
from lakes.crashes import Crashes
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text
from sinks.delta.lake.recorded import recorded_changelog
from sinks.delta.rewrite import few_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTO = ("shop.orders", (("shard", "{database}"),))
A, B, C = (f"shop_{name}.orders" for name in "abc")
COLUMNS = {"id": INT, "total": INT, "note": text()}
BIGINT = ColumnType(name="bigint")


def made(spark: SparkSession, path: Path, **settings: Any) -> HeldLake:
    tables = (("shop_*.orders", (("into", INTO),)),)
    return HeldLake(spark, path / "lake", Lab(), tables=tables, **{"history": "{database}_{table}_history", **settings})


def row(number: int, **values: Any) -> dict[str, Any]:
    return {"id": number, "total": number * 10, "note": f"n{number}", **values}


def union(lab: Lab, *shards: str) -> list[dict[str, Any]]:
    """UNION ALL of the shards with their database; what a shard has no column for is left out."""
    found = [{"shard": name.partition(".")[0], **row} for name in shards for row in lab.rows(name)]
    return sorted(found, key=lambda one: (one["shard"], one["id"]))


def mirror(lake: HeldLake, directory: str = "shop_orders") -> list[dict[str, Any]]:
    return sorted(lake.mirror(directory), key=lambda one: (one["shard"], one["id"]))


def folded(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """What the rows of a changelog amount to, by key."""
    state: dict[tuple[str, int], dict[str, Any]] = {}
    for one in rows:
        key = one["shard"], one["id"]
        data = {"total": one["total"]}
        if one["op"] in (0, 3):
            assert one["op"] == 3 or key not in state
            state[key] = data
        elif one["op"] == 1:
            assert state.pop(key) == data
        else:
            assert state[key] == data
    return state


def check(lake: HeldLake, *shards: str, folds: bool = True) -> None:
    """Mirror and open rows of the history are the shards' rows, and the changelog folds to them."""
    expected = union(lake.lab, *shards)
    assert lake.stopped() == {}
    assert mirror(lake) == expected
    if folds:
        log = lake.raw_log("shop_orders_changes")
        assert [one["offset"] for one in log] == list(range(len(log)))
        assert sorted(folded(log)) == [(one["shard"], one["id"]) for one in expected]
    history = lake.mirror("shop_orders_history")
    still = [one for one in history if one["to_offset"] is None]
    names = list(expected[0]) if expected else []
    assert sorted(([one[n] for n in names] for one in still), key=repr) == sorted(
        ([one[n] for n in names] for one in expected), key=repr
    )


def two(spark: SparkSession, path: Path, **settings: Any) -> HeldLake:
    """A lake of two shards with the same keys."""
    lake = made(spark, path, **settings)
    for name in (A, B):
        lake.lab.create(name, COLUMNS)
        lake.lab.insert(name, row(1), row(2), row(3))
    lake.cut()
    return lake


@pytest.mark.parametrize("on_executors", [pytest.param(False, marks=pytest.mark.soak), True])
def test_rows_of_shards_with_the_same_keys_stand_side_by_side(
    spark: SparkSession, tmp_path: Path, on_executors: bool
) -> None:
    lake = two(spark, tmp_path)
    lab = lake.lab
    check(lake, A, B)
    assert lake.columns("shop_orders") == ["shard string", "id int", "total int", "note string"]

    lab.update(A, row(1), total=11)
    lab.delete(B, row(1))
    lab.update(B, row(2), id=5)
    lab.create(C, COLUMNS)
    lab.insert(C, row(1))
    plan = lake.cut(on_executors=on_executors)

    check(lake, A, B, C)
    assert {one["shard"] for one in mirror(lake)} == {"shop_a", "shop_b", "shop_c"}
    lake.reopen()
    lake.write(plan)
    lake.write(lab.plans[0])
    check(lake, A, B, C)
    lake.read_all_by_spark()
    assert sorted(d.name for d in lake.path.iterdir() if not d.name.startswith("historian")) == [
        "shop_orders",
        "shop_orders_changes",
        "shop_orders_history",
    ]


def test_statements_that_reach_shards_one_after_another_are_followed_once(spark: SparkSession, tmp_path: Path) -> None:
    lake = two(spark, tmp_path)
    lab = lake.lab

    def on(name: str, number: int) -> None:
        lab.add(name, "state", text(), after="id", initial="new")
        lab.retype(name, "total", BIGINT)
        lab.rename_column(name, "note", "remark")
        lab.insert(name, {"id": number, "state": "s", "total": 2**40, "remark": "r"})

    on(A, 10)
    lab.insert(B, row(4))
    lake.cut()
    assert lake.columns("shop_orders") == ["shard string", "id int", "state string", "total bigint", "remark string"]
    assert [(one["shard"], one["id"], one["state"]) for one in mirror(lake)] == [
        ("shop_a", 1, "new"),
        ("shop_a", 2, "new"),
        ("shop_a", 3, "new"),
        ("shop_a", 10, "s"),
        ("shop_b", 1, "new"),
        ("shop_b", 2, "new"),
        ("shop_b", 3, "new"),
        ("shop_b", 4, "new"),
    ]
    lab.update(B, row(4), total=41)
    lake.catch_up()
    lake.cut()
    lake.reopen()
    on(B, 11)
    lab.create(C, {"id": INT, "state": text(), "total": INT, "note": text()})
    lab.insert(C, {"id": 1, "state": "c", "total": 1, "note": "c"})
    lake.cut()
    lab.rename_column(C, "note", "remark")
    lab.retype(C, "total", BIGINT)
    lab.insert(C, {"id": 2, "state": "d", "total": 2**41, "remark": "c2"})
    lake.cut()
    check(lake, A, B, C)
    assert lake.columns("shop_orders") == ["shard string", "id int", "state string", "total bigint", "remark string"]

    lab.drop_column(A, "state")
    lab.drop_column(C, "state")
    lab.insert(A, {"id": 20, "total": 1, "remark": "x"})
    lake.cut()
    assert "state string" in lake.columns("shop_orders")
    assert [one["state"] for one in mirror(lake) if one["id"] == 20] == [None]
    lab.drop_column(B, "state")
    lab.insert(B, {"id": 21, "total": 1, "remark": "x"})
    lake.cut()
    check(lake, A, B, C)
    lab.add(B, "state", INT)
    lab.update(B, {"id": 21, "total": 1, "remark": "x", "state": None}, state=5)
    lab.add(A, "state", INT)
    lab.add(C, "state", INT)
    lake.cut()
    check(lake, A, B, C)
    lake.read_all_by_spark()


@pytest.mark.parametrize("settings", [{}, {"mirror": None, "history": None}, {"mirror_deletes": "soft"}])
def test_truncate_and_drop_take_back_the_rows_of_their_shard(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any]
) -> None:
    lake = two(spark, tmp_path, **settings)
    lab = lake.lab

    def compare(*shards: str) -> None:
        expected = [(one["shard"], one["id"], one["total"]) for one in union(lab, *shards)]
        log = lake.raw_log("shop_orders_changes")
        assert sorted((s, i, one["total"]) for (s, i), one in folded(log).items()) == expected
        if "mirror" not in settings:
            live = [one for one in mirror(lake) if not one.get("_deleted")]
            assert [(one["shard"], one["id"], one["total"]) for one in live] == expected
        if "history" not in settings:
            still = [one for one in lake.mirror("shop_orders_history") if one["to_offset"] is None]
            assert sorted((one["shard"], one["id"], one["total"]) for one in still) == expected
        assert lake.stopped() == {}

    lab.insert(A, row(4))
    lab.truncate(A)
    lab.insert(A, row(1, total=100))
    lab.insert(B, row(4))
    plan = lake.cut()
    compare(A, B)
    lake.reopen()
    lake.write(plan)
    compare(A, B)
    lab.drop(B)
    lake.cut()
    compare(A)
    lab.create(B, {"id": INT, "note": text(), "total": INT})
    lab.insert(B, row(1))
    lab.truncate(A)
    lab.truncate(B)
    lab.insert(B, row(7))
    lake.cut()
    compare(A, B)
    lab.drop(A)
    lab.drop(B)
    lake.cut()
    compare()
    lab.create(A, COLUMNS)
    lab.insert(A, row(8))
    lake.cut()
    compare(A)
    assert [one["op"] for one in lake.raw_log("shop_orders_changes")].count(1) == 4 + 4 + 1 + 1 + 1


@pytest.mark.parametrize("by_spark", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["here", "by Spark"])
def test_a_crash_at_any_place_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_spark: bool
) -> None:
    if by_spark:
        monkeypatch.setattr(few_rows, "SMALL_BYTES", 0)
    lake = two(spark, tmp_path)
    lab = lake.lab
    crashes = Crashes(at=_PLACES)
    lab.add(A, "state", INT, initial="5")
    lab.insert(B, row(4))
    lab.truncate(A)
    lab.insert(A, row(1, state=1))
    lab.create(C, COLUMNS)
    lab.insert(C, row(1))
    lab.drop(B)
    crashes.write(lake, lab.cut())
    lab.add(C, "state", INT, initial="5")
    crashes.write(lake, lab.cut())
    check(lake, A, C)
    assert set(crashes.places) == {place for place in _PLACES if by_spark or place != "statement_done"}


def test_a_column_that_became_wider_meanwhile_is_added_by_the_next_shard(spark: SparkSession, tmp_path: Path) -> None:
    lake = two(spark, tmp_path)
    lab = lake.lab
    date, time = ColumnType(name="date"), ColumnType(name="datetime")
    lab.add(A, "day", date, initial="2024-02-29")
    lab.retype(A, "day", time)
    lake.cut()
    lab.add(B, "day", date, initial="2024-02-29")
    lake.cut()
    assert lake.stopped() == {}
    lab.retype(B, "day", time)
    lake.cut()
    assert lake.stopped() == {}


_PLACES = ("tables_recorded", "changelog_committed", "history_committed", "statement_done", "mirror_committed")


def test_a_shard_may_come_with_columns_of_its_own_and_lack_others(spark: SparkSession, tmp_path: Path) -> None:
    lake = made(spark, tmp_path)
    lab = lake.lab
    lab.create(A, {"id": INT, "total": INT, "note": text()})
    lab.insert(A, row(1))
    lake.cut()
    lab.create(B, {"ID": INT, "own": text(), "Total": BIGINT}, key=("ID",))
    late = lab.tables[lab.table_id(B)]
    late.versions = [replace(late.versions[0], place=None, edits=())]
    lab.insert(B, {"ID": 1, "own": "o", "Total": 2**40})
    lake.cut()
    assert lake.columns("shop_orders") == ["shard string", "id int", "own string", "total bigint", "note string"]
    assert [tuple(one.values()) for one in mirror(lake)] == [
        ("shop_a", 1, None, 10, "n1"),
        ("shop_b", 1, "o", 2**40, None),
    ]
    assert [one["own"] for one in lake.raw_log("shop_orders_changes")] == [None, "o"]
    recorded = recorded_changelog(spark, str(lake.path / "shop_orders_changes"))
    assert recorded is not None
    assert (recorded.key, dict(recorded.added)) == (("shard", "id"), {})


def test_rules_hold_for_shards_too_and_what_is_said_must_be_the_same(spark: SparkSession, tmp_path: Path) -> None:
    rules = (("mask", (("note", "*"),)), ("where", "total < 100"), ("compute", (("twice", "total * 2"),)))
    lake = HeldLake(spark, tmp_path / "lake", Lab(), tables=(("shop_*.orders", (("into", INTO), *rules)),))
    lab = lake.lab
    for name in (A, B):
        lab.create(name, COLUMNS)
        lab.insert(name, row(1), row(20))
    lake.cut()
    lab.update(B, row(1), total=7)
    lab.truncate(A)
    lake.cut(on_executors=True)
    assert [tuple(one.values()) for one in mirror(lake)] == [("shop_b", 1, 7, "*", 14)]

    shared = (("shop_b.*", (("mask", (("note", "*"),)),)), ("shop_*.orders", (("into", INTO),)))
    other = HeldLake(spark, tmp_path / "other", Lab(), tables=shared)
    for name in (A, B):
        other.lab.create(name, COLUMNS)
    with pytest.raises(ConfigError, match=r"says? something else of a shard.*shop_b.orders"):
        other.cut()
    again = HeldLake(spark, tmp_path / "again", Lab(), tables=shared[1:])
    again.lab.create(B, COLUMNS)
    again.cut()
    with pytest.raises(SinkError, match="something else of a shard"):
        HeldLake(spark, tmp_path / "again", again.lab, tables=shared)


def _one_shard_for_another(lake: HeldLake, crashes: Crashes) -> list[dict[str, Any]]:
    """A plan with ends in which B goes, C comes, and a key of A changes; the rows that are there then."""
    lab = lake.lab
    lab.drop(B)
    lab.create(C, {**COLUMNS, "state": INT})
    lab.insert(C, row(1, state=1))
    lab.update(A, row(3, state=1), id=30)
    crashes.write(lake, lab.cut())
    return union(lab, A, C)


def test_shards_have_a_mirror_that_tells_of_its_changes_and_whose_rows_have_an_identity(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark changes it; a plan ends behind each of its statements."""
    properties = (("delta.enableChangeDataFeed", "true"), ("delta.enableRowTracking", "true"))
    lake = two(spark, tmp_path, table_properties=properties, history=None)
    lab, crashes = lake.lab, Crashes(at=("mirror_committed", "statement_done"))
    for name in (A, B):
        lab.add(name, "state", INT, initial="5")
    lab.truncate(A)
    lab.insert(A, row(3, state=1), row(9, state=1))
    lake.cut()
    before, version = mirror(lake), lake.versions("shop_orders")
    expected = _one_shard_for_another(lake, crashes)

    assert mirror(lake) == expected
    assert sorted(folded(lake.raw_log("shop_orders_changes"))) == [(one["shard"], one["id"]) for one in expected]
    assert lake.stopped() == {}
    assert crashes.places["statement_done"]
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version + 1)
    amount = Counter(tuple(one.values()) for one in before)
    for one in feed.load(str(lake.path / "shop_orders")).collect():
        amount[tuple(one)[:-3]] += 1 if one["_change_type"] in ("insert", "update_postimage") else -1
    assert {key: count for key, count in amount.items() if count} == dict.fromkeys(
        (tuple(one.values()) for one in expected), 1
    )


@pytest.mark.soak
def test_shards_are_followed_by_spark_with_deleted_rows_kept_and_small_files_joined(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = two(spark, tmp_path, writer="spark", mirror_deletes="soft", compact=(2, 1_000_000), history=None)
    lab, places = lake.lab, ("changelog_prepared", "mirror_schema_committed", "statement_done")
    crashes = Crashes(at=places)
    for name in (A, B):
        lab.add(name, "state", INT, initial="5")
        lab.update(name, row(1, state=5), total=11)
    lab.truncate(A)
    lab.insert(A, row(3, state=1), row(9, state=1))
    crashes.write(lake, lab.cut())
    expected = _one_shard_for_another(lake, crashes)

    held = [(one.pop("_deleted_at", None), one.pop("_deleted", False), one) for one in mirror(lake)]
    assert [one for _, deleted, one in held if not deleted] == expected
    assert sorted(folded(lake.raw_log("shop_orders_changes"))) == [(one["shard"], one["id"]) for one in expected]
    assert lake.stopped() == {}
    assert set(crashes.places) == set(places)
    gone = [(one["shard"], one["id"]) for _, deleted, one in held if deleted]
    assert gone == [("shop_a", 1), ("shop_a", 2), ("shop_a", 3), ("shop_b", 1), ("shop_b", 2), ("shop_b", 3)]
