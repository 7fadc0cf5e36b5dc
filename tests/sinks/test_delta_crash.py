"""A crash at any place, then a restart: the same tables, values and offsets."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lake import Lake
from sink_lab import INT, Lab, text
from sinks.delta import faults, mirror, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


class _CrashError(Exception):
    pass


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


@pytest.fixture(scope="module")
def before(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A lake with one plan, and the lab that goes with it, whose second plan has it all."""
    lake = Lake(spark, tmp_path_factory.mktemp("crash") / "lake", Lab())
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
    return Lake(spark, path, pickle.loads(before[1]))


def _check(lake: Lake) -> None:
    lab = lake.lab
    lake.check("shop.t", "shop.u")
    assert [*lab.log(3), *lab.log(4)] == lake.log("shop_v_changes")
    assert lab.rows("shop.v") == lake.mirror("shop_v")
    assert {} == lake.stopped()


@pytest.mark.parametrize("way", ["merged by Spark", "by executors", "here"])
def test_a_crash_anywhere_changes_nothing(
    spark: SparkSession, tmp_path: Path, before: tuple[Path, bytes], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = way == "merged by Spark"
    monkeypatch.setattr(rewrite, "SMALL_BYTES", rewrite.SMALL_BYTES if way == "here" else 0)
    if merged:
        monkeypatch.setattr(mirror, "taken_up", lambda *_: None)
    whole = _copied(spark, before, tmp_path / "whole")
    places: list[str] = []
    faults.arm(places.append)
    whole.write(whole.lab.plans[1])
    faults.disarm()
    _check(whole)
    assert set(faults.PLACES) - set(places) == _OF_HISTORIES | (set() if merged else _ONLY_MERGED)

    # What is common to all ways is tried once.
    for at in range(len(places)) if merged else [i for i, p in enumerate(places) if p == "mirror_committed"]:
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


_OF_HISTORIES = {"history_prepared", "history_filled", "history_committed"}
_ONLY_MERGED = {"mirror_schema_committed", "mirror_filled"}


@pytest.mark.parametrize("small_bytes", [0, rewrite.SMALL_BYTES], ids=["merged", "rewritten"])
def test_a_crash_beside_a_history_changes_nothing(
    spark: SparkSession, tmp_path: Path, small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its offsets are given with its rows, and those of the changelog after them."""
    monkeypatch.setattr(rewrite, "SMALL_BYTES", small_bytes)
    lab, kinds = Lab(), {"mirror": None, "history": "{database}_{table}_history"}
    lab.create("shop.t", {"id": INT, "a": text()})
    lab.insert("shop.t", *({"id": i, "a": "x"} for i in range(4)))
    Lake(spark, tmp_path / "before", lab, **kinds).cut()
    lab.delete("shop.t", {"id": 2, "a": "x"})
    lab.add("shop.t", "n", INT, initial="7")
    lab.update("shop.t", {"id": 1, "a": "x", "n": 7}, a="y")
    lab.truncate("shop.t")
    lab.insert("shop.t", {"id": 1, "a": "z", "n": 1})
    plan = lab.cut()

    def written(at: int) -> list[str]:
        """The places that are reached; behind that many of them a crash comes, then a restart."""
        path = tmp_path / f"crash-{at}"
        shutil.copytree(tmp_path / "before", path)
        lake = Lake(spark, path, lab, **kinds)
        places: list[str] = []
        faults.arm(places.append if at < 0 else _after(at))
        with pytest.raises(_CrashError) if at >= 0 else nullcontext():
            lake.write(plan)
        faults.disarm()
        lake.catch_up()
        lake.check_history("shop.t")
        assert lake.log("shop_t_changes") == lab.log(1)
        assert {} == lake.stopped()
        return places

    places = written(-1)
    for at in [at for at, place in enumerate(places) if place in _OF_HISTORIES]:
        written(at)
    wanted = _OF_HISTORIES if small_bytes == 0 else {"history_committed"}
    assert _OF_HISTORIES.intersection(places) == wanted


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
lake = Lake(spark_session(jars=delta_jars(), master="local[1]"), Path({str(lake.path)!r}), lab)
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
