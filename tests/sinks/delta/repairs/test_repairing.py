"""What a repair writes: what differs, once, whatever the plan meets and wherever its writing ends."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.schema.snapshots import ColumnType
from lakes.crashes import Crashes
from lakes.held_rows import HeldLake
from lakes.repaired import RandomRepairs, check_repaired
from lakes.sink_lab import INT, Lab, text
from sinks.delta import faults
from sinks.delta.repairs import narrowing, repairing
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


@pytest.mark.parametrize("by_spark", [False, True], ids=["here", "by Spark"])
@pytest.mark.parametrize("key", ["id", "d", ""])
def test_zeros_of_another_sign_differ(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, by_spark: bool
) -> None:
    """Servers hold both, and their logs tell one from the other. As keys they are one."""
    if by_spark:
        _by_spark(monkeypatch)
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, keyless="rows")
    double = ColumnType(name="double")
    lab.create("shop.t", {"id": INT, "d": double, "e": double}, key=(key,) if key else ())
    lab.insert("shop.t", {"id": 1, "d": 0.0, "e": 5.0}, {"id": 2, "d": 1.0, "e": None})
    lake.cut()
    lab.unlogged("shop.t", {"id": 1, "d": -0.0, "e": 5.0}, {"id": 2, "d": 1.0, "e": None})
    lake.write(lab.cut({"shop.t": "a test"}))

    told = [(row["op"], row["id"], repr(row["d"]), row["e"]) for row in lake.raw_log("shop_t_changes")[2:]]
    before, after = (2, 3) if key else (1, 0)
    assert sorted(told) == sorted([(before, 1, "0.0", 5.0), (after, 1, "-0.0", 5.0)])
    if key:
        assert [before, after] == [op for op, *_ in told]


def test_few_rows_are_few_bytes_too(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide rows go to Spark where they would not fit in memory, however few they are."""
    monkeypatch.setattr(narrowing, "_FEW_BYTES", 10_000)
    compared: list[str] = []
    compare = repairing.differing_files

    def differing_files(*given: Any) -> Any:
        compared.append("by Spark")
        return compare(*given)

    monkeypatch.setattr(repairing, "differing_files", differing_files)
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab)
    lab.create("shop.t", {"id": INT, "a": text(5_000)})
    lab.insert("shop.t", *({"id": number, "a": "x" * 4_000} for number in range(6)))
    lake.cut()
    for count, wanted in ((2, []), (3, ["by Spark"])):
        rows = [row | {"a": "y" * (3_900 + count)} if row["id"] < count else row for row in lab.rows("shop.t")]
        lab.unlogged("shop.t", *rows)
        lake.write(lab.cut({"shop.t": "a test"}))
        check_repaired(lake, "shop.t")
        assert compared == wanted


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
