"""Schema edits reach changelog and mirror by column id; what cannot be followed stops its table."""

from __future__ import annotations

import logging
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from historian.schema.snapshots import Column, ColumnType
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, decimal, text
from sinks.delta.targets.literals import initial_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIGINT = ColumnType(name="bigint")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> HeldLake:
    lake = HeldLake(spark, tmp_path / "lake", Lab())
    lake.lab.create("shop.t", {"id": INT, "a": text(), "b": INT})
    lake.lab.insert("shop.t", {"id": 1, "a": "x", "b": 10}, {"id": 2, "a": "y", "b": 20})
    lake.cut()
    return lake


def test_added_columns_stand_in_place_and_show_their_default_on_old_rows(lake: HeldLake) -> None:
    lab = lake.lab
    lab.insert("shop.t", {"id": 3, "a": "same plan", "b": 30})
    lab.add("shop.t", "first", decimal(7, 2), after="", initial="-1.50")
    lab.add("shop.t", "mid", text(), after="a", initial="d'e`f")
    lab.add("shop.t", "plain", INT, after="b")
    lab.insert("shop.t", {"id": 4, "first": Decimal("2.00"), "a": "new", "mid": "m", "b": 1, "plain": 5})
    lake.cut()

    lake.check("shop.t")
    assert ["first decimal(7,2)", "id int", "a string", "mid string", "b int", "plain int"] == lake.columns("shop_t")
    lake.read_by_spark("shop_t", "shop_t_changes")


DEFAULTS = [
    (ColumnType(name="datetime", fraction=6), "2024-02-29 12:34:56.000001"),
    (ColumnType(name="timestamp", fraction=3), "2024-02-29 12:34:56.001"),
    (ColumnType(name="date"), "1969-12-31"),
    (ColumnType(name="double"), "1.5"),
    (ColumnType(name="bigint", unsigned=True), "18446744073709551615"),
    (ColumnType(name="varbinary", length=4), "ab"),
    (ColumnType(name="bit", length=1), "b'1'"),
    (ColumnType(name="tinyint"), "-3"),
    (ColumnType(name="time"), "-01:00:00"),
]


@pytest.mark.parametrize("kinds", [{}, {"mirror": None}], ids=["in the mirror", "in the folded changelog"])
def test_defaults_of_every_kind_show_on_old_rows(spark: SparkSession, tmp_path: Path, kinds: dict[str, None]) -> None:
    lake = HeldLake(spark, tmp_path / "other", Lab(), **kinds)
    lab = lake.lab
    lab.create("shop.t", {"id": INT})
    lab.insert("shop.t", {"id": 1})
    lake.cut()
    for kind, initial in DEFAULTS:
        lab.add("shop.t", f"c_{kind.name}", kind, initial=initial)
    if kinds:
        lab.truncate("shop.t")
    lake.cut()

    assert lab.log(1) == lake.log("shop_t_changes")
    if not kinds:
        lake.check("shop.t")
    lake.read_by_spark("shop_t_changes" if kinds else "shop_t")


def test_dropped_and_added_again_a_column_shows_no_old_value(lake: HeldLake) -> None:
    lab = lake.lab
    lab.drop_column("shop.t", "b")
    lab.add("shop.t", "b", text())
    lab.insert("shop.t", {"id": 3, "a": "z", "b": "fresh"})
    lake.cut()

    lake.check("shop.t")
    assert ["id int", "a string", "b string"] == lake.columns("shop_t")
    assert ["id int", "a string", "b string", "b__h3 int"] == lake.columns("shop_t_changes")[5:]
    assert [10, 20, None] == [row["b__h3"] for row in lake.raw_log("shop_t_changes")]
    lake.read_by_spark("shop_t", "shop_t_changes")


def test_a_column_that_came_and_went_within_a_plan_is_in_the_changelog(lake: HeldLake) -> None:
    lab = lake.lab
    lab.add("shop.t", "brief", INT)
    lab.insert("shop.t", {"id": 3, "a": "z", "b": 1, "brief": 42})
    lab.drop_column("shop.t", "brief")
    lab.insert("shop.t", {"id": 4, "a": "z", "b": 2})
    lake.cut()

    lake.check("shop.t")
    assert [None, None, 42, None] == [row["brief"] for row in lake.raw_log("shop_t_changes")]


def test_renames_moves_and_swaps_of_columns_keep_values(lake: HeldLake) -> None:
    lab = lake.lab
    lab.rename_column("shop.t", "a", "tmp")
    lab.rename_column("shop.t", "b", "a")
    lab.rename_column("shop.t", "tmp", "b")
    lab.rename_column("shop.t", "b", "B")
    lab.move("shop.t", "a")
    lab.update("shop.t", {"a": 10, "id": 1, "B": "x"}, B="xx")
    lake.cut()

    lake.check("shop.t")
    assert ["a int", "id int", "B string"] == lake.columns("shop_t")
    lake.read_by_spark("shop_t", "shop_t_changes")


def test_types_widen_without_a_change_of_values(lake: HeldLake) -> None:
    lab = lake.lab
    lab.add("shop.t", "d", decimal(5, 2), initial="1.25")
    lab.add("shop.t", "f", ColumnType(name="float"), initial="0.5")
    lab.add("shop.t", "u", ColumnType(name="int", unsigned=True), initial="7")
    lab.insert("shop.t", {"id": 3, "a": "x", "b": 1, "d": Decimal("9.99"), "f": 1.5, "u": 2**32 - 1})
    lake.cut()
    lab.retype("shop.t", "b", BIGINT)
    lab.retype("shop.t", "d", decimal(9, 4))
    lab.retype("shop.t", "f", ColumnType(name="double"))
    lab.retype("shop.t", "u", ColumnType(name="bigint", unsigned=True))
    lab.retype("shop.t", "a", text(60))
    lab.retype("shop.t", "id", BIGINT)
    row = {"id": 2**40, "a": "x" * 50, "b": 2**40, "d": Decimal("99999.9999"), "f": 0.1, "u": 2**64 - 1}
    lab.insert("shop.t", row)
    lab.update("shop.t", {"id": 1, "a": "x", "b": 10, "d": Decimal("1.25"), "f": 0.5, "u": 7}, b=2**41)
    lake.cut()

    lake.check("shop.t")
    widened = ["id bigint", "a string", "b bigint", "d decimal(9,4)", "f double", "u decimal(20,0)"]
    assert widened == lake.columns("shop_t")
    lake.read_by_spark("shop_t", "shop_t_changes")


def test_a_type_change_within_one_plan_reads_old_rows_as_the_new_type(lake: HeldLake) -> None:
    lab = lake.lab
    lab.insert("shop.t", {"id": 3, "a": "x", "b": 5})
    lab.retype("shop.t", "b", BIGINT)
    lab.insert("shop.t", {"id": 4, "a": "x", "b": 2**50})
    lake.cut()

    lake.check("shop.t")


@pytest.mark.parametrize("kinds", [{}, {"mirror": None}], ids=["with mirror", "changelog only"])
def test_truncate_takes_back_what_is_there(spark: SparkSession, tmp_path: Path, kinds: dict[str, None]) -> None:
    lake = HeldLake(spark, tmp_path / "other", Lab(), **kinds)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": text()})
    lab.create("shop.bag", {"f": ColumnType(name="double"), "a": text()}, key=())
    lab.insert("shop.t", {"id": 1, "a": "x"}, {"id": 2, "a": "y"}, {"id": 3, "a": "gone"})
    lab.insert("shop.bag", {"f": -0.0, "a": "x"}, {"f": -0.0, "a": "x"}, {"f": 0.0, "a": None}, {"f": 1.5, "a": "gone"})
    lake.cut()
    lab.delete("shop.t", {"id": 3, "a": "gone"})
    lab.delete("shop.bag", {"f": 1.5, "a": "gone"})
    lab.add("shop.t", "n", INT, initial="7")
    lab.add("shop.bag", "n", INT, initial="7")
    lab.insert("shop.t", {"id": 5, "a": "z", "n": 1})
    lab.truncate("shop.t")
    lab.truncate("shop.bag")
    lab.insert("shop.t", {"id": 1, "a": "again", "n": 2})
    lab.insert("shop.bag", {"f": 2.5, "a": "again", "n": 2})
    lake.cut()
    lab.truncate("shop.t")
    lake.cut()

    assert lab.log(1) == lake.log("shop_t_changes")
    found, expected = lake.log("shop_bag_changes"), lab.log(2)
    assert sorted(map(repr, expected)) == sorted(map(repr, found))
    lake.read_by_spark("shop_bag_changes")
    if not kinds:
        assert [] == lake.mirror("shop_t")


def test_drop_empties_and_a_table_created_again_goes_on_in_the_same_place(lake: HeldLake) -> None:
    lab = lake.lab
    lab.insert("shop.t", {"id": 3, "a": "z", "b": 1})
    lab.drop("shop.t")
    lab.create("shop.t", {"id": text(), "c": INT})
    lab.insert("shop.t", {"id": "one", "c": 1})
    lab.drop("shop.t")
    lab.create("shop.t", {"c": INT, "id": INT})
    lab.insert("shop.t", {"c": 5, "id": 6})
    lake.cut()
    lab.update("shop.t", {"c": 5, "id": 6}, c=7)
    lake.cut()

    assert ["c int", "id int"] == lake.columns("shop_t")
    assert [{"c": 7, "id": 6}] == lake.mirror("shop_t")
    assert [*lab.log(1), *lab.log(2), *lab.log(3)] == lake.log("shop_t_changes")
    lake.read_by_spark("shop_t", "shop_t_changes")
    assert {} == lake.stopped()


def test_a_dropped_table_leaves_an_empty_mirror(lake: HeldLake) -> None:
    lake.lab.drop("shop.t")
    lake.cut()

    assert [] == lake.mirror("shop_t")
    assert lake.lab.log(1) == lake.log("shop_t_changes")


def test_tables_that_swap_names_keep_their_places(lake: HeldLake) -> None:
    lab = lake.lab
    lab.create("shop.u", {"id": INT, "z": INT})
    lab.insert("shop.u", {"id": 1, "z": 1})
    lab.rename(("shop.t", "shop.tmp"), ("shop.u", "shop.t"), ("shop.tmp", "shop.u"))
    lab.insert("shop.t", {"id": 2, "z": 2})
    lab.insert("shop.u", {"id": 9, "a": "i", "b": 9})
    lake.cut()

    assert {"shop.u": "shop_t", "shop.t": "shop_u"} == {
        s.table: s.target for s in lake.sink.status() if s.kind == "mirror"
    }
    assert [{"id": 1, "z": 1}, {"id": 2, "z": 2}] == sorted(lake.mirror("shop_u"), key=lambda row: row["id"])
    assert lab.log(1) == lake.log("shop_t_changes")
    assert lab.log(2) == lake.log("shop_u_changes")


def test_a_new_table_does_not_move_into_a_renamed_ones_place(lake: HeldLake) -> None:
    lab = lake.lab
    lab.rename(("shop.t", "shop.old"))
    lab.create("shop.t", {"id": INT})
    lab.insert("shop.t", {"id": 1})
    lab.insert("shop.old", {"id": 3, "a": "c", "b": 1})
    lake.cut()

    assert [{"id": 1}] == lake.mirror("shop_t__t2")
    assert lab.log(2) == lake.log("shop_t_changes__t2")
    assert lab.log(1) == lake.log("shop_t_changes")


@pytest.mark.parametrize("what", ["lossy", "not widening", "no key", "unknown default", "system name"])
def test_an_edit_that_is_not_followed_stops_its_table_only(
    lake: HeldLake, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    lab = lake.lab
    lab.create("shop.other", {"id": INT})
    lab.insert("shop.t", {"id": 3, "a": "before", "b": 1})
    if what == "lossy":
        lab.retype("shop.t", "b", ColumnType(name="smallint"), cut=True)
    elif what == "not widening":
        lab.retype("shop.t", "b", ColumnType(name="decimal", precision=12, scale=4), cut=True)
    elif what == "no key":
        lab.set_key("shop.t")
    elif what == "unknown default":
        lab.add("shop.t", "serial", INT, known=False, cut=True)
    else:
        lab.rename_column("shop.t", "b", "OP")
    lab.insert("shop.other", {"id": 1})
    with caplog.at_level(logging.CRITICAL):
        lake.cut()
    reasons = lake.stopped()
    lab.insert("shop.other", {"id": 2})
    lake.cut()
    lake.reopen()

    assert ["shop.t"] == list(reasons)
    assert "ALTER TABLE shop.t" in reasons["shop.t"] or "column" in reasons["shop.t"]
    assert reasons == lake.stopped()
    assert [{"id": 1}, {"id": 2}] == sorted(lake.mirror("shop_other"), key=lambda row: row["id"])
    assert 3 == lake.held
    before = 2 if what == "system name" else 3
    assert before == len(lake.mirror("shop_t"))


def test_truncate_takes_back_rows_that_were_written_under_another_key(spark: SparkSession, tmp_path: Path) -> None:
    """A table that had no key, or another one, when its rows were written; without a mirror."""
    lake = HeldLake(spark, tmp_path / "other", Lab(), mirror=None)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", {"id": 1, "a": 1})
    lab.update("shop.t", {"id": 1, "a": 1}, a=2)
    lab.set_key("shop.t", "a")
    lake.cut()
    lab.tables[1].live = {(2,): {"id": 1, "a": 2}}
    lab.truncate("shop.t")
    lake.cut()

    assert lab.log(1) == lake.log("shop_t_changes")
    assert {} == lake.stopped()


def test_a_default_without_a_time_zone_is_the_same_in_any_session(spark: SparkSession) -> None:
    kind = ColumnType(name="datetime", fraction=6)
    column = Column(id=1, name="at", type=kind, initial="2024-07-01 12:34:56.789012")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        text = spark.range(1).select(initial_literal(column).cast("string")).collect()[0][0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)

    assert text == "2024-07-01 12:34:56.789012"


@pytest.mark.parametrize("inserted", [False, True], ids=["old rows", "rows of the plan"])
def test_a_default_that_no_value_can_show_stops_its_table_only(
    lake: HeldLake, inserted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """ALLOW_INVALID_DATES lets a default be a date that does not exist."""
    lab = lake.lab
    lab.create("shop.other", {"id": INT})
    lab.insert("shop.other", {"id": 1})
    if inserted:
        lab.insert("shop.t", {"id": 3, "a": "z", "b": 1})
    lab.tables[1].live.clear()
    lab.add("shop.t", "d", ColumnType(name="date"), initial="2024-02-30")
    with caplog.at_level(logging.CRITICAL):
        lake.cut()

    assert ["shop.t"] == list(lake.stopped())
    assert "2024-02-30" in lake.stopped()["shop.t"]
    assert [{"id": 1}] == lake.mirror("shop_other")
    assert 2 == len(lake.mirror("shop_t"))
