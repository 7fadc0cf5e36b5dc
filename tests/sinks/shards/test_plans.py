"""Shards that do not fit together, and how one's statements become those of the one table; without a lake."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from historian.errors import ConfigError, EditRefused
from historian.plans.plans import Quarantine
from historian.positions.places import Place
from lakes.sink_lab import INT, Lab, decimal, text
from sinks.delta import DeltaDryRun, DeltaSettings
from sinks.delta.schema.decisions import evolved_locations
from sinks.shards.plans import grouped_plan

INTO = ("shop.orders", (("shard", "{database}"),))
A, B, C = (f"shop_{name}.orders" for name in "abc")
COLUMNS = {"id": INT, "total": INT, "note": text()}


def _rename_apart(lab: Lab) -> None:
    lab.rename_column(A, "note", "remark")
    lab.rename_column(B, "note", "comment")


def _collide(lab: Lab) -> None:
    lab.add(B, "extra", INT)
    lab.rename_column(A, "note", "extra")


def _readd(lab: Lab) -> None:
    lab.drop_column(A, "note")
    lab.add(A, "note", text())


def _defaults(lab: Lab) -> None:
    lab.add(A, "state", INT, initial="1")
    lab.add(B, "state", INT, initial="2")


def _key(lab: Lab) -> None:
    lab.set_key(B, "id", "total")


def _types(lab: Lab) -> None:
    lab.add(A, "price", decimal(6, 2))
    lab.add(B, "price", text())


def _rewritten(lab: Lab) -> None:
    lab.retype(B, "note", text(2), cut=True)


def _unknown(lab: Lab) -> None:
    lab.add(B, "made", INT, known=False, cut=True)


def _shard_name(lab: Lab) -> None:
    lab.add(B, "Shard", INT)


def _other_key(lab: Lab) -> None:
    lab.create(C, COLUMNS, key=("total",))


def _renamed(lab: Lab) -> None:
    lab.rename((B, "shop_x.orders"))


def _twice(lab: Lab) -> None:
    lab.rename((B, "shop_b.old"))
    lab.create(B, COLUMNS)


@pytest.mark.parametrize(
    "change, told",
    [
        (_rename_apart, "another name than on the other shards"),
        (_collide, "another column of the other shards has"),
        (_readd, "added again that other shards still have"),
        (_defaults, "read something else in an added column"),
        (_key, "another primary key"),
        (_types, "neither holds every value"),
        (_rewritten, "rewritten by the server"),
        (_unknown, "the server computes"),
        (_shard_name, "called like a shard column"),
        (_other_key, "another primary key"),
        (_renamed, "name that shard columns have otherwise"),
        (_twice, "not told apart"),
    ],
)
def test_conflicts_stop_the_one_table_and_name_shard_and_statement(change: Any, told: str) -> None:
    lab = Lab()
    dry = DeltaDryRun(DeltaSettings(path="lake", tables=(("shop_*.orders", (("into", INTO),)),)))
    for name in (A, B):
        lab.create(name, COLUMNS)
    assert [found.stopped for found in dry.take(lab.cut())] == [None, None]
    change(lab)
    (found,) = dry.take(lab.cut())
    assert found.table == "shop.orders"
    assert found.stopped is not None
    assert told in found.stopped
    assert "shard shop_" in found.stopped
    lab.add(A, "later", INT)
    assert dry.take(lab.cut()) == []


def started() -> tuple[Lab, DeltaDryRun]:
    """Two shards that a dry run has taken."""
    lab = Lab()
    dry = DeltaDryRun(DeltaSettings(path="lake", tables=(("shop_*.orders", (("into", INTO),)),)))
    for name in (A, B):
        lab.create(name, COLUMNS)
    dry.take(lab.cut())
    return lab, dry


def effects(dry: DeltaDryRun, lab: Lab) -> list[tuple[str, ...]]:
    """What happens to changelog and mirror."""
    found = dry.take(lab.cut())
    assert {one.stopped for one in found} <= {None}
    return [one.effects for one in found]


def test_a_statement_is_followed_with_the_first_shard_that_has_it() -> None:
    lab, dry = started()
    lab.rename_column(A, "note", "remark")
    assert effects(dry, lab) == [("note is renamed to remark",)] * 2
    lab.rename_column(A, "remark", "comment")
    assert effects(dry, lab) == [("remark is renamed to comment",)] * 2
    for old, new in (("note", "remark"), ("remark", "comment")):
        lab.rename_column(B, old, new)
        assert effects(dry, lab) == []
    lab.move(B, "comment")
    assert effects(dry, lab) == []
    lab.drop_column(B, "comment")
    assert effects(dry, lab) == []
    lab.drop_column(A, "comment")
    assert effects(dry, lab) == [("comment stays for the rows that have it",), ("comment goes",)]
    lab.truncate(B)
    taken_back = (
        "a -R for each row that the table held, of shard shop_b.orders alone",
        "all rows go, of shard shop_b.orders alone",
    )
    assert [found[0] for found in effects(dry, lab)[:2]] == list(taken_back)


def test_a_name_that_columns_have_and_had_is_not_guessed() -> None:
    lab, dry = started()
    lab.rename_column(A, "note", "remark")
    lab.add(A, "note", text())
    lab.create(C, COLUMNS)
    (found,) = dry.take(lab.cut())
    assert found.stopped is not None
    assert "that of several columns of the other shards (shard shop_c.orders.note" in found.stopped
    assert found.stopped.count("note, remark") == 1


def test_shards_that_do_not_fit_at_the_start_are_a_problem_of_the_configuration() -> None:
    lab = Lab()
    lab.create(A, COLUMNS)
    lab.create(B, COLUMNS, key=())
    settings = DeltaSettings(path="lake", tables=(("shop_*.orders", (("into", INTO),)),))
    grouped = grouped_plan({}, lab.cut(), settings.for_table)
    with pytest.raises(ConfigError, match=r"no primary key \(shard shop_b.orders.* @ \$.tables of shop.orders: into"):
        grouped.check(first=True)
    grouped.check(first=False)


def test_a_shard_that_the_connector_stopped_stops_the_one_table() -> None:
    lab, dry = started()
    lab.insert(A, {"id": 1})
    plan = lab.cut()
    place = Place(gtid="", file="b.000001", offset=4, ordinal=0)
    first, second = plan.tables
    stopped = replace(second, quarantine=Quarantine(place=place, reason="not understood"))
    (found,) = dry.take(replace(plan, tables=(first, stopped)))
    assert found.stopped is not None
    assert "the connector has stopped a shard (shard shop_b.orders); found not understood" in found.stopped


def test_strict_ends_the_run_where_a_shard_is_dropped() -> None:
    settings = DeltaSettings(
        path="lake", tables=(("shop_*.orders", (("into", INTO), ("evolution", (("preset", "strict"),)))),)
    )
    lab = Lab()
    for name in (A, B):
        lab.create(name, COLUMNS)
    locations = evolved_locations({}, lab.cut(), settings)
    lab.drop(A)
    with pytest.raises(EditRefused, match=r"DROP TABLE shop_a.orders.*drop_table"):
        evolved_locations(locations, lab.cut(), settings)
