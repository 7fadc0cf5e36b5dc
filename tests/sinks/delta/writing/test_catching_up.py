"""Mirrors and histories that apply rows later than their changelogs: when they do, and that they then equal the source.

A plan of the lab is made a microsecond behind the one before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sinks
from historian.errors import ConfigError, PositionAhead
from lakes.held_rows import HeldLake
from lakes.lake import Lake
from lakes.sink_lab import INT, START_US, Lab, text
from sinks.delta import DeltaSettings, faults
from sinks.delta.lake import deferred_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("quiet")

T = {"id": INT, "a": INT}


def _lake(spark: SparkSession, path: Path, *, every: int = 3, **settings: Any) -> HeldLake:
    """shop.t, whose mirror may wait that many plans, and shop.u, whose may not; a row in each."""
    said = (("shop.t", (("mirror_every_us", every),)),)
    lake = HeldLake(spark, path / "lake", Lab(), **{"tables": said, **settings})
    lake.lab.create("shop.t", T)
    lake.lab.create("shop.u", {"id": INT})
    lake.lab.insert("shop.t", {"id": 1, "a": 1})
    lake.lab.insert("shop.u", {"id": 1})
    lake.cut()
    return lake


def _row(value: int) -> dict[str, int]:
    return {"id": value, "a": value}


def test_rows_wait_for_the_plan_that_is_due_and_are_one_net_change_then(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, history="{database}_{table}_history")
    lab, before = lake.lab, lake.mirror("shop_t")
    versions = lake.versions("shop_t"), lake.versions("shop_t_history")

    lab.insert("shop.t", _row(2), _row(3), _row(4))
    lake.cut()
    lab.update("shop.t", _row(2), a=20)
    lab.update("shop.t", _row(1), id=10)
    lab.delete("shop.t", _row(3))
    lake.cut()
    assert before == lake.mirror("shop_t")
    assert versions == (lake.versions("shop_t"), lake.versions("shop_t_history"))
    assert lab.log(1) == lake.log("shop_t_changes")
    assert {1: START_US + 4} == lake.sink.due_us()

    lab.update("shop.t", {"id": 2, "a": 20}, a=21)
    lab.insert("shop.t", _row(5))
    lake.cut()  # the plan of START_US + 4
    assert versions[0] + 1 == lake.versions("shop_t")
    assert {} == lake.sink.due_us()
    lake.check_all()
    lake.read_by_spark("shop_t", "shop_t_changes", "shop_t_history")

    lab.insert("shop.t", _row(6))
    lake.cut()
    assert {1: START_US + 7} == lake.sink.due_us()
    lake.reopen()
    assert {1: START_US + 7} == lake.sink.due_us()


def test_a_table_that_did_not_change_for_long_takes_up_its_next_rows_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = _lake(spark, tmp_path)
    for value in range(2, 6):
        lake.lab.insert("shop.u", {"id": value})
        lake.cut()
    lake.lab.insert("shop.t", _row(2))
    lake.cut()
    lake.check_all()


def test_a_plan_without_rows_of_the_table_takes_up_what_is_due(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path)
    lake.lab.insert("shop.t", _row(2))
    lake.cut()
    for value in (2, 3):
        assert [_row(1)] == lake.mirror("shop_t")
        lake.reopen()
        lake.lab.insert("shop.u", {"id": value})
        lake.cut()
    lake.check_all()


def test_a_plan_without_log_takes_up_all_that_waits(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, every=100)
    lake.lab.insert("shop.t", _row(2))
    lake.cut()
    lake.reopen()
    plan = lake.cut()
    assert plan.start == plan.end
    lake.check_all()
    assert {} == lake.sink.due_us()


def test_what_waits_is_taken_up_before_a_statement(spark: SparkSession, tmp_path: Path) -> None:
    tables = (("*.*", (("mirror_every_us", 100),)),)
    lake = HeldLake(spark, tmp_path / "lake", Lab(), tables=tables, history="{database}_{table}_history")
    lab, names = lake.lab, [f"shop.{name}" for name in ("add", "truncate", "drop", "again", "rename")]
    for name in names:
        lab.create(name, T)
        lab.insert(name, _row(1), _row(2))
    lake.cut()
    for name in names:
        lab.insert(name, _row(3))
    lake.cut()
    for name in names:
        lab.update(name, _row(3), a=30)
    lake.cut()
    assert [[_row(1), _row(2)]] * len(names) == [lake.mirror(name.replace(".", "_")) for name in names]

    for name in names:
        lab.delete(name, _row(2))
    lab.add("shop.add", "b", text(), initial="x")
    lab.insert("shop.add", {"id": 9, "a": 9, "b": "y"})
    lab.truncate("shop.truncate")
    lab.insert("shop.truncate", _row(7))
    lab.drop("shop.drop")
    lab.drop("shop.again")
    lab.create("shop.again", {"id": INT, "z": text()})
    lab.insert("shop.again", {"id": 5, "z": "x"})
    lab.rename(("shop.rename", "shop.other"))
    lab.insert("shop.other", _row(8))
    lake.cut()
    lake.check_all()


def test_tables_wait_together_behind_the_longest_deferral(spark: SparkSession, tmp_path: Path) -> None:
    """The one that waits longest takes the others with it; they do not take it."""
    every = (("shop.t", (("mirror_every_us", 2),)), ("shop.u", (("mirror_every_us", 5),)))
    lake = _lake(spark, tmp_path, tables=every)
    taken: list[str] = []
    held = {"t": lake.versions("shop_t"), "u": lake.versions("shop_u")}
    for value in range(2, 9):
        lake.lab.insert("shop.t", _row(value))
        lake.lab.insert("shop.u", {"id": value})
        lake.cut()
        now = {"t": lake.versions("shop_t"), "u": lake.versions("shop_u")}
        taken.append("".join(name for name in now if now[name] > held[name]))
        held = now

    assert ["", "t", "", "t", "tu", "", "t"] == taken
    assert [6, 1] == [
        sinks.consistent(spark, lake.path).plan,
        sinks.consistent(spark, lake.path, at=lake.lab.plans[0].end).plan,
    ]
    cut = sinks.consistent(spark, lake.path, at=lake.lab.plans[1].end)
    assert 6 == cut.plan
    assert [6, 6] == [cut.mirror[name].count() for name in ("shop.t", "shop.u")]
    only = sinks.consistent(spark, lake.path, kinds=["changelog"])
    assert (8, 8) == (only.plan, only.changelog["shop.t"].count())
    with pytest.raises(PositionAhead, match="mirror_every"):
        sinks.consistent(spark, lake.path, at=lake.lab.plans[6].end)
    lake.cut()
    newest = sinks.consistent(spark, lake.path)
    assert (9, 8, 8) == (newest.plan, newest.mirror["shop.t"].count(), newest.mirror["shop.u"].count())


def test_status_says_how_far_each_target_is(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, every=100)
    lake.lab.insert("shop.u", {"id": 2})
    lake.cut()
    for value in (2, 3):
        lake.lab.insert("shop.t", _row(value))
        lake.cut()
    expected = {"shop_t": 2, "shop_t_changes": 4, "shop_u": 4, "shop_u_changes": 4}
    for _ in range(2):
        found = {status.target: status for status in lake.sink.status()}
        assert expected == {target: status.plan for target, status in found.items()}
        assert str(lake.lab.plans[1].end) == found["shop_t"].position
        lake.reopen()
    lake.cut()
    assert {5} == {status.plan for status in lake.sink.status()}


def test_other_settings_hold_from_the_next_plan_on(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, every=100)
    lake.lab.insert("shop.t", _row(2))
    lake.cut()
    lake.settings = DeltaSettings(path=str(lake.path))
    lake.reopen()
    assert {1: START_US + 1} == lake.sink.due_us()
    lake.lab.insert("shop.u", {"id": 2})
    lake.cut()
    lake.check_all()


def test_a_plan_that_comes_again_does_what_was_recorded_for_it(spark: SparkSession, tmp_path: Path) -> None:
    """Under other settings too: what it left to a later plan it leaves, what it was to apply it applies."""
    lake = _lake(spark, tmp_path, every=100)
    waits, none = lake.settings, DeltaSettings(path=str(lake.path))
    lake.lab.insert("shop.t", _row(2))
    _crash_once(lake)
    lake.settings = none
    lake.catch_up()
    assert [_row(1)] == lake.mirror("shop_t")
    lake.lab.insert("shop.t", _row(3))
    _crash_once(lake)
    lake.settings = waits
    lake.catch_up()
    lake.check_all()


def test_a_crash_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, history="{database}_{table}_history")
    lab = lake.lab
    lab.insert("shop.t", _row(2))
    _crash(lake)
    lab.insert("shop.u", {"id": 7})
    lab.update("shop.t", _row(2), a=5)
    _crash(lake)
    assert [_row(1)] == lake.mirror("shop_t")
    lab.delete("shop.t", _row(1))
    _crash(lake)
    lake.check_all()
    lab.insert("shop.t", _row(4))
    _crash(lake)
    lab.insert("shop.t", _row(5))
    lab.add("shop.t", "b", INT, initial="7")
    lab.update("shop.t", {"id": 4, "a": 4, "b": 7}, b=8)
    _crash(lake)
    lake.check_all()


_PLACES = (
    "plan_recorded",
    "tables_recorded",
    "files_written",
    "changelog_committed",
    "mirror_committed",
    "history_committed",
)


def _crash(lake: HeldLake, places: Sequence[str] = _PLACES) -> None:
    """Writes a plan that ends each time that it reaches one of *places*, and goes on behind it."""
    plan = lake.lab.cut()
    seen: set[tuple[str, str]] = set()

    def crash(place: str, at: str) -> None:
        if place in places and (place, at) not in seen:
            seen.add((place, at))
            raise _CrashError

    while True:
        faults.arm_at(crash)
        try:
            lake.reopen()
            if lake.held < plan.number:
                lake.write(plan)
            return
        except _CrashError:
            continue
        finally:
            faults.disarm()


class _CrashError(BaseException):
    """As the end of a process, nothing but the test itself catches it."""


def _crash_once(lake: HeldLake) -> None:
    """A plan that ends where the lake has recorded it."""

    def crash(place: str) -> None:
        if place == "plan_recorded":
            raise _CrashError

    faults.arm(crash)
    with pytest.raises(_CrashError):
        lake.cut()
    faults.disarm()


def test_a_table_that_stopped_goes_on_with_what_waited(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, every=100)
    lab = lake.lab
    lab.insert("shop.t", _row(2))
    lake.cut()
    lab.update("shop.t", _row(2), a=20)
    lab.insert("shop.u", {"id": 3})
    stops = lab.cut()
    rows = [chunk for chunk in lab.chunks[stops.number] if chunk.table_id == 1]
    stopped = [replace(chunk, rows=chunk.rows.slice(0, 0), stopped="no such date") for chunk in rows]
    lab.chunks[stops.number] = [*stopped, *(chunk for chunk in lab.chunks[stops.number] if chunk.table_id != 1)]
    lake.write(stops)
    lake.cut()
    assert ({"shop.t": "no such date"}, {}, [_row(1)]) == (lake.stopped(), lake.sink.due_us(), lake.mirror("shop_t"))
    assert {"shop_t": 1, "shop_t_changes": 2} == {
        status.target: status.plan for status in lake.sink.status() if status.table == "shop.t"
    }

    plan = lab.cut()
    table = next(table for table in plan.tables if table.table_id == 1)
    lab.plans[-1] = replace(plan, tables=(replace(table, behind=stops.previous),))
    lab.chunks[plan.number] = rows
    lake.write(lab.plans[-1])
    assert {} == lake.stopped()
    lake.check("shop.t", "shop.u")


def test_rows_are_found_wherever_compaction_put_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several chunks, by tasks of Spark."""
    monkeypatch.setattr(deferred_rows, "CHUNK_ROWS", 3)
    monkeypatch.setattr("sinks.contract.chunks.SMALL_BYTES", 0)
    lake = _lake(spark, tmp_path, every=100, history="{database}_{table}_history")
    for value in range(2, 6):
        lake.lab.insert("shop.t", _row(value))
        lake.lab.update("shop.t", _row(value), a=0)
        lake.cut()
        if value == 4:
            spark.sql(f"OPTIMIZE delta.`{lake.path}/shop_t_changes`")
    lake.cut()
    lake.check_all()
    lake.read_by_spark("shop_t", "shop_t_history")


def test_a_changelog_that_lost_rows_stops_its_table_alone(spark: SparkSession, tmp_path: Path) -> None:
    lake = _lake(spark, tmp_path, every=100)
    lake.lab.insert("shop.t", _row(2))
    lake.cut()
    spark.sql(f"DELETE FROM delta.`{lake.path}/shop_t_changes` WHERE id = 2")
    lake.lab.insert("shop.u", {"id": 2})
    lake.cut()
    lake.cut()
    assert ["shop.t"] == list(lake.sink.stopped())
    assert "changed by someone else" in lake.sink.stopped()["shop.t"]
    lake.check("shop.u")


def test_tables_with_rules_keys_and_decisions_take_up_rows(spark: SparkSession, tmp_path: Path) -> None:
    tables = (
        ("*.*", (("mirror_every_us", 100),)),
        ("shop.bag", (("keyless", "rows"),)),
        ("shop.keyed", (("key", ("k",)),)),
        ("shop.soft", (("mirror_deletes", "soft"),)),
    )
    lake = _lake(spark, tmp_path, tables=tables, evolution=(("drop_column", "keep"),))
    lab = lake.lab
    lab.create("shop.bag", {"x": INT}, key=())
    lab.create("shop.keyed", {"k": INT, "x": text()}, key=())
    lab.create("shop.soft", {"id": INT, "a": text()})
    lab.insert("shop.soft", {"id": 1, "a": "gone"})
    lab.drop_column("shop.t", "a")
    lake.cut()
    lab.insert("shop.bag", {"x": 1}, {"x": 1}, {"x": None})
    lab.insert("shop.keyed", {"k": 1, "x": "é"}, {"k": 2, "x": None})
    lab.insert("shop.t", {"id": 5})
    lab.delete("shop.soft", {"id": 1, "a": "gone"})
    lake.cut()
    lab.delete("shop.bag", {"x": 1})
    lab.update("shop.keyed", {"k": 1, "x": "é"}, k=3)
    lab.insert("shop.soft", {"id": 2, "a": None})
    lake.cut()
    assert [] == lake.mirror("shop_bag") == lake.mirror("shop_keyed")
    lake.cut()

    key = repr
    assert [{"x": 1}, {"x": None}] == sorted(lake.mirror("shop_bag"), key=key)
    assert [{"k": 2, "x": None}, {"k": 3, "x": "é"}] == sorted(lake.mirror("shop_keyed"), key=key)
    assert [{"id": 1, "a": 1}, {"id": 5, "a": None}] == sorted(lake.mirror("shop_t"), key=key)
    soft = sorted(lake.mirror("shop_soft"), key=key)
    assert [(1, True), (2, False)] == [(row["id"], row["_deleted"]) for row in soft]
    assert {} == lake.stopped()


def test_a_deferral_needs_a_changelog(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected a changelog.*mirror_every"):
        DeltaSettings(path=str(tmp_path), changelog=None, mirror_every_us=5)
    with pytest.raises(ConfigError, match=r"expected a changelog.*tables\['shop.t'\].mirror_every"):
        DeltaSettings(path=str(tmp_path), mirror_every_us=5, tables=(("shop.t", (("changelog", None),)),))


def _write_rows_that_wait(lake: Lake) -> None:
    """A plan whose row a mirror of shop.t has, and two whose rows it lacks: some come, go, and change their key."""
    lab = lake.lab
    lab.create("shop.t", T)
    lab.insert("shop.t", _row(1))
    lake.cut()
    lab.insert("shop.t", _row(2), _row(3))
    lake.cut()
    lab.delete("shop.t", _row(1))
    lab.update("shop.t", _row(2), a=20)
    lab.update("shop.t", _row(3), id=30)
    lake.cut()


def test_rows_wait_for_a_mirror_with_a_change_data_feed(spark: SparkSession, tmp_path: Path) -> None:
    """A plan in between has only rows; the last one has a statement, so that what waits is applied before its own."""
    feeds = (("delta.enableChangeDataFeed", "true"),)
    lake = Lake(spark, tmp_path / "lake", Lab(), mirror_every_us=100, table_properties=feeds)
    lab = lake.lab
    _write_rows_that_wait(lake)
    version = lake.versions("shop_t")
    assert [1] == [row["id"] for row in lake.mirror("shop_t")]

    lab.truncate("shop.t")
    lab.insert("shop.t", _row(2), _row(4))
    _crash(lake, ("mirror_cleared", "mirror_committed"))
    lake.check_all()
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version + 1)
    signs = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
    amount = Counter([(1, 1)])
    for row in feed.load(str(lake.path / "shop_t")).collect():
        amount[row.id, row.a] += signs[row["_change_type"]]
    assert {(2, 2): 1, (4, 4): 1} == {row: count for row, count in amount.items() if count}


@pytest.mark.soak
def test_rows_wait_for_a_mirror_that_spark_writes_and_that_keeps_deleted_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = {"writer": "spark", "mirror_deletes": "soft", "history": "{database}_{table}_history"}
    lake = Lake(spark, tmp_path / "lake", Lab(), mirror_every_us=100, **settings)
    lab = lake.lab
    _write_rows_that_wait(lake)
    assert [1] == [row["id"] for row in lake.mirror("shop_t")]
    assert [1] == [row["id"] for row in lake.mirror("shop_t_history")]

    lab.truncate("shop.t")
    lab.insert("shop.t", _row(2), _row(4))
    _crash(lake, ("mirror_cleared", "mirror_committed"))
    lake.check_all()
    last = {row["id"]: row["event_time"] for row in lake.raw_log("shop_t_changes") if row["op"] == 1}
    gone = {row["id"]: row["_deleted_at"] for row in lake.mirror("shop_t") if row["_deleted"]}
    assert {key: last[key] for key in (1, 3, 30)} == gone
