"""A first copy under random changes and statements, held at the end of each plan against a replica that stopped exactly there."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from connectors.backfill import selecting, selection
from connectors.config import PipelineConfig
from connectors.monitoring.observer import on_written
from connectors.pipeline.pipeline import Pipeline
from databases.replication import follow
from databases.servers import Server
from historian.plans.plans import Plan
from replicas.plan_ends import assert_lake_is_what_a_server_holds, assert_plans_are_what_a_replica_holds
from replicas.replica import Replica
from workload.run import Workload
from workload.seeds import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
FILLED = 0.25
"""The share of the workload that is written before the connector begins: the rows to copy."""
TURNS = 5
"""Transactions and statements of the writers in each part of a plan: in its log, before its SELECTs, and behind them."""
LONGEST_S = 300
DATABASES = "^(shop|archive|brief.*)$"


@pytest.fixture
def compare(
    fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """:func:`_compare` of a server's name and a seed."""
    return partial(_compare, fresh_server=fresh_server, spark=spark, directory=tmp_path, monkeypatch=monkeypatch)


@pytest.mark.parametrize("seed", seeds((1,)))
@pytest.mark.parametrize("name", ["mysql9", "mariadb118"])
def test_the_lake_holds_at_each_plans_end_what_a_replica_holds_there(
    name: str, seed: int, compare: Callable[..., None]
) -> None:
    compare(name, seed, plans=20)


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds((1,)))
@pytest.mark.parametrize("name", ["mysql9", "mysql8", "mysql57", "mariadb118", "mariadb1011", "mariadb105"])
def test_the_lake_holds_at_each_of_fifty_plans_ends_what_a_replica_holds_there(
    name: str, seed: int, compare: Callable[..., None]
) -> None:
    compare(name, seed + 100, plans=50)


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds((1,)))
@pytest.mark.parametrize("name", ["mysql9", "mysql57", "mariadb118", "mariadb105"])
def test_rows_that_another_replica_gave_are_what_the_first_one_holds_there(
    name: str, seed: int, compare: Callable[..., None]
) -> None:
    compare(name, seed + 200, plans=20, from_replica=True)


def _compare(
    name: str,
    seed: int,
    *,
    fresh_server: Callable[..., Server],
    spark: SparkSession,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    plans: int,
    from_replica: bool = False,
) -> None:
    primary = fresh_server(name)
    backfill = "chunk_rows: 50, connections: 1"
    if from_replica:
        rows = fresh_server(name)
        follow(rows, primary)
        backfill += f", server: {{host: {rows.host}, port: {rows.port}}}"
    lake = Replica(primary, directory / "lake", start="initial", backfill=f"{{{backfill}}}")
    beside = _Beside(primary, seed, changes=plans * 700, ddls=plans)
    monkeypatch.setattr(selecting, "snapshot_behind", beside.ahead(selecting.snapshot_behind))
    monkeypatch.setattr(selection, "changes_behind", beside.ahead(selection.changes_behind))
    beside.run(lake.config, spark)
    assert {} == lake.run(spark)
    reading = lake.reading(spark)
    other = fresh_server(name, *(() if primary.flavor == "mariadb" else ("slave_parallel_workers=0",)))
    compared = assert_plans_are_what_a_replica_holds(other, primary, reading, DATABASES)
    print(f"{primary.flavor} {primary.version}, seed {seed}: {compared}")
    assert_lake_is_what_a_server_holds(other, reading, DATABASES)
    assert compared.positions >= plans
    assert compared.partly >= plans // 2
    assert compared.rows


class _Beside:
    """A workload and a connector that copies beside it. Writers take turns that the connector gives them.

    So there are changes in the log of each plan, between its end and the SELECTs, and between these and the log's end behind them.
    """

    def __init__(self, server: Server, seed: int, *, changes: int, ddls: int) -> None:
        self._workload = Workload(server, seed, changes=changes, ddls=ddls, pace=self._pace)
        self._turn = threading.Condition()
        self._free = float(TURNS)
        self._is_filled = False
        self._ended = threading.Event()
        self._failure: BaseException | None = None

    def run(self, config: PipelineConfig, spark: SparkSession) -> None:
        """Ends with the workload; what the connector has not read by then is left to the next run."""
        writer = threading.Thread(target=self._write)
        writer.start()
        try:
            self._wait(lambda: self._is_filled)
            with Pipeline.opened(config, spark, on_written(self._report)) as pipeline:
                pipeline.run(once=False, until=None, stopping=self._ended)
        finally:
            self._give(math.inf)
            writer.join()
        if self._failure is not None:
            raise self._failure

    def ahead(self, step: Callable[..., T]) -> Callable[..., T]:
        """*step* of a copy, before which writers have some turns more."""

        def later(*arguments: Any, **named: Any) -> T:
            self._give(TURNS)
            self._wait(lambda: self._free < 1)
            return step(*arguments, **named)

        return later

    def _write(self) -> None:
        try:
            self._workload.run()
        except BaseException as error:  # noqa: BLE001 raised again by run(), in its thread
            self._failure = error
        finally:
            self._ended.set()
            with self._turn:
                self._turn.notify_all()

    def _pace(self, share: float) -> None:
        with self._turn:
            if share >= FILLED:
                self._is_filled = True
                self._turn.notify_all()
                assert self._turn.wait_for(lambda: self._free >= 1, timeout=LONGEST_S)
                self._free -= 1
                self._turn.notify_all()

    def _report(self, plan: Plan, stopped: object) -> None:
        assert not stopped, f"plan {plan.number}: {stopped}"
        self._give(TURNS)

    def _give(self, turns: float) -> None:
        with self._turn:
            self._free += turns
            self._turn.notify_all()

    def _wait(self, is_so: Callable[[], bool]) -> None:
        with self._turn:
            assert self._turn.wait_for(lambda: is_so() or self._ended.is_set(), timeout=LONGEST_S)
