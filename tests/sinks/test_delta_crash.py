"""A crash at any place, then a restart: the same tables, values and offsets."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lake import Lake
from sink_lab import INT, Lab, text
from sinks.delta import faults, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
_KINDS = {"history": "{database}_{table}_history"}


class _CrashError(Exception):
    pass


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


@pytest.fixture(scope="module")
def before(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A lake with one plan, and the lab that goes with it, whose second plan has it all."""
    lake = Lake(spark, tmp_path_factory.mktemp("crash") / "lake", Lab(), **_KINDS)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "a": text()})
    lab.create("shop.u", {"id": INT})
    lab.create("shop.v", {"id": INT})
    lab.insert("shop.t", *({"id": i, "a": "x"} for i in range(4)))
    lab.insert("shop.u", {"id": 1}, {"id": 2})
    lab.insert("shop.v", {"id": 1})
    lake.cut()
    lab.update("shop.t", {"id": 1, "a": "x"}, a="y")
    lab.add("shop.t", "n", INT, initial="7")
    lab.delete("shop.t", {"id": 2, "a": "x", "n": 7})
    lab.insert("shop.u", {"id": 3})
    lab.truncate("shop.u")
    lab.insert("shop.u", {"id": 4})
    lab.drop("shop.v")
    lab.create("shop.v", {"id": INT, "w": INT})
    lab.insert("shop.v", {"id": 5, "w": 6})
    lab.cut()
    return lake.path, pickle.dumps(lab)


def _copied(spark: SparkSession, before: tuple[Path, bytes], path: Path) -> Lake:
    shutil.copytree(before[0], path)
    return Lake(spark, path, pickle.loads(before[1]), **_KINDS)


def _check(lake: Lake) -> None:
    lab = lake.lab
    lake.check("shop.t", "shop.u")
    assert [*lab.log(3), *lab.log(4)] == lake.log("shop_v_changes")
    assert lab.rows("shop.v") == lake.mirror("shop_v")
    lake.check_history("shop.t", "shop.u", "shop.v")
    assert {} == lake.stopped()


@pytest.mark.parametrize("small_bytes", [0, rewrite.SMALL_BYTES], ids=["merged", "rewritten"])
def test_a_crash_anywhere_changes_nothing(
    spark: SparkSession, tmp_path: Path, before: tuple[Path, bytes], small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "SMALL_BYTES", small_bytes)
    whole = _copied(spark, before, tmp_path / "whole")
    places: list[str] = []
    faults.arm(places.append)
    whole.write(whole.lab.plans[1])
    faults.disarm()
    _check(whole)
    assert set(faults.PLACES) - set(places) == (set() if small_bytes == 0 else _ONLY_MERGED)

    # What is common to both ways is tried once.
    for at in range(len(places)) if small_bytes == 0 else [i for i, p in enumerate(places) if p in _TWICE]:
        print(f"crash at {at}: {places[at]}")
        lake = _copied(spark, before, tmp_path / f"crash-{at}")
        faults.arm(_after(at))
        with pytest.raises(_CrashError):
            lake.write(lake.lab.plans[1])
        faults.disarm()
        lake.catch_up()

        _check(lake)
        assert 2 == lake.reopen().open("shop")
        shutil.rmtree(lake.path)


_ONLY_MERGED = {"history_prepared", "history_filled", "mirror_schema_committed", "mirror_filled"}
_TWICE = {"history_committed", "mirror_committed"}


def _after(count: int):  # noqa: ANN202
    seen = iter(range(count))

    def fault(place: str) -> None:
        if next(seen, None) is None:
            raise _CrashError(place)

    return fault


def test_a_killed_process_leaves_a_lake_that_goes_on(
    spark: SparkSession, tmp_path: Path, before: tuple[Path, bytes]
) -> None:
    lake = _copied(spark, before, tmp_path / "lake")
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT / "tests" / "support")!r})
import pickle
from pathlib import Path
from connectors.jvm import delta_jars
from lake import Lake
from sinks.delta import faults
from sinks.session import spark_session
lab = pickle.loads(sys.stdin.buffer.read())
lake = Lake(spark_session(jars=delta_jars(), master="local[1]"), Path({str(lake.path)!r}), lab, **{_KINDS})
seen = []
def fault(place):
    seen.append(place)
    if seen.count("changelog_committed") == 2:
        os.kill(os.getpid(), signal.SIGKILL)
faults.arm(fault)
lake.write(lab.plans[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], input=before[1], cwd=tmp_path, env=os.environ, capture_output=True, check=False
    )
    assert -signal.SIGKILL == done.returncode, done.stderr.decode()
    lake.catch_up()

    _check(lake)
