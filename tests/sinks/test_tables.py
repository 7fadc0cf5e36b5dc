"""Directories follow table ids."""

from __future__ import annotations

from dataclasses import replace

from historian.interruptions import ResumeTable
from sink_lab import INT, Lab
from sinks.delta import DeltaSettings
from sinks.tables import Homes, assign

SETTINGS = DeltaSettings(path="lake", history="{database}_{table}_history")


def _assigned(lab: Lab, homes: Homes | None = None) -> Homes:
    return assign(homes or {}, lab.cut(), SETTINGS)


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

    assert ["a_b_c", "a_b_c__t2"] == [home.mirror for home in _assigned(lab).values()]


def test_a_table_without_a_key_has_no_mirror_and_gets_one_when_created_with_a_key() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT}, key=())
    homes = _assigned(lab)
    lab.drop("shop.a")
    lab.create("shop.a", {"id": INT})
    homes = _assigned(lab, homes)

    assert [("shop_a_changes", ""), ("shop_a_changes", "shop_a")] == [(h.changelog, h.mirror) for h in homes.values()]


def test_a_table_that_has_no_target_says_so() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT}, key=())

    (home,) = assign({}, lab.cut(), replace(SETTINGS, changelog=None)).values()

    assert "without a key has neither mirror nor history" in home.stopped


def test_a_mirror_and_a_history_that_lack_rows_are_left_and_their_places_are_nobody_elses() -> None:
    lab = Lab()
    lab.create("shop.a", {"id": INT})
    homes = _assigned(lab)
    (table,) = lab.plans[-1].tables
    (version,) = table.versions
    assert version.snapshot is not None
    since = lab.plans[-1].start
    resume = ResumeTable(table=version.snapshot.name, snapshot=version.snapshot, unknown_since=since, reason="lost")
    resumed = replace(table, versions=(replace(version, edits=(resume,)),))
    after = assign(homes, replace(lab.plans[-1], number=2, tables=(resumed,)), SETTINGS)
    explained = replace(table, versions=(replace(version, edits=(replace(resume, loses_rows=False),)),))

    assert assign(homes, replace(lab.plans[-1], number=2, tables=(explained,)), SETTINGS) == homes
    late = replace(resume, unknown_since=lab.plans[-1].end)
    inside = replace(table, versions=(replace(version, edits=(late,)),))
    (home,) = assign(homes, replace(lab.plans[-1], number=2, tables=(inside,)), SETTINGS).values()
    assert f"behind {lab.plans[-1].start} and up to" in home.former_why, "what the plan has from before the gap too"
    (home,) = after.values()
    assert ("shop_a_changes", "", "shop_a") == (home.changelog, home.mirror, home.former_mirror)
    assert ("", "shop_a_history") == (home.history, home.former_history)
    assert home.former_why.startswith("the mirror and history stand as they were; they lack what changed behind")
    assert f"behind {since} and up to" in home.former_why
    lab.drop("shop.a")
    lab.create("shop.a", {"id": INT})
    again = assign(after, lab.cut(), SETTINGS)
    assert [home.mirror for home in again.values()] == ["", "shop_a__t2"]
    assert [home.history for home in again.values()] == ["", "shop_a_history__t2"]
