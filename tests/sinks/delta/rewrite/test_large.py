"""A change that does not fit into memory at once comes to the same rows as one that does."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text
from sinks.contract import chunks as chunk_sizes
from sinks.delta.rewrite import file_rewrite, large
from sinks.rows import key_ranges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {"history": "{database}_{table}_history"}


@pytest.mark.parametrize("on_executors, deletes", [(False, "hard"), pytest.param(True, "soft", marks=pytest.mark.soak)])
def test_ranges_of_keys_come_to_the_same_rows(
    spark: SparkSession, tmp_path: Path, on_executors: bool, deletes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_sizes, "SMALL_BYTES", 0)
    monkeypatch.setattr(key_ranges, "_SAMPLE_ROWS", 3)
    monkeypatch.setattr(large, "_RANGE_BYTES", 512)
    monkeypatch.setattr(file_rewrite, "_STEP_BYTES", 4096)
    ranges, steps = [], []
    made, rewritten = large.ranges_of, file_rewrite._spliced
    monkeypatch.setattr(large, "ranges_of", lambda *of: ranges.append(made(*of)) or ranges[-1])
    monkeypatch.setattr(file_rewrite, "_spliced", lambda *of: steps.append(of) or rewritten(*of))
    lake = HeldLake(spark, tmp_path / "lake", Lab(), mirror_deletes=deletes, **KINDS)
    lab, random = lake.lab, Random(7)
    lab.create("shop.t", {"k": text(), "id": INT, "a": text()}, key=("k", "id"))
    lab.create("shop.other", {"id": INT})
    for number in range(3):
        _change(lab, random)
        lab.insert("shop.other", {"id": number})
        if number == 1:
            lab.add("shop.t", "n", INT, initial="7")
        _change(lab, random)
        lake.cut(on_executors=on_executors)

    lake.check_all()
    lake.read_by_spark("shop_t", "shop_t_changes", "shop_t_history")
    assert max(one.count for one in ranges) > 2
    assert len(steps) > 3


def _change(lab: Lab, random: Random) -> None:
    """Inserts, updates, some of the key, and deletes."""
    rows: list[dict[str, Any]] = lab.rows("shop.t")
    taken = {(row["k"], row["id"]) for row in rows}
    free = [(k, i) for k in "aAbcé" for i in range(80) if (k, i) not in taken]
    fresh = random.sample(free, 40)
    more = {"n": 5} if rows and "n" in rows[0] else {}
    lab.insert("shop.t", *({"k": k, "id": i, "a": "new", **more} for k, i in fresh[:30]))
    for row, (k, i) in zip(random.sample(rows, min(10, len(rows))), fresh[30:], strict=False):
        fate = random.randrange(3)
        if fate == 0:
            lab.delete("shop.t", row)
        elif fate == 1:
            lab.update("shop.t", row, a=f"changed {i}")
        else:
            lab.update("shop.t", row, k=k, id=i)
