"""A crash at any place, then a restart: the same tables, values and offsets.

``CRASHES`` says how many there are at least (200), ``CRASH_SEED`` what is written. Ten ends of a whole process by SIGKILL
are in tests/integration/test_crashes.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from historian.schema.snapshots import ColumnType
from lakes.crashes import Crashes, described
from lakes.held_rows import HeldLake
from lakes.random_lab import RandomLab
from lakes.sink_lab import INT, Lab
from sinks.delta import faults
from sinks.delta.rewrite import few_rows, file_rewrite, held_rows
from sinks.delta.targets import mirror

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

CRASHES = int(os.environ.get("CRASHES", "200"))
SEED = int(os.environ.get("CRASH_SEED", "6"))
PLANS_OF_A_LAKE = 6
ELSEWHERE = {
    "catalog_changed",
    "changelog_prepared",
    "compaction_committed",
    "compaction_optimized",
    "compaction_written",
    "history_filled",
    "mirror_cleared",
    "seed_committed",
    "seed_made",
    "seed_written",
    "target_brought_back",
}
"""Places of catalogs, of Spark's writer, of compaction, of defaults, of change data feeds, and of tables that are read again or repaired.

They have tests of their own.
"""


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


def test_a_crash_at_any_place_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans with everything in them are written by each way in turn; the lake is compared behind each."""
    crashes, plans = Crashes(enough=CRASHES), 0
    while not crashes.suffice or (_missed(crashes) and plans < 2 * PLANS_OF_A_LAKE):
        if plans % PLANS_OF_A_LAKE == 0:
            seed = SEED + plans // PLANS_OF_A_LAKE
            lake, random = _lake(spark, tmp_path / f"lake-{seed}", seed)
            print(f"seed {seed}")
        # Behind a commit that a restart finds, it goes on with the next step: what lies between is for plans that pass by all
        # places of before. In each lake another way has them; in the first one Spark's, where a crash costs most.
        passes_by = (plans + plans // PLANS_OF_A_LAKE) % len(_WAYS) == 2
        with monkeypatch.context() as patch:
            _WAYS[plans % len(_WAYS)](patch)
            crashes.write(lake, random.plan(), but=tuple(crashes.places) if passes_by else ())
        lake.check_all()
        plans += 1
        if plans % PLANS_OF_A_LAKE == 0:
            lake.read_all_by_spark()
    if plans % PLANS_OF_A_LAKE:
        lake.read_all_by_spark()
    print(f"{crashes.count} crashes: {described(crashes.places)}")
    assert not _missed(crashes)


def _missed(crashes: Crashes) -> set[str]:
    return set(faults.PLACES) - ELSEWHERE - set(crashes.places)


def test_a_type_widens_once_where_its_plan_comes_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The targets have the wide type by then: made with it, or since the commit that comes before a merge."""
    _merge(monkeypatch)
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, history="{database}_{table}_history")
    lab.create("shop.t", {"id": INT, "a": INT, "b": INT})
    crashes = Crashes(at=["commit_begun", "history_prepared"])
    for column in ("a", "b"):
        lab.insert("shop.t", {"id": 1 + lab.clock, "a": 1, "b": 1})
        lab.retype("shop.t", column, ColumnType(name="bigint"))
        for row in lab.rows("shop.t"):
            lab.update("shop.t", row, **{column: 1 << 40})
        crashes.write(lake, lab.cut())
    assert crashes.places["history_prepared"] == 1
    lake.check_all()


def test_a_default_is_filled_in_once_where_its_plan_comes_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _merge(monkeypatch)
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, history="{database}_{table}_history")
    lab.create("shop.t", {"id": INT})
    lab.insert("shop.t", {"id": 1}, {"id": 2})
    lake.cut()
    lab.add("shop.t", "a", INT, initial="7")
    lab.delete("shop.t", {"id": 1, "a": 7})
    crashes = Crashes(at=["mirror_filled", "history_filled"])
    crashes.write(lake, lab.cut())
    assert crashes.places == {"mirror_filled": 1, "history_filled": 1}
    lake.check_all()


def _merge(patch: pytest.MonkeyPatch) -> None:
    """Spark changes mirrors and histories, and reads what a statement takes back."""
    patch.setattr(held_rows, "SMALL_BYTES", 0)
    patch.setattr(few_rows, "SMALL_BYTES", 0)
    patch.setattr(mirror, "taken_up", lambda *_: None)


def _write_in_executors(patch: pytest.MonkeyPatch) -> None:
    """Executors write the mirrors' files anew."""
    # Not held_rows.SMALL_BYTES itself, by which histories would be merged by Spark, as by the third way.
    patch.setattr(file_rewrite, "held_rows", SimpleNamespace(SMALL_BYTES=0))


def _write_here(_: pytest.MonkeyPatch) -> None:
    """The driver writes the files of small tables anew."""


_WAYS = (_write_here, _write_in_executors, _merge)


def _lake(spark: SparkSession, path: Path, seed: int) -> tuple[HeldLake, RandomLab]:
    random = RandomLab(seed)
    soft = ("shop.soft", (("mirror_deletes", "soft"),))
    settings: dict[str, Any] = {"history": "{database}_{table}_history", "tables": (soft,), "compact": (2, 1_000_000)}
    return HeldLake(spark, path, random.lab, **settings), random
