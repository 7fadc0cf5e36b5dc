"""Mirrors whose rows a configured key tells apart, or none; mirrors that are clustered, and those that others maintain."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from historian.schema.snapshots import ColumnType
from lakes.held_rows import HeldLake
from lakes.lake import Lake
from lakes.sink_lab import INT, Lab, decimal, text
from sinks.delta.log.pruning import files_with
from sinks.delta.rewrite import file_rewrite, held_rows
from sinks.delta.targets import mirror

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from sinks.delta.log.commits import HeldFile
    from sinks.delta.log.table_view import TableView
    from sinks.delta.rewrite.copy_on_write import CopyOnWrite
    from sinks.delta.rewrite.staged import NetFiles

T = "shop.t"


def _check(lake: HeldLake) -> None:
    assert sorted(map(repr, lake.lab.rows(T))) == sorted(map(repr, lake.mirror("shop_t")))
    # What a TRUNCATE takes back comes in an order of its own.
    assert Counter(lake.lab.log(lake.lab.table_id(T))) == Counter(lake.log("shop_t_changes"))
    assert {} == lake.stopped()


def _keyless(spark: SparkSession, path: Path, **settings: Any) -> HeldLake:
    lake = HeldLake(spark, path / "lake", Lab(), **settings)
    lake.lab.create(T, {"a": text(), "b": INT, "v": INT}, key=())
    return lake


@pytest.mark.parametrize("way", ["merged by Spark", pytest.param("by executors", marks=pytest.mark.soak), "here"])
def test_a_configured_key_tells_rows_apart(
    spark: SparkSession, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log knows no key: an update that changes it is -C and +C of two keys."""
    monkeypatch.setattr(held_rows, "SMALL_BYTES", held_rows.SMALL_BYTES if way == "here" else 0)
    if way == "merged by Spark":
        monkeypatch.setattr(mirror, "taken_up", lambda *_: None)
    lake = _keyless(spark, tmp_path, key=("a", "b"))
    lab = lake.lab
    rows = [{"a": a, "b": b, "v": 0} for a in ("x", "X", "x ", None) for b in (1, None)]
    lab.insert(T, *rows)
    lake.cut()
    lab.update(T, rows[0], v=1)
    lab.update(T, rows[1], a="y")
    lab.update(T, rows[2], v=7)
    lab.update(T, {**rows[2], "v": 7}, a="y", b=2)
    lab.update(T, {"a": "y", "b": 2, "v": 7}, b=3)
    lab.delete(T, rows[7])
    lab.insert(T, rows[7])
    lab.delete(T, rows[7])
    lab.insert(T, {**rows[7], "v": 9}, {"a": "new", "b": 1, "v": 1})
    lab.delete(T, {"a": "new", "b": 1, "v": 1}, rows[4])
    lab.rename_column(T, "a", "c")
    lab.add(T, "w", INT, initial="5")
    lake.cut()

    _check(lake)
    lake.read_by_spark("shop_t", "shop_t_changes")
    lake.reopen()
    lab.drop_column(T, "c")
    lake.cut()
    assert "a column of the configured key is dropped" in lake.stopped()[T]


@pytest.mark.parametrize("small_bytes", [0, held_rows.SMALL_BYTES], ids=["by executors", "here"])
def test_a_table_without_a_key_has_each_row_as_often(
    spark: SparkSession, tmp_path: Path, small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rows, "SMALL_BYTES", small_bytes)
    lake = _keyless(spark, tmp_path, keyless="rows")
    lab = lake.lab
    row, other = {"a": "x", "b": None, "v": 0}, {"a": None, "b": 1, "v": 0}
    lab.insert(T, row, row, row, other)
    lake.cut()
    lab.insert(T, row, other)
    lab.update(T, row, v=1)
    lake.cut()
    lab.delete(T, row, row, other)
    lab.add(T, "w", INT, initial="5")
    lab.insert(T, {**row, "w": 5})
    lab.delete(T, {**other, "w": 5})
    lake.cut()
    _check(lake)
    assert 3 == len(lake.mirror("shop_t"))
    lab.truncate(T)
    lab.insert(T, {**row, "w": 6}, {**row, "w": 6})
    lake.cut()
    _check(lake)
    lake.read_by_spark("shop_t")

    lab.tables[lab.table_id(T)].bag.append({**other, "w": 9})
    lab.delete(T, {**other, "w": 9})
    lake.cut()
    assert "a change of a row that the mirror lacks" in lake.stopped()[T]


def test_a_key_that_a_table_lacks_stops_it(spark: SparkSession, tmp_path: Path) -> None:
    lake = _keyless(spark, tmp_path, tables=((T, (("key", ("a", "nope")),)),))
    lake.cut()

    assert {T: "the configured key names columns that shop.t lacks: nope"} == lake.stopped()


@pytest.mark.parametrize("batches", [1, 2])
def test_two_rows_of_a_configured_key_stop_the_table(spark: SparkSession, tmp_path: Path, batches: int) -> None:
    lake = _keyless(spark, tmp_path, key=("a",))
    lake.lab.insert(T, {"a": "x", "b": 1}, {"a": "y", "b": 1})
    if batches == 2:
        lake.cut()
        assert {} == lake.stopped()
    lake.lab.update(T, {"a": "y", "b": 1}, a="x")
    lake.cut()

    assert "two rows have one key" in lake.stopped()[T]


def test_a_clustered_mirror_keeps_its_key_through_renames(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
    lake = Lake(spark, tmp_path / "lake", Lab(), cluster=True)
    lab = lake.lab
    lab.create(T, {"v": INT, "id": INT})
    lab.insert(T, *({"id": i, "v": i} for i in (5, 3, 9, 1)))
    lake.cut()
    assert [1, 3, 5, 9] == [row["id"] for row in lake.mirror("shop_t")]
    lab.rename_column(T, "id", "number")
    lab.insert(T, {"number": 4, "v": 4}, {"number": 20, "v": 20})
    lab.delete(T, {"number": 5, "v": 5})
    lake.cut()
    spark.sql(f"OPTIMIZE delta.`{lake.path}/shop_t`")
    lab.update(T, {"number": 4, "v": 4}, v=5)
    lake.cut()

    lake.check(T)
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{lake.path}/shop_t`").first()
    assert detail is not None
    assert ["number"] == detail.clusteringColumns


def test_columns_of_which_delta_keeps_no_bounds_do_not_cluster_a_mirror(spark: SparkSession, tmp_path: Path) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), cluster=True)
    lab, uuid, bit = lake.lab, ColumnType(name="binary", length=16), ColumnType(name="bit", length=1)
    lab.create(T, {"uuid": uuid, "v": INT}, key=("uuid",))
    lab.create("shop.u", {"uuid": uuid, "tenant": INT, "flag": bit}, key=("uuid", "tenant", "flag"))
    lab.insert(T, *({"uuid": bytes([i]) * 16, "v": i} for i in (2, 1)))
    lab.insert("shop.u", {"uuid": b"u" * 16, "tenant": 1, "flag": True})
    lake.cut()
    lab.update(T, {"uuid": b"\1" * 16, "v": 1}, v=7)
    lake.cut()

    lake.check_all()
    views = (lake.kernel.view(f"{lake.path}/{directory}") for directory in ("shop_t", "shop_u"))
    assert [[], ["h4"]] == [view.clustering() for view in views if view is not None]


def test_new_keys_touch_no_file_and_changes_only_those_that_hold_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
    lake = Lake(spark, tmp_path / "lake", Lab())
    lab = lake.lab
    lab.create(T, {"id": INT, "v": INT})
    for begin in (0, 10, 20):
        lab.insert(T, *({"id": begin + i, "v": 0} for i in range(5)))
        lake.cut()
    lab.update(T, {"id": 12, "v": 0}, v=1)
    lab.insert(T, {"id": 7, "v": 7})
    lake.cut()

    lake.check(T)
    log = sorted((lake.path / "shop_t" / "_delta_log").glob("0*.json"))
    actions = [[json.loads(line) for line in path.read_text().splitlines()] for path in log]
    assert [0, 0, 0, 0, 1] == [sum("remove" in action for action in commit) for commit in actions]
    assert [0, 1, 1, 1, 2] == [sum("add" in action for action in commit) for commit in actions]


@pytest.mark.soak
def test_a_mirror_whose_rows_must_be_kept_is_merged_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First for its change data feed, then, without it, for its rows' identities."""
    lake, found = _nine(spark, tmp_path), []
    monkeypatch.setattr(mirror, "taken_up", lambda *given: found.append(file_rewrite.taken_up(*given)) or found[-1])
    _set(lake, enableChangeDataFeed=True)
    lake.lab.delete(T, {"id": 2, "v": 2})
    lake.cut()
    _set(lake, enableChangeDataFeed=False, enableRowTracking=True)
    lake.lab.delete(T, {"id": 3, "v": 3})
    lake.lab.add(T, "n", INT, initial="7")
    lake.lab.insert(T, {"id": 9, "v": 9, "n": 8})
    lake.cut()

    assert [None, None] == found
    lake.check(T)


def test_a_merge_by_spark_reads_no_file_whose_range_has_none_of_its_keys(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
    lake = Lake(spark, tmp_path / "lake", Lab(), history="{database}_{table}_history")
    lab = lake.lab
    lab.create(T, {"id": decimal(12, 2), "name": text(), "v": INT}, key=("name", "id"))
    cents = [Decimal(f"123456789{i}.1{i}") for i in range(4)] + [Decimal("0.10")]
    for begin in "ab":
        lab.insert(T, *({"id": cent, "name": f"{begin}{i}", "v": 0} for i, cent in enumerate(cents)))
        lake.cut()
    _set(lake, enableChangeDataFeed=True)
    others = [
        path
        for directory in ("shop_t", "shop_t_history")
        for path in (lake.path / directory).glob("*.parquet")
        if "b1" not in pq.read_table(path).column("h2").to_pylist()
    ]
    held = {path: path.read_bytes() for path in others}
    for path in others:
        path.write_bytes(bytes(len(held[path])))
    lab.update(T, {"id": cents[1], "name": "b1", "v": 0}, v=1)
    lab.delete(T, {"id": cents[3], "name": "b3", "v": 0})
    lab.insert(T, {"id": cents[2], "name": "b11", "v": 0})
    lake.cut()
    for path, content in held.items():
        path.write_bytes(content)

    assert len(others) == 2
    lab.delete(T, {"id": cents[4], "name": "b4", "v": 0})
    lake.cut()
    lake.check(T)
    lake.check_history(T)


def test_a_mirror_with_rows_that_are_marked_as_deleted_is_merged_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _nine(spark, tmp_path)
    _set(lake, enableDeletionVectors=True)
    found: list[file_rewrite.FileRewrite | None] = []

    def seen(*given: Any) -> file_rewrite.FileRewrite | None:
        # The first merge leaves deletion vectors.
        found.append(None if not found else file_rewrite.taken_up(*given))
        return found[-1]

    monkeypatch.setattr(mirror, "taken_up", seen)
    lake.lab.delete(T, {"id": 2, "v": 2})
    lake.cut()
    lake.lab.delete(T, {"id": 3, "v": 3})
    lake.lab.add(T, "n", INT, initial="7")
    lake.lab.update(T, {"id": 4, "v": 4, "n": 7}, v=5)
    lake.lab.insert(T, {"id": 9, "v": 9, "n": 8})
    lake.cut()

    assert [None, None] == found
    lake.check(T)


def _nine(spark: SparkSession, path: Path) -> Lake:
    """A lake with nine rows."""
    lake = Lake(spark, path / "lake", Lab())
    lake.lab.create(T, {"id": INT, "v": INT})
    lake.lab.insert(T, *({"id": i, "v": i} for i in range(9)))
    lake.cut()
    return lake


def _set(lake: Lake, **features: bool) -> None:
    said = ", ".join(f"'delta.{name}' = '{str(on).lower()}'" for name, on in features.items())
    lake.spark.sql(f"ALTER TABLE delta.`{lake.path}/shop_t` SET TBLPROPERTIES ({said})")


def test_files_that_an_optimize_replaces_meanwhile_are_read_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
    lake = Lake(spark, tmp_path / "lake", Lab())
    lab = lake.lab
    lab.create(T, {"id": INT, "v": INT})
    for begin in (0, 10):
        lab.insert(T, *({"id": begin + i, "v": 0} for i in range(3)))
        lake.cut()
    lab.update(T, {"id": 1, "v": 0}, v=1)
    lab.insert(T, {"id": 5, "v": 5})
    found: list[Sequence[str]] = []

    def meanwhile(
        spark: SparkSession, view: TableView, splice: CopyOnWrite, net: NetFiles
    ) -> file_rewrite.FileRewrite | None:
        taken = file_rewrite.taken_up(spark, view, splice, net)
        assert taken is not None
        if not found:
            spark.sql(f"OPTIMIZE delta.`{lake.path}/shop_t`")
        found.append(taken.removed)
        return taken

    monkeypatch.setattr(mirror, "taken_up", meanwhile)
    lake.cut()

    assert 2 == len(found)
    lake.check(T)


def test_a_change_leaves_files_alone_whose_range_has_none_of_its_keys(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta's statistics say so: such a file is not even opened."""
    touched: list[int] = []

    def found(held: Sequence[HeldFile], keys: pa.Table) -> list[HeldFile]:
        files = files_with(held, keys)
        touched.append(len(files))
        return files

    monkeypatch.setattr(file_rewrite, "_loose", lambda held: [])  # noqa: ARG005 as of files that are too large to be joined
    monkeypatch.setattr(file_rewrite, "files_with", found)
    lake = Lake(spark, tmp_path / "lake", Lab())
    lake.lab.create(T, {"id": INT})
    for low in (0, 100, 200):
        lake.lab.insert(T, {"id": low}, {"id": low + 9})
        lake.cut()
    lake.lab.delete(T, {"id": 109})
    lake.cut()

    assert [0, 0, 1] == touched
    lake.check(T)


def test_a_mirror_whose_name_has_a_table_without_a_key_is_said_to_have_ended(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, history="{database}_{table}_history")
    lab.create(T, {"id": INT, "v": INT})
    lab.insert(T, {"id": 1, "v": 1})
    lab.drop(T)
    lab.create(T, {"x": INT, "w": INT}, key=())
    lab.insert(T, {"x": 7, "w": 70})
    lake.cut()

    why = "dropped in plan 1; the table of that name that came in plan 1 has no {}, as it came without a primary key"
    assert {status.target: status.ended for status in lake.sink.status()} == {
        "shop_t_changes": None,
        "shop_t": why.format("mirror"),
        "shop_t_history": why.format("history"),
    }
    assert lake.mirror("shop_t") == []
    assert lake.log("shop_t_changes")[-1].data == (("x", 7), ("w", 70))

    lab.drop(T)
    lab.create(T, {"id": INT, "v": INT})
    lab.insert(T, {"id": 5, "v": 5})
    lake.cut()
    there = "dropped in plan 1; the table of that name that came in plan 2 has the history shop_t_history__t3"
    assert {status.target: status.ended for status in lake.sink.status()} == {
        "shop_t_changes": None,
        "shop_t": None,
        "shop_t_history": there,
        "shop_t_history__t3": None,
    }
    assert lake.mirror("shop_t") == lab.rows(T) == [{"id": 5, "v": 5}]
    assert [interval.values for interval in lake.history("shop_t_history__t3")] == [{5: 5, 6: 5}]
    lab.drop(T)
    lake.cut()
    assert {status.ended for status in lake.sink.status()} == {"dropped in plan 1", "dropped in plan 3"}
