"""Fresh targets that begin with what former ones held up to a plan: equal to them by value, whatever became of those since."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.errors import PositionExpired
from historian.schema.snapshots import ColumnType
from lakes.crashes import Crashes
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, decimal, text
from sinks.delta.reading.target_status import table_status
from sinks.delta.reseeding.previous_targets import Boundary, boundaries, boundary_at, find_previous_targets
from sinks.delta.rewrite import held_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.plans.plans import Plan
    from sinks.delta.lake.state import LakeState

KINDS = {"shop_t": "mirror", "shop_t_changes": "changelog", "shop_t_history": "history"}
SEED = 2


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> HeldLake:
    return _lake(spark, tmp_path)


def _lake(spark: SparkSession, path: Path, **settings: Any) -> HeldLake:
    """Four plans: rows; a column, TRUNCATE and rows; then what is to be read again, with all that changes a schema."""
    lab = Lab()
    lake = HeldLake(spark, path / "lake", lab, **{"history": "{database}_{table}_history", **settings})
    lab.create("shop.t", {"id": INT, "a": INT, "b": text()})
    lab.create("shop.u", {"id": INT})
    lab.insert("shop.t", *({"id": n, "a": n, "b": f"{n}"} for n in range(1, 6)))
    lab.insert("shop.u", {"id": 1})
    lake.cut()
    lab.add("shop.t", "c", INT, initial="7", after="id")
    lab.truncate("shop.t")
    lab.insert("shop.t", *({"id": n, "c": None, "a": n, "b": "x"} for n in range(1, 6)))
    lab.delete("shop.t", {"id": 5, "c": None, "a": 5, "b": "x"})
    lake.cut()
    lab.insert("shop.u", {"id": 2})
    lab.update("shop.t", {"id": 1, "c": None, "a": 1, "b": "x"}, a=10)
    lab.retype("shop.t", "a", ColumnType(name="bigint"))
    lab.update("shop.t", {"id": 2, "c": None, "a": 2, "b": "x"}, a=1 << 40)
    lake.cut()
    lab.add("shop.t", "d", INT, initial="3")
    lab.rename_column("shop.t", "b", "e")
    lab.drop_column("shop.t", "c")
    lab.delete("shop.t", {"id": 3, "a": 3, "e": "x", "d": 3})
    lab.insert("shop.t", {"id": 9, "a": 9, "e": "y", "d": None})
    lake.cut()
    return lake


def _again(lab: Lab, seed: int = SEED) -> Plan:
    """The plan that reads shop.t again from behind plan *seed*, as ``historian replay`` makes it."""
    table_id, last = lab.table_id("shop.t"), lab.plans[-1]
    mine = [(p, t) for p in lab.plans for t in p.tables if (t.table_id, t.behind) == (table_id, None)]
    held = next(table for plan, table in reversed(mine) if plan.number <= seed)
    versions = [replace(held.versions[-1], place=None, edits=(), segment=0)]
    chunks: list[Any] = []
    for plan, table in mine:
        if plan.number > seed:
            segment = versions[-1].segment
            versions += [replace(v, segment=v.segment + segment) for v in table.versions if v.place is not None]
            of_table = (chunk for chunk in lab.chunks[plan.number] if chunk.table_id == table_id)
            chunks += [replace(chunk, segment=chunk.segment + segment) for chunk in of_table]
    table = replace(held, versions=tuple(versions), behind=0, seed=seed)
    number = len(lab.plans) + 1
    lab.chunks[number] = chunks
    start = lab.plans[seed - 1].end
    made_us = last.system_time_us + 100
    again = replace(last, number=number, previous=last.number, start=start, tables=(table,), system_time_us=made_us)
    lab.plans.append(again)
    return lab.plans[-1]


def _log(lake: HeldLake, directory: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "system_time"} for row in lake.raw_log(directory)]


def _held(lake: HeldLake, suffix: str = "") -> dict[str, Any]:
    return {
        "columns": [lake.columns(f"{name}{suffix}") for name in KINDS],
        "mirror": sorted(lake.mirror(f"shop_t{suffix}"), key=lambda row: row["id"]),
        "changelog": _log(lake, f"shop_t_changes{suffix}"),
        "history": lake.history(f"shop_t_history{suffix}"),
    }


def _goes_on(lake: HeldLake, suffix: str) -> None:
    lab = lake.lab
    lab.update("shop.t", {"id": 4, "a": 4, "e": "x", "d": 3}, d=44)
    lab.insert("shop.u", {"id": 3})
    lake.cut()
    assert lake.stopped() == {}
    assert lake.log(f"shop_t_changes{suffix}") == lab.log(lab.table_id("shop.t"))
    assert sorted(lake.mirror(f"shop_t{suffix}"), key=lambda row: row["id"]) == sorted(
        lab.rows("shop.t"), key=lambda row: row["id"]
    )
    assert sorted(row["id"] for row in lake.mirror("shop_u")) == sorted(row["id"] for row in lab.rows("shop.u"))


def test_fresh_targets_equal_the_former_ones_and_go_on(lake: HeldLake, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _held(lake)
    times = [row["system_time"] for row in lake.raw_log("shop_t_changes")]
    plan = _again(lake.lab)
    lake.write(plan)
    suffix = f"__r{plan.number}"
    assert _held(lake, suffix) == before
    assert _held(lake) == before, "what was there stays"
    lake.read_by_spark(*(f"{name}{suffix}" for name in KINDS))
    now = [row["system_time"] for row in lake.raw_log(f"shop_t_changes{suffix}")]
    assert [new == old for new, old in zip(now, times, strict=True)] == [True] * 16 + [False] * 6, "16 were copied"
    _goes_on(lake, suffix)
    last = lake.lab.plans[-1].number
    for number, small_bytes in ((last, held_rows.SMALL_BYTES), (SEED, 0)):
        monkeypatch.setattr(held_rows, "SMALL_BYTES", small_bytes)
        again = _again(lake.lab, number)
        lake.write(again)
        assert _held(lake, f"__r{again.number}") == _held(lake, suffix), "one that was read again is, and by Spark"


def test_a_crash_at_any_place_changes_nothing(lake: HeldLake) -> None:
    before = _held(lake)
    seeds = ("seed_made", "seed_written", "seed_committed")
    crashes = Crashes(at=[*seeds, "changelog_committed", "history_committed", "mirror_committed"])
    plan = _again(lake.lab)
    crashes.write(lake, plan)
    assert crashes.places == {
        **dict.fromkeys(seeds, 3),
        **dict.fromkeys(("changelog_committed", "history_committed", "mirror_committed"), 1),
    }
    assert _held(lake, f"__r{plan.number}") == before
    assert _held(lake) == before, "what was there stays"
    lake.reopen()
    _goes_on(lake, f"__r{plan.number}")


def test_what_is_damaged_or_vacuumed_since_is_no_hindrance(spark: SparkSession, lake: HeldLake) -> None:
    lab, before = lake.lab, _held(lake)
    assert _boundaries(lake) == [1, 2, 3, 4]
    for name in KINDS:
        spark.sql(f"DELETE FROM delta.`{lake.path}/{name}` WHERE id = 2")
    lab.insert("shop.t", {"id": 50, "a": 1, "e": "", "d": 1})
    lab.insert("shop.u", {"id": 50})
    lake.cut()
    assert "changed by someone else" in lake.stopped()["shop.t"]
    assert _boundaries(lake) == [1, 2, 3, 4], "what a stopped table lacks is no boundary"

    kept = [previous.rows for previous in _previous(lake)]
    assert [view is not None for view in kept] == [True] * 3
    assert kept[1] is not None
    for path in set(kept[1].files()) - set(lake.view("shop_t").files()):
        Path(path).unlink()
    mirror = next(previous for previous in _previous(lake) if previous.kind == "mirror")
    assert mirror.rows is None, "its changelog tells"

    plan = _again(lab)
    lake.write(plan)
    assert lake.stopped() == {}
    suffix = f"__r{plan.number}"
    found = _held(lake, suffix)
    assert found["changelog"][: len(before["changelog"])] == before["changelog"]
    assert [row for row in found["mirror"] if row["id"] != 50] == before["mirror"]
    _goes_on(lake, suffix)
    assert _boundaries(lake) == [1, 2, 3, 4, 6, 7], "the former targets' and the fresh ones'"


@pytest.mark.parametrize(
    "settings",
    [{}, pytest.param({"writer": "spark", "cluster": True}, marks=pytest.mark.soak)],
    ids=["here", "by Spark, clustered"],
)
def test_what_is_not_kept_stops_the_table_and_says_so(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any]
) -> None:
    lake = _lake(spark, tmp_path, mirror_deletes="soft", **settings)
    lab, before = lake.lab, _held(lake)
    mirror = _previous(lake)[1].rows
    assert mirror is not None
    for path in set(mirror.files()) - set(lake.view("shop_t").files()):
        Path(path).unlink()
    with pytest.raises(PositionExpired, match="VACUUM deletes them"):
        _previous(lake)
    lost = _again(lab)
    lake.write(lost)
    assert "what a table's targets held is not kept any more" in lake.stopped()["shop.t"]
    assert "give a later POS" in lake.stopped()["shop.t"]
    assert _boundaries(lake) == [1, 2, 3, 4], "what could not be filled holds nothing"
    assert "what they were to begin with" in table_status(spark, lake.settings, "shop.t").unclear

    again = _again(lab, 4)
    lake.write(again)
    assert lake.stopped() == {}
    assert _held(lake, f"__r{again.number}") == before


def test_values_are_copied_as_they_are(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab)
    kinds = {
        "doc": ColumnType(name="json", options="variant"),
        "instant": ColumnType(name="timestamp", fraction=6),
        "local": ColumnType(name="datetime", fraction=6),
        "number": decimal(38, 10),
        "single": ColumnType(name="float"),
        "raw": ColumnType(name="varbinary", length=9),
    }
    lab.create("shop.t", {"id": INT, **kinds})
    at = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)
    values = {
        "doc": '{"n": 18446744073709551615, "a": [1.10, null]}',
        "instant": at,
        "local": at.replace(tzinfo=None),
        "number": Decimal("-1234567890123456789012345678.0123456789"),
        "single": -0.0,
        "raw": b"\0\xff",
    }
    lab.insert("shop.t", {"id": 1, **values}, {"id": 2, **dict.fromkeys(kinds)})
    lake.cut()
    lab.update_part("shop.t", {"id": 2}, raw=b"")
    lake.cut()
    lake.write(_again(lab))
    monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
    lake.write(_again(lab))
    assert lake.stopped() == {}
    for name in ("shop_t", "shop_t_changes"):
        (one, here, by_spark) = (sorted(map(repr, lake.mirror(f"{name}{end}"))) for end in ("", "__r3", "__r4"))
        assert one == here == by_spark


def test_where_rows_wait_is_no_boundary(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, mirror_every_us=1_000_000)
    lab.create("shop.t", {"id": INT})
    for number in (1, 2, 3):
        lab.insert("shop.t", {"id": number})
        lake.cut()
    lab.add("shop.t", "a", INT)
    lake.cut()
    assert _boundaries(lake) == [1, 4]


def test_a_boundary_is_before_the_position_if_the_log_is_there() -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT})
    begin = lab.cut().start
    for number in (1, 2):
        lab.insert("shop.t", {"id": number})
        lab.cut()
    found = [Boundary(plan=plan, table=plan.tables[0]) for plan in lab.plans]
    ends = [plan.end for plan in lab.plans]
    assert boundary_at(found, ends[1], begin) == found[1]
    assert boundary_at(found[::2], ends[1], begin) == found[0], "reading more is no harm"
    assert boundary_at(found, ends[0], ends[1]) == found[1], "what the log does not have is taken from the lake"
    assert boundary_at(found, begin, begin) == found[0]
    assert boundary_at(found[:2], ends[2], ends[2]) is None


def _boundaries(lake: HeldLake) -> list[int]:
    lake.reopen()
    return [each.plan.number for each in boundaries(_state(lake), lake.lab.table_id("shop.t"))]


def _previous(lake: HeldLake) -> Any:
    return find_previous_targets(_state(lake), lake.lab.table_id("shop.t"), SEED)


def _state(lake: HeldLake) -> LakeState:
    state = lake.sink.reading()
    assert state is not None
    return state


@pytest.mark.parametrize("twice", [False, True])
def test_a_mirror_of_a_table_that_got_its_key_later_is_what_the_changelog_amounts_to(
    spark: SparkSession, tmp_path: Path, *, twice: bool
) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab)
    lab.create("shop.t", {"id": INT, "v": text()}, key=())
    lab.insert("shop.t", {"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "c"})
    if twice:
        lab.insert("shop.t", {"id": 3, "v": "unseen"})
    lab.delete("shop.t", {"id": 2, "v": "b"})
    lab.set_key("shop.t", "id")
    lake.cut()
    lacks = {status.kind: status.stopped or "" for status in lake.sink.status()}["mirror"]
    assert lacks.startswith("there is no mirror: the table had no primary key until plan 1. Next: `historian replay")
    assert dict(lake.sink.stopped()) == {"shop.t": lacks}
    lab.update("shop.t", {"id": 1, "v": "a"}, v="new")
    lake.cut()

    lake.write(_again(lab, 1))

    if twice:
        assert "a key came over rows that it does not tell apart" in lake.stopped()["shop.t"]
        return
    lab.insert("shop.t", {"id": 9, "v": "on"})
    lake.cut()
    assert lake.stopped() == dict(lake.sink.stopped()) == {}
    assert sorted(lake.mirror("shop_t__r3"), key=lambda row: row["id"]) == [
        {"id": 1, "v": "new"},
        {"id": 3, "v": "c"},
        {"id": 9, "v": "on"},
    ]
    assert lake.log("shop_t_changes__r3") == lab.log(lab.table_id("shop.t"))
