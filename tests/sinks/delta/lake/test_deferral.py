"""Which plan applies rows that wait, decided from what is recorded of plans alone, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from historian.plans.plans import Plan, PlannedVersion, Quarantine
from historian.schema.snapshots import ColumnType
from lakes.sink_lab import INT, START_US, Lab, text
from sinks.contract.locations import TableLocations
from sinks.contract.parts import STEPS, count_rows, parts_of
from sinks.delta import DeltaSettings
from sinks.delta.lake.deferral import Deferral, PlanDeferral, noted, turn_of, waiting
from sinks.delta.lake.state_rows import RecordedPlan
from sinks.delta.schema.decisions import evolved_locations


class Pace:
    """Follows a lab's plans as a lake does, and keeps what it recorded of each."""

    def __init__(self, path: Path, **every: int) -> None:
        self.lab = Lab()
        self.every = every
        self.settings = DeltaSettings(path=str(path))
        self.locations: TableLocations = {}
        self.recorded: list[RecordedPlan] = []
        self._versions: dict[int, PlannedVersion] = {}

    def cut(self, change: Callable[[Plan], Plan] = lambda plan: plan) -> PlanDeferral:
        plan = change(self.lab.cut())
        with self.lab.delivered(plan) as chunks:
            rows, stops, partial = count_rows(chunks)
        self.locations = evolved_locations(self.locations, plan, self.settings)
        deferrals = noted({}, self.locations, self.recorded)
        self._versions |= {table.table_id: table.versions[0] for table in plan.tables}

        def turn(recorded: Mapping[str, int] | None, every: int | None = None) -> PlanDeferral:
            return turn_of(
                plan,
                parts_of(plan, self.locations, rows, partial),
                self.locations,
                deferrals,
                stops=stops,
                every_us=lambda location: self.every.get(location.came_as.table, 0) if every is None else every,
                recorded=recorded,
                version_of=lambda deferral: self._versions[deferral.table_id],
            )

        decided = turn(None)
        # Decided once, whatever is said by then.
        assert [decided] * 2 == [turn(decided.links(), every) for every in (0, 10**9)]
        counts = {table_id: sum(chunks.values()) for (table_id, _), chunks in rows.items()}
        self.recorded.append(
            RecordedPlan(number=plan.number, made_us=plan.system_time_us, rows=counts, links=decided.links())
        )
        return decided

    def rows(self, *names: str) -> PlanDeferral:
        for name in names:
            self.lab.insert(f"shop.{name}", {"id": self.lab.clock + 100})
        return self.cut()

    def waits(self) -> dict[str, tuple[int, int, int]]:
        deferrals = waiting(noted({}, self.locations, self.recorded), self.locations)
        return {directory: (deferral.first, deferral.last, deferral.rows) for directory, deferral in deferrals.items()}


@pytest.fixture
def pace(tmp_path: Path) -> Pace:
    """Tables x, y and z, of which z does not wait, and a plan that brought them."""
    pace = Pace(tmp_path, x=3, y=6)
    for name in "xyz":
        pace.lab.create(f"shop.{name}", {"id": INT})
    pace.rows("x", "y", "z")
    return pace


def _targets(turn: PlanDeferral) -> dict[str, Any]:
    """Directory to the index of the part that it ends with."""
    return {directory: (link - 3) % STEPS // 3 for directory, link in turn.links().items()}


def test_rows_of_a_plan_go_to_the_changelog_alone_until_they_are_due(pace: Pace) -> None:
    turn = pace.rows("x", "z")
    assert {"shop_x_changes": 0, "shop_z_changes": 0, "shop_z": 0} == _targets(turn)
    pace.rows("x", "z")
    assert {"shop_x_changes": (2, 3, 2)} == pace.waits()
    turn = pace.rows("x", "z")

    assert {"shop_x_changes": 0, "shop_x": 1, "shop_z_changes": 0, "shop_z": 0} == _targets(turn)
    assert [("shop_x_changes", 2, 1)] == [(take.changelog, take.rows, take.own_rows) for take in turn.after]
    assert {} == pace.waits()


def test_the_one_that_waits_longest_takes_the_others_with_it(pace: Pace) -> None:
    taken = []
    for _ in range(9):
        turn = pace.rows("x", "y")
        taken.append([take.part.location.mirror for take in turn.after])

    both, x = ["shop_x", "shop_y"], ["shop_x"]
    assert [[], [], x, [], [], both, [], [], x] == taken


def test_a_table_takes_its_own_rows_where_none_wait_and_the_others_theirs_with_it(pace: Pace) -> None:
    for _ in range(5):
        pace.rows("z")
    pace.rows("x")
    pace.rows("x")
    turn = pace.rows("y")

    assert {"shop_x": 0, "shop_y_changes": 0, "shop_y": 0} == _targets(turn)
    assert [("shop_x_changes", 1, 0)] == [(take.changelog, take.rows, take.own_rows) for take in turn.after]


def test_what_waits_goes_before_all_that_is_more_than_rows(pace: Pace) -> None:
    pace.rows("x")
    pace.lab.insert("shop.x", {"id": 1})
    pace.lab.add("shop.x", "a", INT)
    pace.lab.truncate("shop.x")
    turn = pace.cut()

    assert {"shop_x_changes": 2, "shop_x": 2} == _targets(turn)
    assert ([0], [1, 2], 0) == ([t.part.index for t in turn.before], [p.index for p in turn.own], len(turn.after))


def test_a_clock_that_was_put_back_keeps_no_rows_waiting(pace: Pace) -> None:
    pace.rows("x")
    pace.lab.insert("shop.x", {"id": 1})
    turn = pace.cut(lambda plan: replace(plan, system_time_us=START_US - 10))

    assert ["shop_x"] == [take.part.location.mirror for take in turn.after]


def test_a_plan_without_log_and_one_that_stops_the_table_take_up_what_waits(pace: Pace) -> None:
    pace.rows("x", "y")
    turn = pace.cut()
    assert [("shop_x", 0), ("shop_y", 0)] == [(take.part.location.mirror, take.part.index) for take in turn.after]
    pace.rows("x", "y")
    pace.lab.insert("shop.z", {"id": 1})
    place = pace.lab.entries[-1].place
    assert place is not None
    stop = Quarantine(place=place, reason="strange")
    turn = pace.cut(
        lambda plan: replace(
            plan, tables=tuple(replace(t, quarantine=stop if t.table_id == 1 else None) for t in plan.tables)
        )
    )
    assert ["shop_x"] == [take.part.location.mirror for take in turn.before]


def test_rows_that_a_changelog_holds_otherwise_than_the_log_do_not_wait(pace: Pace) -> None:
    lab = pace.lab
    lab.create("shop.v", {"id": INT, "doc": replace(ColumnType(name="json"), options="variant")})
    lab.create("shop.p", {"id": INT, "a": text(), "b": text()})
    lab.insert("shop.p", {"id": 1, "a": "a", "b": "b"})
    pace.every |= {"x": 100, "v": 100, "p": 100}
    pace.cut()
    pace.rows("x")
    lab.insert("shop.v", {"id": 1, "doc": "{}"})
    lab.update_part("shop.p", {"id": 1}, a="x")
    turn = pace.cut()

    assert {"shop_v_changes": 0, "shop_v": 0, "shop_p_changes": 0, "shop_p": 0} == _targets(turn)
    assert {"shop_x_changes": (3, 3, 1)} == pace.waits()


def test_a_stopped_table_waits_for_nothing(pace: Pace) -> None:
    pace.rows("x")
    pace.locations = {**pace.locations, 1: replace(pace.locations[1], stopped="why", stopped_in=2)}
    assert {} == pace.waits()
    assert () == pace.cut().after


def test_times_are_those_of_the_plans_with_which_rows_were_taken_up(pace: Pace) -> None:
    pace.rows("x")
    pace.rows("z")
    assert (
        Deferral(taken_us=START_US + 1, table_id=1, first=2, last=2, rows=1)
        == noted({}, pace.locations, pace.recorded)["shop_x_changes"]
    )
