"""What people see of a copy beside how many rows came: bytes, and each chunk while it is read and behind that."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.backfill import selecting
from connectors.backfill.pace import Pace
from connectors.cli import app
from connectors.config import load_config
from connectors.monitoring.observer import on_written
from connectors.monitoring.store_metrics import StoreMetrics
from connectors.pipeline.run import run
from databases.servers import Server
from historian.errors import SinkError
from replicas.first_copies import copying_config, fill
from workload.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 60


class _Ended(Exception):
    """Stands for the end of the process."""


def _status(path: Path, *options: str) -> str:
    return CliRunner().invoke(app, ["status", str(path), "--no-targets", *options]).stdout


def _state(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_status(path, "--json"))
    return found


def _samples(path: Path) -> dict[tuple[str, ...], float]:
    metrics = StoreMetrics(load_config(path), tables=10, kept_s=lambda: None)
    found = {}
    for sample in (sample for family in metrics.collect() for sample in family.samples):
        if sample.name.startswith("historian_copy_"):
            found[(sample.name.removeprefix("historian_copy_"), *sample.labels.values())] = sample.value
    return found


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the limits of copies count: rows and bytes of each plan."""
    counted: list[tuple[int, int]] = []
    took = Pace.took

    def noted(pace: Pace, rows: int, size_bytes: int) -> None:
        counted.append((rows, size_bytes))
        took(pace, rows, size_bytes)

    monkeypatch.setattr(Pace, "took", noted)
    return counted


class _Looks:
    """Reads the first of a plan's two chunks, then the second; looks behind each, while the plan is not made yet."""

    def __init__(self, path: Path, plan: int) -> None:
        self._path = path
        self._plan = plan
        self._read_piece = selecting.read_piece
        self._is_first_read = threading.Event()
        self.states: list[dict[str, Any]] = []
        self.samples: dict[tuple[str, ...], float] = {}
        self.text = ""

    def __call__(self, snapshot: Any, flavor: str, plan: Any, piece: Any, number: int, add: Any) -> None:
        if plan.number != self._plan:
            self._read_piece(snapshot, flavor, plan, piece, number, add)
            return
        if number > len(plan.ranges):
            assert self._is_first_read.wait(60)
            wait_until(lambda: "read" in self._chunk_states(), 60)
        self._read_piece(snapshot, flavor, plan, piece, number, add)
        self.states.append(_state(self._path)["copies_reading"])
        self.samples = _samples(self._path)
        self.text = _status(self._path, "--chunks")
        self._is_first_read.set()

    def _chunk_states(self) -> list[str]:
        reading = _state(self._path)["copies_reading"]
        return [] if reading is None else [chunk["state"] for chunk in reading["chunks"]]


@pytest.mark.parametrize("kind", ["mysql9", "mariadb118"])
def test_chunks_are_told_while_they_are_read_and_behind_that(
    request: pytest.FixtureRequest, kind: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server = request.getfixturevalue(kind)
    fill(server, _ROWS)
    server.sql("ANALYZE TABLE c.t")
    path = copying_config(server, tmp_path, backfill="{chunk_rows: 10, connections: 2}")
    took = _counted(monkeypatch)
    looks = _Looks(path, plan=2)
    monkeypatch.setattr(selecting, "_TOLD_S", 0.0)
    monkeypatch.setattr(selecting, "read_piece", looks)
    plans: Iterator[bool] = iter((False, True))

    def report(*_: object) -> None:
        if next(plans):
            raise _Ended

    with pytest.raises(SinkError):
        run(load_config(path), once=True, spark=spark, observer=on_written(report))

    first, second = looks.states
    keys = [(chunk["table"], chunk["behind"], chunk["upto"]) for chunk in first["chunks"]]
    assert [("c.t", [19], [29]), ("c.t", [29], [39])] == keys
    assert [("reading", 10), ("waiting", 0)] == [(chunk["state"], chunk["rows"]) for chunk in first["chunks"]]
    assert [("read", 10), ("reading", 10)] == [(chunk["state"], chunk["rows"]) for chunk in second["chunks"]]
    assert (2, 2) == (first["plan"], second["plan"])
    assert [10, 10] == [looks.samples["chunk_rows", "c.t", str(number)] for number in (0, 1)]
    sizes = [chunk["bytes"] for chunk in second["chunks"]]
    assert sizes == [looks.samples["chunk_bytes", "c.t", str(number)] for number in (0, 1)]
    assert "20 rows (" in looks.text
    assert "read for plan 2 so far, 1 of 2 chunks whole" in " ".join(looks.text.split())

    state = _state(path)
    (copy,) = state["copies"]
    assert state["copies_reading"] is None
    assert (40, _ROWS, 2) == (copy["rows"], copy["estimate"], copy["read"])
    assert [20, 20] == [rows for rows, _ in took]
    assert sum(size for _, size in took) == copy["bytes"] == _samples(path)["bytes", "c.t"]
    assert round(copy["bytes"] / 40 * _ROWS) == copy["estimated_bytes"] == _samples(path)["estimated_bytes", "c.t"]
    assert took[1][1] == sum(sizes)
    assert copy["bytes_per_s"] > 0
    expected = [
        {"behind": behind, "upto": upto, "rows": 10, "bytes": size}
        for behind, upto, size in (([19], [29], sizes[0]), ([29], [39], sizes[1]))
    ]
    assert expected == copy["chunks"]
