"""What a repair writes: what differs, once, whatever the plan meets and wherever its writing ends."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakes.crashes import Crashes
from lakes.held_rows import HeldLake
from lakes.repaired import RandomRepairs, check_repaired
from lakes.sink_lab import INT, Lab
from sinks.delta import faults
from sinks.delta.repairs import narrowing
from sinks.delta.rewrite import few_rows, held_rows
from sinks.delta.targets import mirror

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

HISTORY = "{database}_{table}_history"
KINDS: dict[str, dict[str, Any]] = {
    "all": {"history": HISTORY},
    "late": {"history": HISTORY, "mirror_every_us": 3},
    "soft": {"history": HISTORY, "mirror_deletes": "soft"},
    "no mirror": {"history": HISTORY, "mirror": None},
    "keyless": {"keyless": "rows"},
    "keyless log": {},
}


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


def _by_spark(patch: pytest.MonkeyPatch) -> None:
    """Spark compares rows, and changes mirrors and histories."""
    patch.setattr(held_rows, "SMALL_BYTES", 0)
    patch.setattr(few_rows, "SMALL_BYTES", 0)
    patch.setattr(mirror, "taken_up", lambda *_: None)
    patch.setattr(narrowing, "_FEW_ROWS", -1)


def test_only_what_differs_is_written(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, history=HISTORY)
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", *({"id": number, "a": number} for number in range(1, 6)))
    lake.cut()
    lab.unlogged("shop.t", {"id": 0, "a": 7}, {"id": 1, "a": 1}, {"id": 2, "a": None}, {"id": 5, "a": 5})
    lake.write(lab.cut({"shop.t": "a test"}))
    lake.write(lab.cut({"shop.t": "another"}))

    told = [(row["op"], row["id"], row["a"]) for row in lake.raw_log("shop_t_changes")[5:]]
    assert told == [(0, 0, 7), (2, 2, 2), (3, 2, None), (1, 3, 3), (1, 4, 4)]
    check_repaired(lake, "shop.t")
    records = [{k: v for k, v in row.items() if k not in ("position", "system_time")} for row in _records(lake)]
    counts = {"rows_changed": 4, "appended": 1, "retracted": 2, "corrected": 1}
    first = {"plan": 2, "table_id": 1, "table": "shop.t", "reason": "a test", "rows_read": 4, **counts}
    assert records == [first, first | {"plan": 3, "reason": "another"} | dict.fromkeys(counts, 0)]


def _cases() -> Iterator[Any]:
    """A seed for each kind and way; more of them are for `make soak`."""
    for kind in KINDS:
        for by_spark in (False, True)[: 1 if kind == "keyless" else 2]:
            for seed in range(8):
                rare = seed > 0 or (by_spark and kind != "all")
                yield pytest.param(kind, seed, by_spark, marks=pytest.mark.soak if rare else ())


@pytest.mark.parametrize("kind, seed, by_spark", [*_cases()])
def test_targets_are_the_table_wherever_a_repair_was_interrupted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, seed: int, by_spark: bool
) -> None:
    rng = random.Random(f"{kind} {seed}")
    if by_spark:
        _by_spark(monkeypatch)
    edits = RandomRepairs(rng, keyed=not kind.startswith("keyless"))
    edits.keys = kind != "soft"
    lake = HeldLake(spark, tmp_path / "lake", edits.lab, **KINDS[kind])
    here = ("repairs_recorded", "history_committed", "mirror_committed")
    crashes = Crashes(["changelog_committed", *(() if by_spark else here)])
    plans = 2 if by_spark else 4
    crashed = rng.randrange(1, plans)
    for number in range(plans):
        for _ in range(rng.randrange(1, 12)):
            edits.step()
        plan = edits.cut(wrong=rng.random() < 0.7)
        if number == crashed:
            crashes.write(lake, plan)
        else:
            lake.write(plan)
        waits = bool(lake.sink.due_us())
        check_repaired(lake, only_log=waits)


def _records(lake: HeldLake) -> list[dict[str, Any]]:
    return sorted(lake.mirror("historian_repairs"), key=lambda row: row["plan"])
