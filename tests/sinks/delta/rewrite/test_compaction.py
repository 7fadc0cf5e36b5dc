"""Small files are joined between plans: same rows, same order, same cuts, and nothing for who follows changes."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sinks
from historian.schema.snapshots import ColumnType
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text
from sinks.delta import faults
from sinks.delta.log.commits import Commit, HeldFile
from sinks.delta.log.kernel import CommitConflict, Kernel
from sinks.delta.log.table_view import TableView

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("quiet")

FEW = (3, 1_000_000)


def _lake(spark: SparkSession, tmp_path: Path, **settings: Any) -> HeldLake:
    lake = HeldLake(spark, tmp_path / "a lake", Lab(), **{"compact": FEW, **settings})
    lake.lab.create("shop.t", {"id": INT, "a": INT})
    return lake


def _files(lake: HeldLake, directory: str) -> list[HeldFile]:
    return lake.view(directory).held_files()


def _engines(lake: HeldLake, directory: str) -> list[str]:
    """What made each commit that changed no row, oldest first."""
    path = str(lake.path / directory)
    infos = [lake.kernel.commit_info(path, version) or {} for version in range(lake.versions(directory) + 1)]
    return [
        "ours" if "/compaction/" in info["engineInfo"] else "OPTIMIZE"
        for info in infos
        if "/compaction/" in info["engineInfo"] or info["operation"] == "OPTIMIZE"
    ]


def _insert(lake: HeldLake, *numbers: int) -> None:
    for number in numbers:
        lake.lab.insert("shop.t", {"id": number, "a": number})
        lake.cut()


def test_a_changelog_and_a_history_have_few_files_and_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, history="{database}_{table}_history")
    for number in range(1, 10):
        _insert(lake, number)
        if number == 3:
            lake.lab.add("shop.t", "late", ColumnType(name="varchar", length=9), initial="x")
        if number == 6:
            lake.lab.retype("shop.t", "a", ColumnType(name="bigint"))
        if number % 3 == 2:
            lake.lab.update("shop.t", lake.lab.rows("shop.t")[0], a=100 + number)
    lake.cut()

    lake.check("shop.t")
    lake.check_history("shop.t")
    lake.read_by_spark("shop_t", "shop_t_changes", "shop_t_history")
    assert len(_files(lake, "shop_t_changes")) <= 6
    assert len(_files(lake, "shop_t_history")) <= 6
    assert set(_engines(lake, "shop_t_changes")) == {"ours"} == set(_engines(lake, "shop_t_history"))
    stored = spark.read.format("delta").load(str(lake.path / "shop_t_changes"))
    joined = max(_files(lake, "shop_t_changes"), key=lambda file: json.loads(file.statistics)["numRecords"])
    said = json.loads(joined.statistics)
    rows = spark.read.parquet(joined.path).select("offset").collect()
    assert [row.offset for row in rows] == list(range(said["minValues"]["offset"], said["maxValues"]["offset"] + 1))
    assert stored.where("offset = 2").count() == 1


def test_files_that_were_joined_say_what_their_rows_are(spark: SparkSession, tmp_path: Path) -> None:
    """Delta skips a file by its bounds, so a row that is found by each of its values is in bounds."""
    lake = _lake(spark, tmp_path, mirror=None)
    lake.lab.create("shop.w", {"id": INT, "name": text(), "at": ColumnType(name="datetime", fraction=6)})
    for number in range(1, 6):
        lake.lab.insert(
            "shop.w",
            {"id": number, "name": f"n{number}", "at": datetime(2024, 1, number, 1, 2, 3, 456789)},  # noqa: DTZ001
        )
        lake.cut()
    assert _engines(lake, "shop_w_changes") != []
    frame = spark.read.format("delta").load(str(lake.path / "shop_w_changes"))
    rows = frame.orderBy("id").collect()
    assert len(rows) == 5
    for row in rows[::2]:
        assert frame.where((frame.name == row.name) & (frame["at"] == row["at"]) & (frame.id == row.id)).count() == 1


def test_cuts_from_before_and_behind_a_compaction_hold_the_same(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path)
    _insert(lake, *range(1, 8))
    lake.catch_up()
    _insert(lake, 8)

    assert _engines(lake, "shop_t_changes") != []
    assert lake.sink.held() == 7
    for number in (2, 8):
        cut = sinks.consistent(spark, str(lake.path), at=str(lake.lab.plans[number - 1].end))
        assert sorted(row.id for row in cut.changelog["shop.t"].collect()) == list(range(1, number + 1))
        assert sorted(row.id for row in cut.mirror["shop.t"].collect()) == list(range(1, number + 1))


def test_a_cut_stands_on_the_compacted_version(spark: SparkSession, tmp_path: Path) -> None:
    """So that VACUUM can take what compaction replaced."""
    lake = _lake(spark, tmp_path)
    _insert(lake, 1, 2, 3, 4)
    at = lake.versions("shop_t_changes")
    assert _engines(lake, "shop_t_changes") == ["ours"]
    newest = sinks.consistent(spark, str(lake.path), kinds=["changelog"])
    assert [table.version for table in newest.tables] == [at]
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        spark.sql(f"VACUUM delta.`{lake.path}/shop_t_changes` RETAIN 0 HOURS")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    _insert(lake, 5)
    lake.check("shop.t")
    lake.read_by_spark("shop_t_changes")


def test_who_follows_a_changelog_hears_of_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, table_properties=(("delta.appendOnly", "true"),), mirror=None)
    _insert(lake, 1, 2)

    def read() -> None:
        stream = spark.readStream.format("delta").load(str(lake.path / "shop_t_changes")).select("offset")
        query = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start(str(tmp_path / "followed")).awaitTermination()

    read()
    _insert(lake, 3, 4, 5)
    read()

    assert _engines(lake, "shop_t_changes") != []
    followed = spark.read.parquet(str(tmp_path / "followed")).collect()
    assert sorted(row.offset for row in followed) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("feature", ["delta.enableChangeDataFeed", "delta.enableRowTracking"])
def test_delta_itself_compacts_where_rows_have_an_identity(spark: SparkSession, tmp_path: Path, feature: str) -> None:
    lake = _lake(spark, tmp_path, table_properties=((feature, "true"),), mirror=None)
    _insert(lake, 1, 2, 3, 4)
    path = str(lake.path / "shop_t_changes")
    before = {}
    if feature.endswith("RowTracking"):
        before = _row_ids(spark, path, 3)
    _insert(lake, 5)

    assert set(_engines(lake, "shop_t_changes")) == {"OPTIMIZE"}
    assert len(_files(lake, "shop_t_changes")) < 5
    assert lake.log("shop_t_changes") == lake.lab.log(1)
    if before:
        now = _row_ids(spark, path, lake.versions("shop_t_changes"))
        assert before == {offset: row_id for offset, row_id in now.items() if offset in before}
    else:
        feed = spark.read.option("readChangeFeed", "true").option("startingVersion", 0).format("delta").load(path)
        assert sorted((row.offset, row._change_type) for row in feed.collect()) == [(n, "insert") for n in range(5)]


def _row_ids(spark: SparkSession, path: str, version: int) -> dict[int, int]:
    rows = spark.read.format("delta").option("versionAsOf", version).load(path).selectExpr("offset", "_metadata.row_id")
    return {row.offset: row.row_id for row in rows.collect()}


def test_a_commit_of_someone_else_comes_first(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What compaction wrote is no table's then; the next look joins the files."""
    lake = _lake(spark, tmp_path)
    _insert(lake, 1, 2, 3)
    commit = Kernel.commit

    def beaten(self: Kernel, view: TableView, application: str, version: int, made: Any) -> TableView:
        if made.same_rows:
            spark.sql(f"OPTIMIZE delta.`{view.path}`")
            monkeypatch.setattr(Kernel, "commit", commit)
        return commit(self, view, application, version, made)

    monkeypatch.setattr(Kernel, "commit", beaten)
    _insert(lake, 4, 5)
    assert "OPTIMIZE" in _engines(lake, "shop_t_changes")
    lake.check("shop.t")
    view = lake.view("shop_t_changes")
    gone = Commit(removed=[f"{view.path}/gone.parquet"], same_rows=True)
    with pytest.raises(CommitConflict):
        Kernel(spark, "tests").commit(view, "", 0, gone)


def test_a_clustered_mirror_is_sorted_until_a_key_stands_in_few_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each plan brings keys from everywhere, so a file of its own for each holds all of the range."""
    from sinks.delta.rewrite import file_rewrite
    from sinks.delta.rewrite.small_files import _DEPTH

    monkeypatch.setattr(file_rewrite, "_loose", lambda held: [])  # noqa: ARG005 as of files that are too large to be joined there
    lake = _lake(spark, tmp_path, cluster=True, compact=(4, 1500))
    for number in range(1, 17):
        lake.lab.insert("shop.t", *({"id": number + 16 * at, "a": 0} for at in range(60)))
        lake.cut()

    held = [json.loads(file.statistics) for file in _files(lake, "shop_t")]
    spans = [(said["minValues"]["h1"], said["maxValues"]["h1"]) for said in held]
    assert "ours" in _engines(lake, "shop_t")
    assert max(sum(low <= key <= high for low, high in spans) for key in range(1, 961)) <= _DEPTH + 1
    assert len(spans) > 1
    lake.check("shop.t")


def test_tables_take_turns(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sinks.delta.rewrite import compaction

    monkeypatch.setattr(compaction, "_LOOKS", 1)
    lake = _lake(spark, tmp_path, mirror=None)
    names = [f"shop.n{number}" for number in range(3)]
    for name in names:
        lake.lab.create(name, {"id": INT})
    for number in range(9):
        for name in names:
            lake.lab.insert(name, {"id": number})
        lake.cut()

    assert all(_engines(lake, f"shop_n{number}_changes") for number in range(3))


def test_compaction_that_is_off_leaves_files_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, tables=(("shop.t", (("compact", None),)),))
    _insert(lake, 1, 2, 3, 4)

    assert len(_files(lake, "shop_t_changes")) == 4


def test_executors_write_what_is_not_little(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sinks.delta.rewrite import held_rows

    monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
    lake = _lake(spark, tmp_path, mirror=None)
    _insert(lake, 1, 2, 3, 4)

    assert _engines(lake, "shop_t_changes") == ["ours"]
    assert [row["offset"] for row in lake.raw_log("shop_t_changes")] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "place, kinds",
    [
        ("compaction_written", {}),
        ("compaction_committed", {}),
        ("compaction_optimized", {"mirror": None}),
        pytest.param("compaction_optimized", {}, marks=pytest.mark.soak),
    ],
    ids=["written", "committed", "optimized", "optimized, with a mirror that Spark merges"],
)
def test_a_run_that_ends_while_it_compacts_goes_on(
    spark: SparkSession, tmp_path: Path, place: str, kinds: dict[str, None]
) -> None:
    properties = (("delta.enableChangeDataFeed", "true"),) if place.endswith("optimized") else ()
    lake = _lake(spark, tmp_path, table_properties=properties, **kinds)
    _insert(lake, 1, 2)
    ended = []

    def end(at: str) -> None:
        if at == place:
            ended.append(at)
            raise KeyboardInterrupt

    faults.arm(end)
    for number in range(3, 6):
        lake.lab.insert("shop.t", {"id": number, "a": number})
        plan = lake.lab.cut()
        try:
            lake.write(plan)
        except KeyboardInterrupt:
            lake.reopen()
            assert lake.held == plan.number
    faults.disarm()
    lake.catch_up()
    _insert(lake, 6)

    assert ended
    for directory in ("shop_t_changes", *(() if kinds else ("shop_t",))):
        assert {"OPTIMIZE" if properties else "ours"} == set(_engines(lake, directory))
    lake.check_all()


def test_the_record_of_plans_has_few_files_and_all_plans(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sinks.delta.lake import state
    from sinks.delta.settings import Compaction
    from sinks.delta.writing import sink

    monkeypatch.setattr(sink, "_PLANS", 4)
    monkeypatch.setattr(state, "_MANY_FILES", Compaction(files=3, target_bytes=1_000_000))
    lake = _lake(spark, tmp_path, mirror=None)
    _insert(lake, *range(1, 9))
    assert len(_files(lake, "historian_plans")) <= 3
    lake.catch_up()
    _insert(lake, 9)

    recovered = lake.sink.recover()
    assert recovered is not None
    assert list(recovered.plans) == lake.lab.plans
    lake.check_all()
