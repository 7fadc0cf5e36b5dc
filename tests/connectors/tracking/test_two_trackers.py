"""Two trackers on one store, over the recorded shop."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.config import load_config
from connectors.tracking.sources import make_tracker
from connectors.tracking.tracker import Tracker
from historian.errors import HistoryMoved
from historian.plans.plans import Plan

SHOP = Path(__file__).parents[3] / "examples" / "shop"
LIMIT_BYTES = 300_000


def tracker(directory: Path) -> Tracker:
    directory.mkdir(exist_ok=True)
    file = directory / "shop.yaml"
    file.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {SHOP / 'binlog'}, tables: ['shop.*']}}\n")
    return make_tracker(load_config(file))


def plans(*trackers: Tracker) -> list[Plan]:
    """Plans made by the trackers in turn, without the time at which they were made and the connector's identity."""
    made: list[Plan] = []
    while (plan := trackers[len(made) % len(trackers)].plan_after(len(made), limit_bytes=LIMIT_BYTES)) is not None:
        made.append(replace(plan, system_time_us=0, connector=""))
    return made


def test_trackers_in_turn_make_the_plans_of_one(tmp_path: Path) -> None:
    with closing(tracker(tmp_path / "one")) as alone:
        expected = plans(alone)
        entries = alone.history.entries

    with closing(tracker(tmp_path / "both")) as one, closing(tracker(tmp_path / "both")) as other:
        assert expected == plans(one, other)
        assert entries == one.store.entries()


def test_a_tracker_that_another_one_overtakes_learns_it_and_goes_on_with_what_that_one_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(tracker(tmp_path)) as one, closing(tracker(tmp_path)) as other:
        known = other.history.last_number
        scan = other.reader.scan

        def overtaken(*arguments: object, **options: object) -> object:
            made = plans(one)
            assert made[-1].version > known
            return scan(*arguments, **options)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(other.reader, "scan", overtaken)
            with pytest.raises(HistoryMoved):
                other.plan_after(0, limit_bytes=LIMIT_BYTES)

        assert one.store.plans() == tuple(other.plan_after(number) for number in range(len(one.store.plans())))
        assert other.plan_after(len(one.store.plans())) is None
