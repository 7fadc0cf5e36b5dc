"""What a plan costs does not depend on the tables that the lake knows and nothing comes of."""

from __future__ import annotations

from typing import Any, cast

from sinks.contract.locations import TableLocation
from sinks.delta.rewrite.compaction import Compactor


class Counted:
    """Settings that count how often they are asked."""

    def __init__(self) -> None:
        self.asked = 0

    def for_table(self, name: Any) -> Any:
        self.asked += 1
        raise AssertionError(f"asked of {name}")


class Quiet:
    """A target at which nothing was committed since the last look."""

    exists = False


def test_settings_of_idle_tables_are_not_asked_between_two_plans() -> None:
    settings = Counted()
    compactor = Compactor(cast("Any", None), cast("Any", settings))
    locations = {
        number: TableLocation(table_id=number, name=f"shop.t{number}", changelog=f"t{number}", mirror="", since=1)
        for number in range(1, 100)
    }

    compactor.tidy({"t1": cast("Any", Quiet())}, locations, 2)

    assert settings.asked == 0
