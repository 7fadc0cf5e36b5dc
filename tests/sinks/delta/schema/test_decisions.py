"""What is decided about edits where rules shape a table's rows, keys are configured, and tables are read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from historian.errors import TableStopped
from historian.schema.gaps import ResumeTable
from historian.secret import Secret
from lakes.sink_lab import INT, Lab, text
from sinks.contract.decisions import Decisions
from sinks.contract.locations import TableLocations
from sinks.contract.parts import Part, parts_of
from sinks.contract.tables import stopped_locations
from sinks.delta import DeltaSettings
from sinks.delta.schema.decisions import evolved, evolved_locations
from sinks.delta.schema.schema_evolution import mirror_schema
from sinks.delta.schema.stops import check
from sinks.shaping.plans import Shaper

LENIENT = (("preset", "lenient"),)
COLUMNS = {"id": INT, "a": text(), "b": INT}
ADDED_ID = 4


def _settings(**said: Any) -> DeltaSettings:
    return DeltaSettings(path="lake", tables=(("shop.t", tuple(said.items())),))


def _begun(settings: DeltaSettings, key: tuple[str, ...] = ("id",)) -> tuple[Lab, TableLocations]:
    lab = Lab()
    lab.create("shop.t", COLUMNS, key)
    return lab, evolved_locations({}, lab.cut(), settings)


def _decided(locations: TableLocations) -> list[tuple[str, int, str]]:
    return [(d.edit, d.column_id, d.action) for d in Decisions.parse(locations[1].evolved).made]


def _parts(lab: Lab, locations: TableLocations, settings: DeltaSettings) -> list[Part]:
    plan = lab.plans[-1]
    counts: dict[tuple[int, int], dict[int, int]] = {}
    for chunk in lab.chunks[plan.number]:
        counts.setdefault((chunk.table_id, chunk.segment), {})[chunk.sequence] = chunk.rows.num_rows
    return parts_of(Shaper(None, settings.rules_of).seen(plan, locations).plan, locations, counts)


@pytest.mark.parametrize("evolution, word", [((), "quarantine"), (LENIENT, "new_column")])
@pytest.mark.parametrize("rule", [{"hash": (("b", Secret("salt")),)}, {"truncate": (("a", 3),)}, {}])
def test_a_retype_that_changes_values_is_one_though_the_lake_has_one_type_for_both(
    rule: dict[str, Any], evolution: tuple[tuple[str, str], ...], word: str
) -> None:
    settings = _settings(**rule, **({"evolution": evolution} if evolution else {}))
    lab, locations = _begun(settings)
    column, kind = (2, text(5)) if "truncate" in rule else (3, text(40))
    lab.retype("shop.t", "a" if column == 2 else "b", kind, cut=True)
    locations = evolved_locations(locations, lab.cut(), settings)

    assert [("change_type", column, word)] == _decided(locations)
    *_, part = _parts(lab, locations, settings)
    if word == "quarantine":
        with pytest.raises(TableStopped, match="its evolution says quarantine of change_type"):
            check(part)
    else:
        check(part)
        shown = evolved(part, soft=False)
        assert shown.labels == {part.versions[-1].version: {f"h{column}": f"h{column + 100_000_000}"}}


@pytest.mark.parametrize("rule", [{"hash": (("a", Secret("salt")),)}, {"truncate": (("a", 3),)}, {"exclude": ("a",)}])
def test_what_a_lake_does_not_see_of_an_edit_is_not_decided_about(rule: dict[str, Any]) -> None:
    settings = _settings(**rule, evolution=(("preset", "strict"),))
    lab, locations = _begun(settings)
    lab.retype("shop.t", "a", text(40))
    if "exclude" in rule:
        lab.retype("shop.t", "a", INT, cut=True)
        lab.rename_column("shop.t", "a", "c")
        lab.drop_column("shop.t", "c")
    locations = evolved_locations(locations, lab.cut(), settings)

    assert [] == _decided(locations)
    for part in _parts(lab, locations, settings):
        check(part)


def test_a_rule_that_an_edit_breaks_stops_the_table_and_nothing_is_decided() -> None:
    settings = _settings(hash=(("b", Secret("salt")),), evolution=(("preset", "strict"),))
    lab = Lab()
    lab.create("shop.t", {"id": INT, "b": replace(INT, name="decimal", precision=5, scale=1)})
    locations = evolved_locations({}, lab.cut(), settings)
    lab.retype("shop.t", "b", replace(INT, name="decimal", precision=7, scale=2))
    locations = evolved_locations(locations, lab.cut(), settings)

    assert [] == _decided(locations)
    assert {1} == set(Shaper(None, settings.rules_of).seen(lab.plans[-1], locations).stops)


def test_a_configured_key_is_the_key_that_changes_are_of() -> None:
    settings = _settings(key=("a",), evolution=LENIENT)
    lab, locations = _begun(settings)
    lab.set_key("shop.t", "b")
    locations = evolved_locations(locations, lab.cut(), settings)
    assert [] == _decided(locations), "the primary key is none of the mirror's"

    lab.retype("shop.t", "a", text(5), cut=True)
    locations = evolved_locations(locations, lab.cut(), settings)
    assert [("change_type", 2, "quarantine")] == _decided(locations)


@pytest.mark.parametrize("preset", ["evolve", "lenient"])
def test_a_column_of_a_configured_key_that_is_dropped_stops_the_table(preset: str) -> None:
    settings = _settings(key=("a",), evolution=(("preset", preset),))
    lab, locations = _begun(settings)
    lab.drop_column("shop.t", "a")
    locations = evolved_locations(locations, lab.cut(), settings)

    with pytest.raises(TableStopped, match="a column of the configured key is dropped"):
        check(_parts(lab, locations, settings)[-1])


def test_a_mirror_by_whole_rows_has_no_column_that_its_table_lacks() -> None:
    settings = _settings(keyless="rows", evolution=(*LENIENT, ("add_column", "ignore")))
    lab, locations = _begun(settings, key=())
    lab.add("shop.t", "c", INT)
    lab.truncate("shop.t")
    after = evolved_locations(locations, lab.cut(), settings)
    assert [("add_column", ADDED_ID, "ignore"), ("truncate", 0, "keep")] == _decided(after)

    lab.drop_column("shop.t", "b")
    after = evolved_locations(after, lab.cut(), settings)
    assert ("drop_column", 3, "quarantine") == _decided(after)[-1]


@pytest.mark.parametrize("word", ["keep", "ignore"])
def test_a_row_that_comes_may_be_in_the_mirror_once_a_truncate_left_it_there(word: str) -> None:
    settings = _settings(key=("a",), evolution=(("truncate", word),))
    lab, locations = _begun(settings)
    lab.insert("shop.t", {"id": 1, "a": "x", "b": 1})
    lab.truncate("shop.t")
    lab.insert("shop.t", {"id": 1, "a": "x", "b": 2})
    locations = evolved_locations(locations, lab.cut(), settings)
    before, after = (evolved(part, soft=False) for part in _parts(lab, locations, settings))

    assert (True, False) == (before.appends_are_new, after.appends_are_new)
    assert after.mirrored.clears is None
    assert (after.part.clears is None) == (word == "ignore")


def test_a_table_that_goes_on_where_it_stopped_is_decided_about_anew_and_once() -> None:
    quarantined = _settings(evolution=(("drop_column", "quarantine"), ("add_column", "ignore")))
    lab, locations = _begun(quarantined)
    lab.add("shop.t", "c", INT)
    locations = evolved_locations(locations, lab.cut(), quarantined)
    lab.drop_column("shop.t", "b")
    plan = lab.cut()
    locations = stopped_locations(
        evolved_locations(locations, plan, quarantined), {1: "its evolution says so"}, plan.number
    )
    assert [("add_column", ADDED_ID, "ignore"), ("drop_column", 3, "quarantine")] == _decided(locations)
    again = replace(plan, number=9, tables=(replace(plan.tables[0], behind=plan.number - 1),))
    lenient = _settings(evolution=LENIENT)

    kept = evolved_locations(locations, again, lenient)
    assert [("add_column", ADDED_ID, "ignore"), ("drop_column", 3, "keep")] == _decided(kept)
    assert kept == evolved_locations(kept, again, quarantined), (
        "a plan that a crash left half-written goes on as it began"
    )

    fresh = replace(again, tables=(replace(plan.tables[0], behind=0),))
    anew = evolved_locations(locations, fresh, lenient)
    assert [("drop_column", 3, "keep")] == _decided(anew), "the directories are new, and have the column"
    assert anew == evolved_locations(anew, fresh, quarantined)

    seeded = replace(again, tables=(replace(plan.tables[0], behind=0, seed=plan.number - 1),))
    begun = evolved_locations(locations, seeded, lenient)
    assert [("add_column", ADDED_ID, "ignore"), ("drop_column", 3, "keep")] == _decided(begun), "of a seed as it was"
    assert begun == evolved_locations(begun, seeded, quarantined)


@pytest.mark.parametrize("apart", [True, False], ids=["in two plans", "in one"])
def test_a_table_takes_no_place_of_one_that_stops_when_it_is_dropped(apart: bool) -> None:
    settings = _settings(evolution=(("drop_table", "quarantine"),))
    lab, locations = _begun(settings)
    lab.drop("shop.t")
    if apart:
        plan = lab.cut()
        locations = stopped_locations(
            evolved_locations(locations, plan, settings), {1: "its evolution says so"}, plan.number
        )
    lab.create("shop.t", COLUMNS)
    locations = evolved_locations(locations, lab.cut(), settings)

    assert ["shop_t", "shop_t__t2"] == [location.mirror for location in locations.values()]


def test_behind_a_gap_the_changelog_goes_on_under_another_key() -> None:
    settings = _settings()
    lab, locations = _begun(settings)
    lab.set_key("shop.t", "b")
    plan = lab.cut()
    (table,) = plan.tables
    *_, last = table.versions
    assert last.snapshot is not None
    resume = ResumeTable(table=last.snapshot.name, snapshot=last.snapshot, unknown_since=plan.start, reason="lost")
    resumed = replace(table, versions=(*table.versions[:-1], replace(last, edits=(resume,))))
    lab.plans[-1] = replace(plan, tables=(resumed,))
    locations = evolved_locations(locations, lab.plans[-1], settings)

    assert [] == _decided(locations)
    assert ("", "shop_t") == (locations[1].mirror, locations[1].former_mirror)
    for part in _parts(lab, locations, settings):
        check(part)


def test_a_column_in_the_place_of_another_has_a_higher_id_in_delta_than_any_before() -> None:
    settings = _settings(evolution=(("change_type", "new_column"),))
    lab, locations = _begun(settings)
    (part,) = _parts(lab, locations, settings)
    assert part.last is not None
    schema = mirror_schema(None, part.last)
    lab.drop_column("shop.t", "b")
    lab.retype("shop.t", "a", text(5), cut=True)
    locations = evolved_locations(locations, lab.cut(), settings)
    *_, part = _parts(lab, locations, settings)
    highest = max(int(f.metadata["delta.columnMapping.id"]) for f in schema.fields)
    last = evolved(part, soft=False).mirrored.last
    assert last is not None
    after = mirror_schema(replace(schema, fields=schema.fields[:-1], last_id=highest), last)

    assert highest + 1 == max(int(f.metadata["delta.columnMapping.id"]) for f in after.fields)
