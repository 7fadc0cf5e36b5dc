"""Directories follow table ids."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from historian.schema.gaps import ResumeTable
from lakes.sink_lab import INT, Lab
from sinks.contract.locations import TableLocation, TableLocations, location_holding
from sinks.contract.tables import assign, stopped_locations
from sinks.delta import DeltaSettings
from sinks.delta.lake.catalog import catalog_names

if TYPE_CHECKING:
    import pytest

SETTINGS = DeltaSettings(path="lake", history="{database}_{table}_history")


def _assigned(lab: Lab, locations: TableLocations | None = None) -> TableLocations:
    return assign(locations or {}, lab.cut(), SETTINGS)


def test_assigning_again_changes_nothing() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT})
    lab.rename(("shop.a", "shop.b"))
    lab.create("shop.a", {"id": INT})
    lab.drop("shop.b")
    lab.create("shop.b", {"id": INT})
    once = _assigned(lab)

    assert once == assign(once, lab.plans[-1], SETTINGS)
    assert ["shop_a", "shop_a__t2", "shop_a"] == [once[i].mirror for i in (1, 2, 3)]
    assert ["shop.b", "shop.a", "shop.b"] == [once[i].name for i in (1, 2, 3)]
    assert [1, 0, 0] == [once[i].dropped for i in (1, 2, 3)]


def test_names_that_give_one_directory_are_kept_apart() -> None:
    lab = Lab()
    lab.create("a_b.c", {"id": INT})
    lab.create("a.b_c", {"id": INT})

    assert ["a_b_c", "a_b_c__t2"] == [location.mirror for location in _assigned(lab).values()]


def test_known_tables_are_looked_at_once_for_all_that_come_with_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        n: TableLocation(table_id=n, name=f"idle.t{n}", changelog=f"idle_t{n}", mirror="", since=1)
        for n in range(1000, 1300)
    }
    lab = Lab()
    for number in range(40):
        lab.create(f"shop.t{number}", {"id": INT})
    plan, looks = lab.cut(), count()
    directories = TableLocation.directories.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(TableLocation, "directories", property(lambda one: (next(looks), directories(one))[1]))

    after = assign(known, plan, SETTINGS)

    assert 340 == len(after)
    assert next(looks) < 10 * 340


def test_a_plan_without_new_tables_looks_at_no_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT})
    known = _assigned(lab)
    lab.insert("shop.t", {"id": 1})
    plan, looks = lab.cut(), count()
    directories = TableLocation.directories.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(TableLocation, "directories", property(lambda one: (next(looks), directories(one))[1]))

    assert known == assign(known, plan, SETTINGS)
    assert 0 == next(looks)


def test_a_table_that_comes_again_within_a_plan_has_the_places_of_the_one_before() -> None:
    lab = Lab()
    lab.create("shop.other", {"id": INT})
    lab.create("shop.a", {"id": INT})
    lab.drop("shop.a")
    lab.create("shop.a", {"id": INT})
    lab.rename(("shop.a", "shop.b"))
    lab.create("shop.a", {"id": INT})

    after = _assigned(lab)

    assert ["shop_other", "shop_a", "shop_a", "shop_a__t4"] == [one.mirror for one in after.values()]


def test_a_table_without_a_key_has_no_mirror_and_gets_one_when_created_with_a_key() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT}, key=())
    locations = _assigned(lab)
    lab.drop("shop.a")
    lab.create("shop.a", {"id": INT})
    locations = _assigned(lab, locations)

    assert [("shop_a_changes", ""), ("shop_a_changes", "shop_a")] == [
        (h.changelog, h.mirror) for h in locations.values()
    ]


def test_a_table_that_has_no_target_says_so() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT}, key=())

    (location,) = assign({}, lab.cut(), replace(SETTINGS, changelog=None)).values()

    assert "without a key has neither mirror nor history" in location.stopped


def test_a_mirror_and_a_history_that_lack_rows_are_left_and_their_places_are_nobody_elses() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT})
    locations = _assigned(lab)
    (table,) = lab.plans[-1].tables
    (version,) = table.versions
    assert version.snapshot is not None
    since = lab.plans[-1].start
    resume = ResumeTable(table=version.snapshot.name, snapshot=version.snapshot, unknown_since=since, reason="lost")
    resumed = replace(table, versions=(replace(version, edits=(resume,)),))
    after = assign(locations, replace(lab.plans[-1], number=2, tables=(resumed,)), SETTINGS)
    explained = replace(table, versions=(replace(version, edits=(replace(resume, loses_rows=False),)),))

    assert assign(locations, replace(lab.plans[-1], number=2, tables=(explained,)), SETTINGS) == locations
    late = replace(resume, unknown_since=lab.plans[-1].end)
    inside = replace(table, versions=(replace(version, edits=(late,)),))
    (location,) = assign(locations, replace(lab.plans[-1], number=2, tables=(inside,)), SETTINGS).values()
    assert f"behind {lab.plans[-1].start} and up to" in location.former_why, "what the plan has from before the gap too"
    (location,) = after.values()
    assert ("shop_a_changes", "", "shop_a") == (location.changelog, location.mirror, location.former_mirror)
    assert ("", "shop_a_history") == (location.history, location.former_history)
    assert location.former_why.startswith("the mirror and history stand as they were; they lack what changed behind")
    assert f"behind {since} and up to" in location.former_why
    lab.drop("shop.a")
    lab.create("shop.a", {"id": INT})
    again = assign(after, lab.cut(), SETTINGS)
    assert [location.mirror for location in again.values()] == ["", "shop_a__t2"]
    assert [location.history for location in again.values()] == ["", "shop_a_history__t2"]


def test_a_table_that_is_read_again_has_fresh_directories_and_keeps_them() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT})
    locations = stopped_locations(_assigned(lab), {1: "someone wrote to it"}, 1)
    lab.rename(("shop.a", "shop.b"))
    lab.create("shop.a", {"id": INT})
    locations = _assigned(lab, locations)
    plan = replace(lab.plans[-1], number=7)
    (table,) = (table for table in plan.tables if table.table_id == 1)
    again = replace(plan, tables=(replace(table, behind=0),))

    after = assign(locations, again, SETTINGS)

    assert after == assign(after, again, SETTINGS), "asked again it is the same"
    assert ("shop_b__r7", "shop_b_changes__r7", "shop_b_history__r7") == (
        after[1].mirror,
        after[1].changelog,
        after[1].history,
    )
    assert ("shop.b", 7, "", 0) == (after[1].name, after[1].since, after[1].stopped, after[1].dropped)
    assert after[-1].is_replaced
    assert ("shop_a", "replaced in plan 7: someone wrote to it") == (after[-1].mirror, after[-1].stopped)
    assert "shop_a__t2" == after[2].mirror, "what was there stays, and is nobody else's"
    names = catalog_names(after, SETTINGS)
    assert ("shop_b", "shop_a", "shop_a__replaced1") == tuple(
        names[directory] for directory in ("shop_b__r7", "shop_a__t2", "shop_a")
    )
    stopped = stopped_locations(after, {1: "again"}, 7)
    assert stopped == assign(stopped, again, SETTINGS), "and stays stopped where it stops again"


def test_a_plan_is_held_where_its_table_was_written_then() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT})
    locations = _assigned(lab)
    (table,) = lab.plans[-1].tables
    again = [replace(lab.plans[-1], number=n, tables=(replace(table, behind=0),)) for n in (5, 9)]
    locations = stopped_locations(assign(locations, again[0], SETTINGS), {1: "a value"}, 8)
    locations = assign(locations, again[1], SETTINGS)
    held = {number: location_holding(locations, 1, number) for number in (0, 1, 4, 5, 7, 8, 9)}
    first, second, third = locations[-1], locations[-2], locations[1]
    assert held == {0: None, 1: first, 4: first, 5: second, 7: second, 8: None, 9: third}
    assert location_holding(locations, 2, 9) is None


def test_a_table_that_goes_on_is_written_again_where_it_was() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT})
    first = _assigned(lab)
    locations = stopped_locations(first, {1: "a value"}, 3)
    onward = replace(lab.plans[-1], number=5, tables=(replace(lab.plans[-1].tables[0], behind=2),))

    assert first == assign(locations, onward, SETTINGS)
    stopped = stopped_locations(assign(locations, onward, SETTINGS), {1: "a value"}, 5)
    assert stopped == assign(stopped, onward, SETTINGS)


def test_names_of_the_sinks_own_are_out_of_reach_of_every_pattern() -> None:
    lab = Lab()
    tables = ("plans", "tables", "Schema_Changes", "dead_letters", "Repairs", "other")
    for table in tables:
        lab.create(f"historian.{table}", {"id": INT})
    locations = _assigned(lab)

    assert [location.mirror for location in locations.values()] == [
        "historian_plans__t1",
        "historian_tables__t2",
        "historian_Schema_Changes__t3",
        "historian_dead_letters__t4",
        "historian_Repairs__t5",
        "historian_other",
    ]
    assert [location.changelog for location in locations.values()] == [
        *(f"historian_{table}_changes__t{at}" for at, table in enumerate(tables[:-1], 1)),
        "historian_other_changes",
    ]
    assert {name.lower() for name in catalog_names(locations, SETTINGS).values()}.isdisjoint({"historian_dead_letters"})
    plain = DeltaSettings(path="lake", changelog="{table}", mirror=None)
    lab = Lab()
    lab.create("shop._historian", {"id": INT})
    (location,) = assign({}, lab.cut(), plain).values()
    assert location.changelog == "_historian__t1", "where changelogs in files keep their plans"


def test_a_repair_gives_a_table_the_targets_back_that_it_had_before_a_gap() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT})
    locations = _assigned(lab)
    lab.resume("shop.a")
    ended = _assigned(lab, locations)
    plan = lab.cut({"shop.a": "a gap"})
    after = assign(ended, plan, SETTINGS)

    assert ("", "", "shop_a") == (ended[1].mirror, ended[1].history, ended[1].former_mirror)
    assert locations == after == assign(after, plan, SETTINGS)


def test_a_gap_in_a_plan_that_repairs_is_none() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT})
    locations = _assigned(lab)
    lab.resume("shop.a")

    assert locations == assign(locations, lab.cut({"shop.a": "a gap"}), SETTINGS)


def test_a_stopped_table_is_not_repaired_where_the_plan_does_not_say_what_its_targets_hold() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT})
    stopped = stopped_locations(_assigned(lab), {1: "an edit"}, 1)
    plan = lab.cut({"shop.a": "a stop"})

    assert stopped == assign(stopped, plan, SETTINGS)
    (table,) = plan.tables
    assert not assign(stopped, replace(plan, tables=(replace(table, behind=1),)), SETTINGS)[1].stopped
