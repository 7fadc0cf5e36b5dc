"""Edits, words and kinds of targets: one lake with a table for each case, written in many plans and in one."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from historian.errors import EditRefused
from lakes.evolution_cases import CASES, EXPECTED, first_id, lab_of, rules
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab
from sinks.delta import DeltaSettings, faults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("changes", "history")


def _written(spark: SparkSession, path: Path, *, apart: bool) -> HeldLake:
    lake = HeldLake(spark, path, Lab(), history="{database}_{table}_history", tables=rules())
    lab_of(lambda _: lake.cut(), apart=apart, lab=lake.lab)
    return lake


@pytest.fixture(scope="module")
def lakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[HeldLake, HeldLake]:
    """The same log, written in several plans and in one."""
    path = tmp_path_factory.mktemp("evolution")
    logging.disable(logging.CRITICAL)
    try:
        return _written(spark, path / "apart", apart=True), _written(spark, path / "at_once", apart=False)
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", CASES)
def test_a_mirror_does_what_is_said_however_the_log_is_cut(lakes: tuple[HeldLake, HeldLake], name: str) -> None:
    names, rows = EXPECTED[name]
    names = names.format(b=first_id(lakes[0].lab, f"shop.{name}", "b"))

    for lake in lakes:
        found = sorted(lake.mirror(f"shop_{name}"), key=lambda row: row["id"])
        assert names.split() == list(found[0])
        assert rows == [tuple(row.values()) for row in found]


@pytest.mark.parametrize("name", CASES)
def test_changelog_and_history_do_not_depend_on_where_the_log_is_cut(
    lakes: tuple[HeldLake, HeldLake], name: str
) -> None:
    logs, histories = [], []
    for lake in lakes:
        rows = lake.raw_log(f"shop_{name}_changes")
        # The lab's rows have the time at which their chunk ended.
        logs.append([{k: v for k, v in row.items() if k not in ("system_time", "event_time")} for row in rows])
        history = lake.history(f"shop_{name}_history")
        histories.append([(row.from_offset, row.to_offset, row.values) for row in history])

    assert logs[0] == logs[1]
    assert histories[0] == histories[1]


def test_spark_reads_them_as_their_files_hold_them(lakes: tuple[HeldLake, HeldLake]) -> None:
    """Of each kind of table; of mirrors, where a column is not as it came."""
    lakes[0].read_by_spark("shop_changed_aside", "shop_drop_kept", "shop_move_ignored", "shop_rename_ignored")
    lakes[0].read_by_spark(*(f"shop_{name}_{kind}" for name in ("changed_aside", "truncate_kept") for kind in KINDS))


def test_changelogs_hold_every_value_but_those_that_are_left_out(lakes: tuple[HeldLake, HeldLake]) -> None:
    lake = lakes[0]
    b = first_id(lake.lab, "shop.changed_aside_then_emptied", "b")
    rows = lake.raw_log("shop_changed_aside_then_emptied_changes")
    told = [(row["op"], row["id"], row["b"], row[f"b__h{b}"]) for row in rows]

    assert [(0, 1, None, 10), (0, 2, None, 20), (2, 1, "10", None), (3, 1, "ten", None)] == told[:4]
    assert [(1, 1, "ten", None), (1, 2, None, 20), (0, 3, "thirty", None)] == told[4:]
    assert "c" not in lake.raw_log("shop_add_ignored_changes")[0]
    assert [0, 0, 1, 1, 0, 1, 0] == [row["op"] for row in lake.raw_log("shop_truncate_kept_changes")]
    assert [0, 0, 0] == [row["op"] for row in lake.raw_log("shop_truncate_ignored_changes")]
    assert [0, 0, 1, 1] == [row["op"] for row in lake.raw_log("shop_drop_archived_changes")]
    assert [0, 0] == [row["op"] for row in lake.raw_log("shop_drop_ignored_changes")]


def test_histories_end_rows_that_are_taken_back(lakes: tuple[HeldLake, HeldLake]) -> None:
    def open_rows(name: str) -> list[int | None]:
        return [row.from_offset for row in lakes[0].history(f"shop_{name}_history") if row.to_offset is None]

    assert [6] == open_rows("truncate_kept")
    assert [1, 2] == open_rows("truncate_ignored")
    assert [] == open_rows("drop_archived")
    assert [0, 1] == open_rows("drop_ignored")


@pytest.mark.parametrize("name", ["drop_archived", "drop_ignored"])
def test_a_table_that_comes_again_leaves_an_archive_alone(lakes: tuple[HeldLake, HeldLake], name: str) -> None:
    for lake in lakes:
        table_id = lake.lab.table_id(f"shop.{name}")

        assert [{"id": 1, "z": 1}] == lake.mirror(f"shop_{name}__t{table_id}")
        assert lake.lab.log(table_id) == lake.log(f"shop_{name}_changes__t{table_id}")


def test_what_is_not_followed_stops_its_table_and_says_why(lakes: tuple[HeldLake, HeldLake]) -> None:
    for lake in lakes:
        stopped = lake.stopped()

        assert {"shop.drop_quarantined", "shop.key_changed_in_type"} == set(stopped)
        assert "its evolution says quarantine of drop_column" in stopped["shop.drop_quarantined"]
        assert "ALTER TABLE shop.drop_quarantined DROP b" in stopped["shop.drop_quarantined"]


def test_fail_ends_the_run_before_anything_is_written_and_another_word_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), evolution=(("preset", "strict"),))
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "b": INT})
    lab.insert("shop.t", {"id": 1, "b": 10})
    lake.cut()
    lab.add("shop.t", "c", INT)
    lab.drop_column("shop.t", "b")
    versions = [lake.versions(name) for name in ("shop_t", "historian_plans", "historian_tables")]

    with pytest.raises(EditRefused, match=r"shop.t.b: ALTER TABLE shop.t DROP b.*drop_column"):
        lake.cut()

    assert versions == [lake.versions(name) for name in ("shop_t", "historian_plans", "historian_tables")]
    lake.settings = DeltaSettings(path=str(lake.path), evolution=(("preset", "strict"), ("drop_column", "apply")))
    lake.catch_up()
    lake.check("shop.t")


@pytest.mark.parametrize("place", ["tables_recorded", "changelog_committed", "mirror_committed"])
def test_a_plan_that_is_half_written_goes_on_as_it_began(spark: SparkSession, tmp_path: Path, place: str) -> None:
    """The configuration is another one by then; it holds for edits of later plans."""
    lake = HeldLake(spark, tmp_path / "lake", Lab(), evolution=(("preset", "lenient"),))
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "b": INT, "c": INT})
    lab.insert("shop.t", {"id": 1, "b": 10, "c": 100})
    lake.cut()
    lab.drop_column("shop.t", "b")
    lab.insert("shop.t", {"id": 2, "c": 200})
    faults.arm(lambda reached: (_ for _ in ()).throw(KeyboardInterrupt) if reached == place else None)
    try:
        with pytest.raises(KeyboardInterrupt):
            lake.cut()
    finally:
        faults.disarm()
    lake.settings = DeltaSettings(path=str(lake.path))
    lab.drop_column("shop.t", "c")
    lab.insert("shop.t", {"id": 3})
    lab.cut()
    lake.catch_up()

    rows = sorted(lake.mirror("shop_t"), key=lambda row: row["id"])
    assert [{"id": 1, "b": 10}, {"id": 2, "b": None}, {"id": 3, "b": None}] == rows
