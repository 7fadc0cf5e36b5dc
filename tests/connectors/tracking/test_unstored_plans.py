"""Plans that could not be stored, over the recorded shop: nothing of them is, and the tracker makes them again."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.config import load_config
from connectors.tracking.sources import make_tracker
from connectors.tracking.tracker import Tracker
from historian.errors import StoreUnreachable
from historian.plans.plans import Plan
from historian.store import Store

SHOP = Path(__file__).parents[3] / "examples" / "shop"


def tracker(directory: Path) -> Tracker:
    directory.mkdir(exist_ok=True)
    file = directory / "shop.yaml"
    file.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {SHOP / 'binlog'}, tables: ['shop.*']}}\n")
    return make_tracker(load_config(file))


def plans(made_by: Tracker) -> list[Plan]:
    """Plans of the whole log, without the time at which they were made and the connector's identity."""
    return [replace(plan, system_time_us=0, connector="") for plan in made_by.plans_until(None, limit_bytes=300_000)]


@pytest.mark.parametrize("method", ["record", "append_plan"])
def test_a_store_that_is_away_for_a_moment_gets_the_same_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    with closing(tracker(tmp_path / "whole")) as whole:
        expected, entries = plans(whole), whole.store.entries()

    def is_away(*_: object, **__: Any) -> None:
        raise StoreUnreachable("the history store failed", where="here")

    with closing(tracker(tmp_path / "away")) as other:
        with monkeypatch.context() as patch:
            patch.setattr(Store, method, is_away)
            with pytest.raises(StoreUnreachable):
                other.plan_after(0, limit_bytes=300_000)
        known = other.history.last_number
        assert known == other.store.last_number()
        assert known < expected[0].version

        assert expected == plans(other)
        assert entries == other.store.entries()
