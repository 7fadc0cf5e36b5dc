"""What a repair writes: nothing where rows are equal, and what differs once, whatever the plan meets."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakes.held_rows import HeldLake
from lakes.repaired import RandomRepairs, check_repaired
from lakes.sink_lab import INT, Lab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_only_what_differs_is_written(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, history="{database}_{table}_history")
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", *({"id": number, "a": number} for number in range(1, 6)))
    lake.cut()
    lab.unlogged("shop.t", {"id": 0, "a": 7}, {"id": 1, "a": 1}, {"id": 2, "a": None}, {"id": 5, "a": 5})
    lake.write(lab.cut({"shop.t": "a test"}))

    told = [(row["op"], row["id"], row["a"]) for row in lake.raw_log("shop_t_changes")[5:]]
    assert told == [(0, 0, 7), (2, 2, 2), (3, 2, None), (1, 3, 3), (1, 4, 4)]
    assert sorted(map(repr, lake.mirror("shop_t"))) == sorted(map(repr, lab.rows("shop.t")))
    print(lake.history("shop_t_history"))
    print(lake.mirror("historian_repairs"))
    assert lake.stopped() == {}


@pytest.mark.parametrize("seed", range(6))
def test_targets_are_the_table_after_a_repair_whatever_came_before(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    edits = RandomRepairs(rng, keyed=True)
    lake = HeldLake(spark, tmp_path / "lake", edits.lab, history="{database}_{table}_history")
    for _ in range(5):
        for _ in range(rng.randrange(1, 12)):
            edits.step()
        plan = edits.cut(wrong=rng.random() < 0.6)
        lake.write(plan)
        check_repaired(lake)
